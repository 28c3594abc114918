import { isAbsolute, resolve } from "node:path";
import { AgentAuthError, usageError } from "../errors.js";
import { isLoopbackHost, parseUrl, shownUrl } from "../http/address.js";
import { classifyHost } from "../http/address-class.js";
import { HttpRequest } from "../http/http-message.js";
import { createFetch } from "../http/node/network.js";
import { isJsonObject, parseJsonObject, parseStrictJson } from "../http/strict-json.js";
import { createTransport } from "../http/transport.js";
import type { StoredGrants } from "../oauth/agent-options.js";
import type { PreRegisteredClient } from "../oauth/client/client-auth.js";
import { type GrantFlag, readSubject } from "../oauth/machine/grant-strategies.js";
import type { AssertionRequest, MachineGrant, Workload } from "../oauth/model/machine-grant.js";
import type { Env } from "../platform.js";
import { quote, Redactor } from "../redact.js";
import { readTrustedFile } from "../store/private/private-file.js";
import {
  commandOutput,
  isReference,
  namedSecret,
  noteSecretVariables,
  referencedSecret,
  secretLine,
  secretOrReferenced,
  splitWords,
} from "./secrets.js";

/** Where the assertion of a workload comes from: files, programs, and the token services of CI systems and clouds. */

/** What a source works with. */
export interface AssertionSourceOptions {
  /** The audience that the assertion must have. Default: the issuer of the token. */
  audience?: string | undefined;
  /**
   * Headers for `url:`, as `Name: value`. A value that is a secret is a reference, after its scheme if it has one:
   * `Authorization: Bearer env:NAME`.
   */
  headers?: readonly string[] | undefined;
}

/** The environment of a source, and how it reaches what is not on this machine or its link. */
export interface SourceHost {
  env: Env;
  fetch: typeof globalThis.fetch;
  /** What messages call the source. */
  from: string;
}

type Get = (request: AssertionRequest) => string | Promise<string>;
type Parts = Pick<Workload, "workload"> & { get: Get };
type OpenSource = (name: string, host: SourceHost, headers: Record<string, string>) => Parts;

/** Where pods find the token that a projected volume writes. */
const KUBERNETES_TOKEN = "/var/run/secrets/agentauth/token";

const ofFile = (path: string, from: string, hint?: string): Parts => ofText(() => readAssertion(path, from, hint));

/** Each source by the word before the colon; the value of the flag has what follows it. */
const SOURCES: Readonly<Record<string, { form: string; open: OpenSource }>> = {
  file: { form: "file:PATH", open: (path, { from }) => ofFile(path, from) },
  env: { form: "env:NAME", open: (name, { env, from }) => ofText(referencedSecret(`env:${name}`, from, env).read) },
  exec: {
    form: "exec:COMMAND",
    open: (command, { env, from }) => {
      const words = splitWords(command, from);
      return { workload: `exec:${command}`, get: ({ signal }) => secretLine(words, { from, env, signal }) };
    },
  },
  url: {
    form: "url:ADDRESS",
    open: (address, host, headers) => ({
      workload: `url:${address}`,
      get: async ({ signal }) => (await requestFrom(address, headers, host, signal)).text.trim(),
    }),
  },
  "github-actions": { form: "github-actions", open: (_name, host) => ofGithub(host) },
  kubernetes: {
    form: "kubernetes[:PATH]",
    open: (path, { from }) =>
      ofFile(path || KUBERNETES_TOKEN, from, "mount a projected volume with a serviceAccountToken for this audience"),
  },
  gcp: { form: "gcp", open: (_name, host) => ofGoogle(host) },
  azure: { form: "azure", open: (_name, host) => ofAzure(host) },
  spiffe: { form: "spiffe[:PATH]", open: (path, host) => (path === "" ? ofSpire(host) : ofFile(path, host.from)) },
};

/** The workload whose assertions come from a source. @throws `AgentAuthError` `usage` for a source that is none */
export function openSource(source: string, options: AssertionSourceOptions, host: SourceHost): Workload {
  const { audience, headers = [] } = options;
  const [, kind = "", colon = "", name = ""] = /^([a-z-]*)(:?)(.*)$/s.exec(source) ?? [];
  const known = Object.hasOwn(SOURCES, kind) ? SOURCES[kind] : undefined;
  // An assertion in its place is a secret: it is not quoted.
  if (known === undefined) {
    const forms = Object.values(SOURCES).map((one) => one.form);
    throw usageError(
      `${host.from} must be one of ${forms.join(", ")}: where the assertion is, never the assertion itself`,
      "an assertion that was typed here can be read by other programs until it expires",
    );
  }
  const { form, open } = known;
  if (colon === "" ? form.startsWith(`${kind}:`) : name === "" || !form.includes(":"))
    throw usageError(`${host.from} must be ${form}`);
  if (headers.length > 0 && kind !== "url") throw usageError(`a header of ${host.from} goes with url:ADDRESS alone`);
  const { get, workload } = open(name, host, parseHeaders(headers, host));
  return { workload, audience, assertion: get };
}

