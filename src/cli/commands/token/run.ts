import { AgentAuthError, errorMessage, usageError } from "../../../errors.js";
import { parseUrl } from "../../../http/address.js";
import { isJsonObject, parseStrictJson } from "../../../http/strict-json.js";
import { quote, shellWord } from "../../../redact.js";
import { parseMcpUrlArgument, requestToken } from "../../clients/login-first.js";
import { type Asker, checkHandOver, formatToken, UNKNOWN_ASKER } from "../../clients/token-formats.js";
import type { TokenFlags } from "../../flags/agent.js";
import { stdinFlag } from "../../flags/grant.js";
import type { CommandContext } from "../../runtime/context.js";

/** `token`: prints the token and nothing else; nothing at all on failure, or if the request is for another server. */
export async function runToken(options: TokenFlags, context: CommandContext): Promise<undefined> {
  const url = parseMcpUrlArgument(options.url);
  const request = await readCredentialRequest(url, options, context);
  if (request === undefined) return;
  const agent = await context.agent();
  const { scope, minTtl, forceRefresh, format = "raw" } = options;
  const token = await requestToken(agent, url, { scope, minTtl, forceRefresh, signal: context.signal });
  if (format !== "json") checkHandOver(token, `--format ${format}`);
  await context.io.stdout.write(formatToken(format, token, request));
}

const OPERATIONS = ["get", "store", "erase"];
const MAX_REQUEST_BYTES = 64 * 1024;

/**
 * Reads the request of the program that started `token` as its credential helper: an appended operation, attributes on
 * standard input (git: gitcredentials(7); bazel: the credential helper specification), or an environment variable
 * (kubectl: client-go credential plugins).
 *
 * @returns undefined if nothing is to be printed
 * @throws `AgentAuthError` `usage` for an invalid request, `bad_address` (refused) if bazel asks for another server
 */
export async function readCredentialRequest(
  server: string,
  options: TokenFlags,
  context: CommandContext,
): Promise<Asker | undefined> {
  const { format = "raw", operation } = options;
  const now = context.now();
  if (format !== "git" && format !== "bazel") {
    if (operation !== undefined)
      throw usageError(
        `the operation ${quote(operation, 80)} needs --format git or bazel`,
        "leave it out, or add --format",
      );
    return { now, ...UNKNOWN_ASKER, ...(format === "k8s" && { apiVersion: readApiVersion(context.io.env) }) };
  }
  if (operation !== undefined && !OPERATIONS.includes(operation))
    throw usageError(
      `the operation ${quote(operation, 80)} must be one of ${OPERATIONS.join(", ")}`,
      `${format} appends the operation itself`,
    );
  // Logins are stored already. "erase" has no effect, since the program may have sent the token to another server: a
  // token is replaced when it expires, or by --force-refresh.
  if (operation === "store" || operation === "erase") return undefined;
  const text = await requestText(format, options, context);
  if (format === "bazel") {
    checkBazel(text, new URL(server), operation === "get");
    return { now, ...UNKNOWN_ASKER };
  }
  const authtype = readGit(text, new URL(server), operation === "get");
  if (authtype !== undefined) return { now, ...UNKNOWN_ASKER, authtype };
  context.io.verbose(`git asks for another server than ${server}: nothing is printed`);
  return undefined;
}

/** Undefined if stdin is a terminal, where no program sends a request. */
async function requestText(
  format: string,
  options: TokenFlags,
  { io, signal }: CommandContext,
): Promise<string | undefined> {
  const taken = stdinFlag(options);
  if (taken !== undefined)
    throw usageError(`${taken} "-" reads standard input, which carries the request of ${format}`, `${taken} <file>`);
  return io.stdin.isTTY ? undefined : io.stdin.text({ maxBytes: MAX_REQUEST_BYTES, signal });
}

/** Whether git supports bearer tokens; undefined if it asks for another server, or for none. */
function readGit(text: string | undefined, server: URL, wasRequested: boolean): boolean | undefined {
  if (text === undefined || (text === "" && !wasRequested)) return UNKNOWN_ASKER.authtype;
  const lines = text.split(/\r?\n/);
  const end = lines.indexOf("");
  const attributes = lines.slice(0, end < 0 ? undefined : end).map((line) => line.split(/=(.*)/s, 2));
  const values = (name: string) => attributes.flatMap(([key, value = ""]) => (key === name ? [value] : []));
  const [protocols, hosts] = [values("protocol"), values("host")];
  if (protocols.length === 0 || hosts.length === 0) return undefined;
  // Every value of a repeated attribute must match.
  const isFor = protocols.every((protocol) => hosts.every((host) => isOrigin(`${protocol}://${host}`, server)));
  return isFor ? values("capability[]").includes("authtype") : undefined;
}

/** Whether a scheme and host name an origin and nothing else. */
function isOrigin(asked: string, server: URL): boolean {
  return /^[a-z]+:\/\/[^\s/\\?#@%]+$/i.test(asked) && parseUrl(asked)?.origin === server.origin;
}

function checkBazel(text: string | undefined, server: URL, wasRequested: boolean): void {
  if (text === undefined || (text === "" && !wasRequested)) return;
  const uri = readUri(text);
  if (new URL(uri).origin === server.origin) return;
  throw new AgentAuthError(
    "bad_address",
    `bazel asks for "uri" ${quote(uri)}, but the token is only for ${server.origin}`,
    {
      class: "refused",
      hint: `set the helper for this host only: ${shellWord(`--credential_helper=${server.hostname}`)}=<helper>`,
    },
  );
}

function readUri(text: string): string {
  const hint = 'send JSON such as {"uri":"https://mcp.example/mcp"}';
  const complain: Complain = (rule, cause) => usageError(`bazel's request on standard input ${rule}`, hint, cause);
  const uri = readMember(text, "uri", complain);
  if (typeof uri !== "string") throw complain('has no "uri"');
  if (parseUrl(uri) === undefined) throw complain(`has the "uri" ${quote(uri)}, which is not a URL`);
  return uri;
}

const API_VERSIONS = [UNKNOWN_ASKER.apiVersion, "client.authentication.k8s.io/v1beta1"];

/** The API version that kubectl requests in `KUBERNETES_EXEC_INFO`; the response must have the same. */
function readApiVersion(env: CommandContext["io"]["env"]): string {
  const text = env["KUBERNETES_EXEC_INFO"];
  if (text === undefined) return UNKNOWN_ASKER.apiVersion;
  const hint = `apiVersion in the kubeconfig's exec section: ${UNKNOWN_ASKER.apiVersion}`;
  const complain: Complain = (rule, cause) => usageError(`KUBERNETES_EXEC_INFO ${rule}`, hint, cause);
  const version = readMember(text, "apiVersion", complain);
  if (typeof version === "string" && API_VERSIONS.includes(version)) return version;
  throw complain(`has the apiVersion ${quote(version)}, which must be one of ${API_VERSIONS.join(", ")}`);
}

/** Makes an error from the end of a sentence about a text. */
type Complain = (rule: string, cause?: unknown) => AgentAuthError;

/** A member of a JSON object; undefined where there is none. */
function readMember(text: string, name: string, complain: Complain): unknown {
  try {
    const value = parseStrictJson(text);
    return isJsonObject(value) ? value[name] : undefined;
  } catch (cause) {
    throw complain(`is not JSON: ${errorMessage(cause)}`, cause);
  }
}
