import { AgentAuthError } from "../errors.js";
import { isJsonObject } from "../http/strict-json.js";
import { CAPABILITIES } from "./elicitation.js";
import { errorBody, isSessionLost, RpcFailure, readHttpFailure } from "./errors.js";
import { HttpSession, type HttpSessionOptions, type RequestLimits } from "./http-session.js";
import { INITIALIZE, INITIALIZED } from "./json-rpc.js";
import { hasValidMarks, ParamHeaders } from "./param-headers.js";

/** A tool as its server describes it, with every field that it has. */
export interface McpTool {
  name: string;
  description?: string;
  inputSchema: Record<string, unknown>;
  [field: string]: unknown;
}

export interface McpSession {
  /** All tools, from every page. */
  tools(signal: AbortSignal): Promise<McpTool[]>;
  /** Calls a tool; `isError` in the result means that the tool failed. */
  call(
    name: string,
    args: Record<string, unknown>,
    signal: AbortSignal,
  ): Promise<{ isError?: boolean | undefined } & Record<string, unknown>>;
  /** Ends what is still being sent. */
  close(): Promise<void>;
}

/** Options of {@link openMcp}. */
export interface McpOptions {
  /** Sends each request with the token. */
  fetch: HttpSessionOptions["fetch"];
  /** Identifies the token that was sent last: some servers hold a session to the one that it began with. */
  token?: HttpSessionOptions["token"];
  /** The name of the client, sent to the server. */
  name: string;
  /** The version of the client, sent to the server. */
  version: string;
  /** The extension of MCP that requests use, such as that of a machine grant. Default: none. */
  extension?: string | undefined;
  /** The user, where one is present who can open an address that the server needs. */
  user?: HttpSessionOptions["user"];
  /** Milliseconds until each request must have its response; a progress notification restarts them. Default: 60,000. */
  timeoutMs?: number;
  /** Cancels opening the session. */
  signal: AbortSignal;
}

/** The revision without sessions and without `initialize`: each request names it. */
const SESSIONLESS_REVISION = "2026-07-28";

/** The protocol revisions that begin with `initialize`, newest first. */
export const REVISIONS: readonly string[] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", "2024-10-07"];

const DEFAULT_TIMEOUT_MS = 60_000;
/** A server whose list of tools has more pages than this does not end it. */
const MAX_PAGES = 64;
/** The error of a server that needs arguments in headers as well (SEP-2243). */
const HEADER_MISMATCH = -32_020;

interface OpenedSession {
  readonly session: HttpSession;
  /** The newest revision that was offered; undefined for the newest of all. */
  readonly offered: string | undefined;
}

/**
 * Opens a session over streamable HTTP with the newest revision that both sides support. A session that the server loses,
 * and a revision that it refuses later, are replaced once for each request.
 *
 * It throws the errors of {@link HttpSession}, and so do the methods of the session; `errors.ts` translates them.
 */
export async function openMcp(mcpUrl: string, options: McpOptions): Promise<McpSession> {
  const { timeoutMs: timeout = DEFAULT_TIMEOUT_MS } = options;
  const connect: Connect = (offered) => connectTo(mcpUrl, options, timeout, offered);
  let connection = await connect().catch((error: unknown) => {
    if (!mayRefuseRevision(error)) throw error;
    return stepDown(connect, error, REVISIONS[0]);
  });
  const run = async <T>(work: (session: HttpSession) => Promise<T>): Promise<T> => {
    try {
      return await work(connection.session);
    } catch (error) {
      const next = reconnectAfter(connect, connection, error);
      if (next === undefined) throw error;
      connection.session.close();
      connection = await next;
      return work(connection.session);
    }
  };
  return {
    tools: (signal) => run((session) => listTools(session, { signal, timeout })),
    call: (tool, args, signal) => run((session) => callTool(session, tool, args, { signal, timeout })),
    close: async () => connection.session.close(),
  };
}

async function listTools(session: HttpSession, limits: RequestLimits, headers?: ParamHeaders): Promise<McpTool[]> {
  if (session.capabilities["tools"] === undefined) return [];
  const found: McpTool[] = [];
  let cursor: string | undefined;
  for (let page = 0; page < MAX_PAGES; page++) {
    const params = { cursor };
    const result = await session.request("tools/list", params, limits);
    const { tools, nextCursor } = result;
    if (!Array.isArray(tools) || !tools.every(isTool)) throw new SyntaxError("its list of tools is malformed");
    headers?.update({ method: "tools/list", params }, { result });
    found.push(...tools.filter(({ inputSchema }) => !session.isSessionless || hasValidMarks(inputSchema)));
    if (typeof nextCursor !== "string" || nextCursor === cursor) return found;
    cursor = nextCursor;
  }
  const problem = `the MCP server's list of tools has more than ${MAX_PAGES} pages`;
  throw new AgentAuthError("mcp_failed", problem, { class: "remote" });
}

function isTool(value: unknown): value is McpTool {
  return isJsonObject(value) && typeof value["name"] === "string" && isJsonObject(value["inputSchema"]);
}