/** A text that says whose it is; it is read again on every use, since a platform replaces it. */
function ofText(read: () => string): Parts {
  return { workload: () => JSON.stringify(readSubject(read().trim())), get: read };
}

function ofGithub(host: SourceHost): Parts {
  const { env, from } = host;
  const { ACTIONS_ID_TOKEN_REQUEST_URL: address, ACTIONS_ID_TOKEN_REQUEST_TOKEN: token } = env;
  noteSecretVariables(env, "ACTIONS_ID_TOKEN_REQUEST_URL", "ACTIONS_ID_TOKEN_REQUEST_TOKEN");
  return {
    // A runner of one's own may keep its store for the next job, which may be another repository's.
    workload: `github-actions ${env["GITHUB_REPOSITORY"]} ${env["GITHUB_RUN_ID"]} ${env["GITHUB_JOB"]}`,
    async get({ audience, signal }) {
      if (!address || !token)
        throw usageError(
          `${from} needs ACTIONS_ID_TOKEN_REQUEST_URL and ACTIONS_ID_TOKEN_REQUEST_TOKEN, which are not set`,
          "run it in a job of GitHub Actions with the permission id-token: write",
        );
      const headers = { authorization: `Bearer ${token}` };
      return readMember(await requestFrom(withQuery(address, { audience }), headers, host, signal), "value", from);
    },
  };
}

function ofGoogle(host: SourceHost): Parts {
  const { env, from } = host;
  const server = env["GCE_METADATA_HOST"] || "metadata.google.internal";
  const path = "/computeMetadata/v1/instance/service-accounts/default/identity";
  return {
    workload: "gcp",
    async get({ audience, signal }) {
      const address = withQuery(`http://${server}${path}`, { audience, format: "full" });
      const { text, response } = await requestFrom(address, { "metadata-flavor": "Google" }, host, signal);
      if (response.headers.get("metadata-flavor") === "Google") return text.trim();
      throw sourceRefusalError("bad_token_answer", `${from}: ${quote(server)} answers without Metadata-Flavor: Google`);
    },
  };
}

/** A managed identity: of App Service and Container Apps by the variables that these set, else of a virtual machine. */
function ofAzure(host: SourceHost): Parts {
  const { IDENTITY_ENDPOINT: endpoint, IDENTITY_HEADER: secret, AZURE_CLIENT_ID: identity } = host.env;
  noteSecretVariables(host.env, "IDENTITY_ENDPOINT", "IDENTITY_HEADER");
  const server = host.env["AZURE_POD_IDENTITY_AUTHORITY_HOST"] || "http://169.254.169.254";
  const isApp = endpoint && secret;
  const address = isApp ? endpoint : `${server.replace(/\/$/, "")}/metadata/identity/oauth2/token`;
  const headers: Record<string, string> = isApp ? { "x-identity-header": secret } : { metadata: "true" };
  return {
    workload: `azure ${identity ?? ""}`,
    async get({ audience: resource, signal }) {
      const version = isApp ? "2019-08-01" : "2018-02-01";
      const query = { "api-version": version, resource, ...(identity && { client_id: identity }) };
      return readMember(await requestFrom(withQuery(address, query), headers, host, signal), "access_token", host.from);
    },
  };
}

/** The first JWT-SVID that the agent of SPIRE on this machine issues. */
function ofSpire({ env, from }: SourceHost): Parts {
  const socket = env["SPIFFE_ENDPOINT_SOCKET"]?.replace(/^unix:(\/\/)?/, "");
  return {
    workload: "spiffe",
    async get({ audience, signal }) {
      const words = ["spire-agent", "api", "fetch", "jwt", "-audience", audience, "-output", "json"];
      const text = await commandOutput([...words, ...(socket ? ["-socketPath", socket] : [])], { from, env, signal });
      const svid = /"svid"\s*:\s*"([\w.-]+)"/.exec(text)?.[1];
      if (svid === undefined)
        throw usageError(`${from}: spire-agent printed no JWT-SVID`, "register the workload with SPIRE");
      return svid;
    },
  };
}

