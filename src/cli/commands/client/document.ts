import { AgentAuthError, errorMessage, isAgentAuthError, usageError } from "../../../errors.js";
import { isLoopbackHost, parseUrl } from "../../../http/address.js";
import type { BufferedResponse } from "../../../http/buffered-response.js";
import { HttpRequest } from "../../../http/http-message.js";
import { isJsonObject, parseStrictJson } from "../../../http/strict-json.js";
import { createTransport } from "../../../http/transport.js";
import { userAgent } from "../../../http/version.js";
import { DOCUMENT_REDIRECTS, findDocumentUrlProblem } from "../../../oauth/client/metadata-document.js";
import { quote, shellWord } from "../../../redact.js";
import type { GlobalFlags, OutputFlags } from "../../flags/global.js";
import { rowColumns } from "../../output/columns.js";
import { chooseFormat, isOutputGiven, printObject, printRows } from "../../output/writer.js";
import type { CommandContext } from "../../runtime/context.js";

export interface DocumentOptions extends GlobalFlags, OutputFlags {
  clientName?: string;
  redirectUri?: string[];
  /** The published document to check, in place of printing one. */
  check?: string;
}

/** The document that `client document` prints. */
interface ClientDocument {
  /** The address that the document is published at. */
  client_id: string;
  /** The name that consent pages show. */
  client_name: string;
  /** Where logins end. */
  redirect_uris: readonly string[];
  /** What the client does at the token endpoint. */
  grant_types: readonly string[];
  /** What the client asks of the authorization endpoint. */
  response_types: readonly string[];
  /** A client that many machines share has no secret. */
  token_endpoint_auth_method: "none";
  /** `native` for addresses of this machine: their port may then be any (RFC 8252 section 7.3). */
  application_type: "native" | "web";
}

/** A rule of `client document --check`. */
interface DocumentCheck {
  /** `ok`, `warning` for what some issuers refuse, or `failed`. */
  state: "ok" | "warning" | "failed";
  /** What was checked: a part of the answer, or a member of the document. */
  check: string;
  /** What was found. */
  found: string;
}

const CHECKS = rowColumns([
  { path: "state", header: "STATE" },
  { path: "check", header: "CHECK", kind: "name" },
  { path: "found", header: "FOUND" },
]);

/** `client document`: prints the metadata document of this client, or checks a published one. */
export async function runDocument(options: DocumentOptions, context: CommandContext): Promise<undefined> {
  return options.check === undefined ? printDocument(options, context) : checkDocument(options.check, options, context);
}

async function printDocument(options: DocumentOptions, context: CommandContext): Promise<undefined> {
  const settings = context.settings();
  const { value: url, source } = settings.clientMetadataUrl ?? {};
  if (url === undefined || source === undefined) {
    const message = "--client-metadata-url is required: the document has the address that it is published at";
    throw usageError(
      message,
      "agentauth client document --client-metadata-url https://<your host>/agentauth/client.json",
    );
  }
  const problem = findDocumentUrlProblem(url);
  if (problem !== undefined)
    throw usageError(`${source} ${quote(url)} ${problem}`, "name the address where you publish it");
  const { redirectUri: redirects = DOCUMENT_REDIRECTS, clientName = "agentauth" } = options;
  for (const uri of redirects) {
    const wrong = findRedirectProblem(uri, url);
    if (wrong !== undefined)
      throw usageError(`--redirect-uri ${quote(uri)} ${wrong}`, "name an address of this client");
  }
  const document: ClientDocument = {
    client_id: url,
    client_name: clientName,
    redirect_uris: redirects,
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
    token_endpoint_auth_method: "none",
    application_type: redirects.every((uri) => uri.startsWith("https:")) ? "web" : "native",
  };
  const format = isOutputGiven(options) ? chooseFormat(options, settings, context.io) : "json";
  await printObject(format, document, options, context);
  context.io.say(
    `publish it yourself at ${quote(url)}, as application/json; then: agentauth client document --check ${shellWord(url)}`,
  );
}