async function callTool(
  session: HttpSession,
  name: string,
  args: Record<string, unknown>,
  limits: RequestLimits,
): Promise<Record<string, unknown>> {
  // A server sends progress only if the client asks for it.
  const params = { name, arguments: args, _meta: { progressToken: 0 } };
  const send = (headers = {}) => session.request("tools/call", params, { ...limits, headers });
  const result = await send().catch(async (error: unknown) => {
    if (!session.isSessionless || readCode(error) !== HEADER_MISMATCH) throw error;
    const headers = new ParamHeaders();
    await listTools(session, limits, headers);
    return send(headers.of({ method: "tools/call", params }));
  });
  const { content = [] } = result;
  const isResult = Array.isArray(content) && content.every((part) => isJsonObject(part));
  if (!isResult) throw new SyntaxError("the result of the tool is malformed");
  return { content, ...result };
}

/** The code of a JSON-RPC error, also in the body of an HTTP error. */
function readCode(error: unknown): unknown {
  return error instanceof RpcFailure ? error.code : errorBody(error).error?.["code"];
}

/** The connection in place of one whose session is lost or whose revision is refused; undefined for other errors. */
function reconnectAfter(
  connect: Connect,
  { session, offered }: OpenedSession,
  error: unknown,
): Promise<OpenedSession> | undefined {
  if (session.sessionId !== undefined && isSessionLost(error)) return connect(offered);
  return refusesRevision(error) ? stepDown(connect, error, session.revision) : undefined;
}

/** Offers older revisions, each once. @throws the first error if the server refuses them all */
async function stepDown(connect: Connect, error: unknown, refused = ""): Promise<OpenedSession> {
  for (const revision of olderRevisions(error, refused)) {
    try {
      return await connect(revision);
    } catch (next) {
      if (!mayRefuseRevision(next)) throw next;
    }
  }
  throw error;
}

/** Begins a session. @param offered the newest revision to offer; undefined for the newest of all */
type Connect = (offered?: string) => Promise<OpenedSession>;

async function connectTo(
  mcpUrl: string,
  options: McpOptions,
  timeout: number,
  offered: string | undefined,
): Promise<OpenedSession> {
  const { name, version, signal } = options;
  const session = new HttpSession(mcpUrl, options);
  const limits = { signal, timeout };
  if (offered === undefined && (await discover(session, limits))) return { session, offered };
  const protocolVersion = offered ?? REVISIONS[0] ?? "";
  const clientInfo = { name, version };
  const result = await session.request(INITIALIZE, { protocolVersion, capabilities: CAPABILITIES, clientInfo }, limits);
  const { protocolVersion: agreed, capabilities } = result;
  const allowed = REVISIONS.slice(REVISIONS.indexOf(protocolVersion));
  if (typeof agreed !== "string" || !allowed.includes(agreed))
    throw new Error(`Server's protocol version is not supported: ${String(agreed)}`);
  session.revision = agreed;
  if (isJsonObject(capabilities)) session.capabilities = capabilities;
  await session.notify({ jsonrpc: "2.0", method: INITIALIZED }, signal);
  return { session, offered };
}

/** Asks whether the server speaks the revision without sessions; most of those that do not have never heard of the question. */
async function discover(session: HttpSession, limits: RequestLimits): Promise<boolean> {
  const result = await session.request("server/discover", {}, limits, SESSIONLESS_REVISION).catch((error: unknown) => {
    const status = readHttpFailure(error)?.status;
    const isAnswer = status !== undefined ? ![401, 403].includes(status) && status < 500 : error instanceof RpcFailure;
    if (!isAnswer) throw error;
  });
  const { supportedVersions, capabilities } = result ?? {};
  if (!Array.isArray(supportedVersions) || !supportedVersions.includes(SESSIONLESS_REVISION)) return false;
  session.isSessionless = true;
  session.revision = SESSIONLESS_REVISION;
  if (isJsonObject(capabilities)) session.capabilities = capabilities;
  return true;
}

/** Whether the server may have refused `initialize` for the revision that the client offers. */
function mayRefuseRevision(error: unknown): boolean {
  return readHttpFailure(error)?.status === 400 || supportedIn(error) !== undefined;
}

/** Whether the server refused a request for the revision in its `MCP-Protocol-Version` header, before it processed it. */
function refusesRevision(error: unknown): boolean {
  const text = readHttpFailure(error)?.status === 400 ? errorBody(error).text : undefined;
  return text !== undefined && /\bprotocol[ _-]?version\b/i.test(text);
}

/**
 * The older revisions to offer after the server has refused one, newest first: the newest that the server names, or all
 * if it names none.
 */
function olderRevisions(error: unknown, refused: string): string[] {
  const older = REVISIONS.slice(REVISIONS.indexOf(refused) + 1);
  const supported = supportedIn(error);
  if (supported) return older.filter((revision) => supported.includes(revision)).slice(0, 1);
  const { text = "" } = errorBody(error);
  const named = older.filter((revision) => text.includes(revision));
  return named.length > 0 ? named.slice(0, 1) : older;
}

/** The revisions in the data of a JSON-RPC error (lifecycle, "Error Handling"). */
function supportedIn(error: unknown): unknown[] | undefined {
  const data = error instanceof RpcFailure ? error.data : errorBody(error).error?.["data"];
  const supported = isJsonObject(data) ? data["supported"] : undefined;
  return Array.isArray(supported) ? supported : undefined;
}