function withQuery(address: string, query: Record<string, string>): string {
  const url = parseUrl(address);
  for (const [name, value] of Object.entries(query)) url?.searchParams.set(name, value);
  return url?.href ?? address;
}

const MAX_BYTES = 64 * 1024;

/**
 * Asks a token service. What is on this machine or its link is reached directly, never through a proxy, which would
 * answer for its own machine; all else needs https. A redirect is refused: the headers are proofs for this address.
 */
async function requestFrom(
  address: string,
  headers: Record<string, string>,
  { fetch, from }: SourceHost,
  signal: AbortSignal | undefined,
) {
  const url = parseUrl(address);
  const host = url?.hostname ?? "";
  const isNear = isLoopbackHost(host) || classifyHost(host) === "forbidden";
  if (url?.protocol !== "https:" && !(url?.protocol === "http:" && isNear))
    throw usageError(`${from}: ${quote(address)} must be https, or http to this machine or its metadata server`);
  const send = createTransport({
    fetch: url.protocol === "http:" ? createFetch({}, undefined) : fetch,
    timeoutMs: 10_000,
    deadlineMs: 30_000,
    maxBodyBytes: MAX_BYTES,
    redirects: "manual",
  });
  const redactor = new Redactor();
  for (const value of Object.values(headers)) redactor.add(value.replace(/^\w+ /, ""));
  const mask = (text: string) => redactor.redact(text);
  const accept = { accept: "application/json, text/plain", "accept-encoding": "identity" };
  const reply = await send(new HttpRequest(url.href, { headers: { ...accept, ...headers } }), signal, { mask });
  const { status, text } = reply;
  if (status >= 300 && status < 400)
    throw sourceRefusalError(
      "redirect_refused",
      `${from}: ${quote(shownUrl(url.href))} answers with a redirect, which is not followed`,
    );
  if (status === 200) return reply;
  const said = text.trim() === "" ? "" : `: ${quote(mask(text.trim()), 200)}`;
  throw new AgentAuthError("http_error", `${from}: ${quote(shownUrl(url.href))} answers ${status}${said}`, {
    class: status === 429 || status >= 500 ? "unavailable" : "remote",
    status,
    url: shownUrl(url.href),
    hint: "check that the platform gives this workload an identity",
  });
}

function readMember({ text, url }: { text: string; url: string }, name: string, from: string): string {
  const value = parseJsonObject(text)?.[name];
  if (typeof value === "string") return value;
  // The text may hold a token: no message quotes it.
  throw sourceRefusalError("bad_token_answer", `${from}: the answer of ${quote(shownUrl(url))} has no ${name}`);
}