async function checkDocument(url: string, options: DocumentOptions, context: CommandContext): Promise<undefined> {
  const rows = await documentChecks(url, options, context);
  await printRows(rows, CHECKS, options, context);
  const [first, ...others] = rows.filter(({ state }) => state === "failed");
  if (first === undefined) return;
  const more = others.length === 0 ? "" : `; also: ${others.map(({ check }) => check).join(", ")}`;
  const message = `issuers must refuse the client metadata document ${quote(url)}: ${first.check}: ${first.found}${more}`;
  const hint = OF_HOST.has(first.check)
    ? "publish it at a public https address, as application/json and without a redirect"
    : `publish what this prints: agentauth client document --client-metadata-url ${shellWord(url)}`;
  throw new AgentAuthError("invalid_client_metadata", message, { class: "refused", hint });
}

/** What the host decides, whatever the document has. */
const OF_HOST: ReadonlySet<string> = new Set(["address", "host", "status", "content type", "fetch"]);

/** The size that issuers are recommended to read (section 8.7 of the draft). */
const MAX_BYTES = 5 * 1024;

/** What an issuer checks when it reads a document (draft-ietf-oauth-client-id-metadata-document, sections 3 to 8). */
async function documentChecks(
  url: string,
  options: DocumentOptions,
  context: CommandContext,
): Promise<DocumentCheck[]> {
  const rows: DocumentCheck[] = [];
  const add = (check: string, problem: string | undefined, found: string) =>
    rows.push({ check, state: problem === undefined ? "ok" : "failed", found: problem ?? found });
  const address = findDocumentUrlProblem(url);
  add("address", address, quote(url));
  if (address !== undefined) return rows;
  const connection = (await context.network()).connectTo(new URL(url), new Set());
  const fetched = await fetchDocument(url, connection.fetch, options, context);
  const addressClass = fetched instanceof AgentAuthError ? undefined : await connection.addressClass();
  if (addressClass !== undefined)
    add(
      "host",
      addressClass === "public" ? undefined : `must be a public address, and is a ${addressClass} one`,
      "a public address",
    );
  if (fetched instanceof AgentAuthError) {
    add(OF_ERROR[fetched.code] ?? "fetch", fetched.message, "");
    return rows;
  }
  const { response, text } = fetched;
  const { status, headers } = response;
  const location = headers.get("location");
  const to = location === null ? "" : `, to ${quote(location)}: issuers follow no redirect`;
  add("status", status === 200 ? undefined : `must be 200, and is ${status}${to}`, "200, without a redirect");
  if (status !== 200) return rows;
  const type = headers.get("content-type") ?? "";
  const isJson = /^application\/(?:[\w.-]+\+)?json\s*(?:;|$)/i.test(type);
  add("content type", isJson ? undefined : `must be application/json, and is ${quote(type)}`, quote(type));
  add("size", undefined, `${new TextEncoder().encode(text).length} bytes of at most ${MAX_BYTES}`);
  const document = readDocument(text);
  add("JSON", typeof document === "string" ? document : undefined, "an object");
  return typeof document === "string" ? rows : [...rows, ...memberChecks(document, url)];
}

/** What an error of the request is about. */
const OF_ERROR: Readonly<Record<string, string>> = { body_too_large: "size", bad_json: "JSON" };

/** The answer, or the error of one that must not be used; nothing is known of a server that does not answer. */
async function fetchDocument(
  url: string,
  fetch: typeof globalThis.fetch,
  { timeout, retries }: DocumentOptions,
  { clock, signal }: CommandContext,
): Promise<BufferedResponse | AgentAuthError> {
  const limits = { timeoutMs: timeout === undefined ? undefined : timeout * 1000, maxRetries: retries ?? 0 };
  const send = createTransport({ ...limits, fetch, clock, redirects: "manual", maxBodyBytes: MAX_BYTES });
  const headers = { accept: "application/json", "user-agent": userAgent("agentauth-cli") };
  try {
    return await send(new HttpRequest(url, { headers }), signal);
  } catch (error) {
    if (isAgentAuthError(error) && error.class === "refused") return error;
    throw error;
  }
}