/** A header that carries a secret has it by a reference, since others can read the command line. */
function parseHeaders(lines: readonly string[], { env, from }: SourceHost): Record<string, string> {
  const entries = lines.map((line): [string, string] => {
    const [, name = "", scheme = "", value = ""] =
      /^([!#$%&'*+.^_`|~\w-]+):\s*(?:([\w-]+)\s+)?(\S.*)$/.exec(line) ?? [];
    const details = `the header ${quote(name)} of ${from}`;
    if (name === "") throw usageError(`a header of ${from} must be "Name: value"`);
    const isNamed = /^(env|file|exec):/.test(value);
    if (!isNamed && /auth|cookie|token|secret|key/i.test(name))
      throw usageError(`${details} may hold a secret: name it with env:NAME, file:PATH or exec:COMMAND`);
    const secret = isNamed ? namedSecret(value, details, env) : value;
    if (!/^[\x20-\x7e]+$/.test(secret))
      throw usageError(`${details} has a character that is not allowed in a header value`);
    return [name.toLowerCase(), scheme === "" ? secret : `${scheme} ${secret}`];
  });
  return Object.fromEntries(entries);
}

/**
 * Reads an assertion as platforms write it for their workloads: readable by all their processes, often behind a symbolic
 * link. Another user must not be able to put one of another workload there.
 */
function readAssertion(path: string, from: string, missing?: string): string {
  const what = `${from} ${quote(path)}`;
  const text = readTrustedFile(path, what);
  if (text === undefined)
    throw usageError(`${what} cannot be read`, missing ?? "name the file that your platform writes the assertion to");
  if (text.length > MAX_BYTES)
    throw usageError(`${what} is larger than ${MAX_BYTES} bytes`, "name a file with one JWT");
  return text;
}

function sourceRefusalError(code: string, message: string): AgentAuthError {
  return new AgentAuthError(code, message, { class: "refused" });
}

/** Machine grants as settings name them, and as they are stored with their tokens so that later commands find them. */

/** What a machine grant is made of: where its proofs are, and no proof. */
export interface GrantRecipe {
  grant: GrantFlag;
  privateKey?: string | undefined;
  assertion?: string | undefined;
  assertionAudience?: string | undefined;
  assertionHeader?: string[] | undefined;
  idpTokenEndpoint?: string | undefined;
  idpClientId?: string | undefined;
  /** The secret itself: a recipe is stored as secrets are. */
  idpClientSecret?: string | undefined;
}

/** The environment of a grant, how it reaches what is not on this machine, and who masks its secrets. */
export interface GrantHost {
  env: Env;
  fetch(): typeof globalThis.fetch;
  onSecret(secret: string): void;
}

const ID_TOKEN_VARIABLE = "AGENTAUTH_ID_TOKEN";

type MakeGrant = (recipe: GrantRecipe, host: GrantHost) => MachineGrant;

const MAKE_GRANT: Readonly<Record<GrantFlag, MakeGrant>> = {
  "client-credentials": () => ({ type: "client_credentials" }),
  "jwt-bearer": ({ assertion = "", assertionAudience: audience, assertionHeader: headers }, host) => {
    const { env } = host;
    const workload = openSource(assertion, { audience, headers }, { env, fetch: host.fetch(), from: "--assertion" });
    const get = async (request: AssertionRequest) => masked((await workload.assertion(request)).trim(), host);
    return { type: "jwt_bearer", ...workload, assertion: get };
  },
  "id-jag": ({ idpTokenEndpoint = "", idpClientId = "", idpClientSecret }, host) => {
    const idp = { tokenEndpoint: idpTokenEndpoint, clientId: idpClientId, clientSecret: idpClientSecret };
    return { type: "id_jag", idToken: () => masked(idTokenInEnvironment(host.env), host), idp };
  },
};

function idTokenInEnvironment(env: Env): string {
  const set = env[ID_TOKEN_VARIABLE];
  if (set !== undefined) return secretOrReferenced(set, ID_TOKEN_VARIABLE, env).replace(/\r?\n$/, "");
  const hint = `give it in ${ID_TOKEN_VARIABLE}, or its file: ${ID_TOKEN_VARIABLE}=file:<path>`;
  throw usageError("--grant id-jag requires the ID token of a user", hint);
}

function masked(secret: string, { onSecret }: GrantHost): string {
  onSecret(secret);
  return secret;
}

/** The machine grant of a recipe. @throws `AgentAuthError` `usage` for a source of assertions that is none */
export function makeGrant(recipe: GrantRecipe, host: GrantHost): MachineGrant {
  return MAKE_GRANT[recipe.grant](recipe, host);
}

/**
 * A recipe as it is stored: later commands may run in another folder.
 *
 * @throws `AgentAuthError` `usage` for a proof on standard input, which no later command can read
 */
export function storedRecipe(recipe: GrantRecipe, folder: string): string {
  const { privateKey: key, assertion } = recipe;
  if (key === "-")
    throw usageError(
      '--private-key "-" reads standard input, which no later command can read again',
      "--private-key <file>",
    );
  const privateKey = key === undefined || isReference(key) || isAbsolute(key) ? key : resolve(folder, key);
  const [, path] = /^file:(.+)$/s.exec(assertion ?? "") ?? [];
  const source = path === undefined ? assertion : `file:${resolve(folder, path)}`;
  return JSON.stringify({ ...recipe, privateKey, assertion: source });
}

/** How stored recipes are read. @param recipe what is stored with the tokens of this run's own machine grant */
export function storedGrants(host: GrantHost, recipe?: string): StoredGrants {
  return {
    recipe,
    async read(text, { clientId, clientSecret }) {
      const stored = readRecipe(text);
      const { privateKey: file } = stored;
      const proof: Partial<PreRegisteredClient> =
        file === undefined ? { clientSecret } : { privateKey: await readKey(file, host.env) };
      const client = clientId === "" ? undefined : { clientId, ...proof };
      return { client, grant: makeGrant(stored, host) };
    },
  };
}

export async function readKey(file: string, env: Env, text?: string) {
  const { readPrivateKey } = await import("./private-key.js");
  const from = `--private-key ${quote(file)}`;
  return readPrivateKey(text ?? namedSecret(file, "--private-key", env), { from });
}

function readRecipe(text: string): GrantRecipe {
  const value = parseStrictJson(text);
  if (isJsonObject(value) && Object.hasOwn(MAKE_GRANT, String(value["grant"]))) return value as unknown as GrantRecipe;
  throw usageError("the stored machine grant is one that this version does not know", "log in again with --grant");
}