function readDocument(text: string): Record<string, unknown> | string {
  try {
    const value = parseStrictJson(text);
    return isJsonObject(value) ? value : "must be an object";
  } catch (error) {
    return `is not valid: ${errorMessage(error)}`;
  }
}

/** The members of a document, and what each must be; an absent one has the default of RFC 7591 section 2. */
function memberChecks(document: Record<string, unknown>, url: string): DocumentCheck[] {
  const { client_name: name, redirect_uris: redirects, token_endpoint_auth_method: method, ...rest } = document;
  const row = (check: string, problem: string | undefined, found: string): DocumentCheck => ({
    ...{ check, state: problem === undefined ? "ok" : "failed", found: problem ?? found },
  });
  const { client_id: id, grant_types: grants } = rest;
  const secrets = ["client_secret", "client_secret_expires_at"].filter((one) => Object.hasOwn(document, one));
  const uris = Object.entries(rest).filter(([key]) => /_uri$/.test(key));
  const insecure = uris.find(([, value]) => parseUrl(String(value))?.protocol !== "https:");
  const refreshes = Array.isArray(grants) && grants.includes("refresh_token");
  const lacks = 'lacks "refresh_token": some issuers then give none, and each expiry needs a login';
  return [
    row("client_id", id === url ? undefined : `must be ${quote(url)}, and is ${quote(id)}`, quote(id)),
    row("client_name", typeof name === "string" && name.trim() !== "" ? undefined : "must be a name", quote(name)),
    redirectCheck(redirects, url),
    row(
      "token_endpoint_auth_method",
      method === "none" ? undefined : `must be "none", and is ${quote(method ?? "client_secret_basic, by default")}`,
      '"none"',
    ),
    row("secrets", secrets.length === 0 ? undefined : `the document must have no ${secrets.join(" and no ")}`, "none"),
    row("keys", hasPrivateKey(document["jwks"]) ? "jwks must have no private key" : undefined, "no private key"),
    row("links", insecure && `${insecure[0]} must be an https address, and is ${quote(insecure[1])}`, "https"),
    refreshes ? row("grant_types", undefined, quote(grants.join(" "))) : createWarning("grant_types", lacks),
  ];
}

function createWarning(check: string, found: string): DocumentCheck {
  return { check, state: "warning", found };
}

function redirectCheck(value: unknown, url: string): DocumentCheck {
  const check = "redirect_uris";
  const uris = Array.isArray(value) ? value.map(String) : [];
  if (uris.length === 0) return { check, state: "failed", found: "must be a list of addresses" };
  for (const uri of uris) {
    const problem = findRedirectProblem(uri, url);
    if (problem !== undefined) return { check, state: "failed", found: `${quote(uri)} ${problem}` };
  }
  const missing = DOCUMENT_REDIRECTS.find((uri) => !uris.includes(uri));
  const isWeb = uris.every((uri) => uri.startsWith("https:"));
  if (missing === undefined || isWeb) return { check, state: "ok", found: uris.join(" ") };
  return createWarning(check, `lacks ${missing}: an issuer that compares ports refuses a login of this program`);
}

/**
 * Which rule a redirect address breaks: a code goes to this machine, or to the host of the document. Any other address
 * would let whoever has it log in as this client.
 */
function findRedirectProblem(uri: string, document: string): string | undefined {
  const url = parseUrl(uri);
  if (url === undefined) return "is no address";
  if (uri.includes("#")) return "must have no fragment";
  if (url.protocol === "http:" && isLoopbackHost(url.hostname)) return undefined;
  if (url.protocol === "https:" && url.origin === new URL(document).origin) return undefined;
  return "is foreign: it must be http to this machine, or https at the host of the document";
}

const PRIVATE_MEMBERS = ["d", "p", "q", "dp", "dq", "qi", "k", "priv"];

function hasPrivateKey(jwks: unknown): boolean {
  const keys = isJsonObject(jwks) && Array.isArray(jwks["keys"]) ? jwks["keys"] : [];
  return keys.some((key) => isJsonObject(key) && PRIVATE_MEMBERS.some((name) => Object.hasOwn(key, name)));
}
