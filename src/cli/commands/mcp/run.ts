import { AgentAuthError, abortedError, errorMessage, isAgentAuthError, usageError } from "../../../errors.js";
import { followSignal, untilAborted } from "../../../http/deadline.js";
import { HttpRequest } from "../../../http/http-message.js";
import { networkError } from "../../../http/network-error.js";
import { isJsonObject } from "../../../http/strict-json.js";
import { VERSION } from "../../../http/version.js";
import { openBrowser } from "../../../login/browser.js";
import { addressText, BROWSER_FAILED } from "../../../login/messages.js";
import { connectionError, isTimeout, serverMessage } from "../../../mcp/errors.js";
import { parseExactJson } from "../../../mcp/json-rpc.js";
import { type McpOptions, type McpSession, openMcp } from "../../../mcp/session.js";
import type { AgentClient } from "../../../oauth/agent.js";
import { saysTokenRejected } from "../../../oauth/grant/token-fetch.js";
import { DEFAULT_LOGIN_TIMEOUT_MS } from "../../../oauth/login/login-method.js";
import { parseExtension } from "../../../oauth/machine/grant-strategies.js";
import { escapeText, quote, type Secret, shellWord } from "../../../redact.js";
import { lateError, readLimit, readText, responseError } from "../../clients/http-error.js";
import { loginFirst, parseMcpUrlArgument } from "../../clients/login-first.js";
import { canConfirm, confirm } from "../../clients/login-method.js";
import type { AgentFlags } from "../../flags/agent.js";
import type { OutputFlags } from "../../flags/global.js";
import { rowColumns } from "../../output/columns.js";
import { isRecord } from "../../output/value.js";
import { chooseFormat, printObject, printRows } from "../../output/writer.js";
import { type CommandContext, canPrompt } from "../../runtime/context.js";
import { EXIT_CODES } from "../../runtime/exit-codes.js";

const TOOLS = rowColumns([
  { path: "name", header: "TOOL", kind: "name" },
  { path: "description", header: "ABOUT" },
]);

const LIST_TIMEOUT_S = 30;
/** Tools may take a while. */
const CALL_TIMEOUT_S = 60;

/** A tool as `mcp tools -o json` prints it: as its server describes it. */
interface PrintedTool {
  /** Its name. */
  name: string;
  /** What it does. */
  description?: string | undefined;
  /** Its input, as a JSON Schema. */
  inputSchema: Record<string, unknown>;
  /** Its name for users. */
  title?: string | undefined;
  /** Its output, as a JSON Schema. */
  outputSchema?: Record<string, unknown> | undefined;
  /** What its server says of its effects. */
  annotations?: Record<string, unknown> | undefined;
  /** Its icons. */
  icons?: Record<string, unknown>[] | undefined;
  /** How it may be called. */
  execution?: Record<string, unknown> | undefined;
  /** Metadata of its server. */
  _meta?: Record<string, unknown> | undefined;
  /** Fields of later versions of the protocol. */
  [field: string]: unknown;
}

export function runTools(options: McpFlags, context: CommandContext): Promise<number> {
  return withSession(options, context, LIST_TIMEOUT_S, async (session) => {
    const tools: PrintedTool[] = withoutSecrets(await session.tools(context.signal), context.redactor);
    const isId = chooseFormat(options, context.settings(), context.io) === "id";
    await printRows(isId ? tools.map(({ name }) => ({ id: name })) : tools, TOOLS, options, context);
    return EXIT_CODES.ok;
  });
}

/** `mcp call`: the tool's text on a terminal, its result as JSON for programs; exit code 6 when the tool failed. */
export async function runCall(options: McpFlags, context: CommandContext): Promise<number> {
  const args = await readArgs(options, context);
  return withSession(options, context, CALL_TIMEOUT_S, async (session) => {
    const result = withoutSecrets(await session.call(options.tool, args, context.signal), context.redactor);
    const format = chooseFormat(options, context.settings(), context.io);
    if (format === "table" || format === "plain" || format === "wide") {
      await context.io.stdout.write(readText(result));
    } else {
      await printObject(format, result, options, context);
    }
    if (result.isError === true)
      throw new AgentAuthError(
        "mcp_failed",
        `the tool ${quote(options.tool, 80)} failed; its output is on standard output`,
        {
          class: "remote",
          hint: `the arguments of each tool: agentauth mcp tools ${shellWord(options.url)} --json`,
        },
      );
    return EXIT_CODES.ok;
  });
}

/** A server's result with the token and other secrets masked, since the server may echo them. */
function withoutSecrets<T>(value: T, redactor: CommandContext["redactor"]): T {
  if (typeof value === "string") return redactor.redactKnown(value) as T;
  if (Array.isArray(value)) return value.map((one: unknown) => withoutSecrets(one, redactor)) as T;
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, withoutSecrets(one, redactor)])) as T;
}

async function readArgs({ args }: McpFlags, { io }: CommandContext): Promise<Record<string, unknown>> {
  const text = args === "-" ? await io.stdin.text() : (args ?? "{}");
  const complain = (why: string) =>
    usageError(`--args ${quote(text, 80)} ${why}`, `for example --args '{"text":"hello"}'`);
  let value: unknown;
  try {
    value = parseExactJson(text);
  } catch (cause) {
    throw complain(`is not JSON: ${errorMessage(cause)}`);
  }
  if (!isJsonObject(value)) throw complain("is not a JSON object");
  return value;
}

interface McpFlags extends AgentFlags, OutputFlags {
  url: string;
  tool: string;
  args?: string;
}

/** A session whose errors are those of a single request. */
type CliSession = Omit<McpSession, "close">;

/**
 * Runs the work in a session with an MCP server, with its token.
 *
 * @param defaultTimeout seconds for each response without `--timeout`
 * @throws `AgentAuthError` `auth` for 401, `unavailable` for 429, 5xx, a broken connection and a timeout, `remote` for
 * any other error of the server
 */
async function withSession<T>(
  options: McpFlags,
  context: CommandContext,
  defaultTimeout: number,
  work: (session: CliSession) => Promise<T>,
): Promise<T> {
  const url = parseMcpUrlArgument(options.url);
  const { signal } = context;
  // A tool may take longer than the usual idle timeout of a connection: only the limit of each request counts.
  const agent = await context.agent({ idleTimeoutMs: 0 });
  // A login, if needed, comes before the time limit starts.
  const grant = await loginFirst(agent, url, { signal });
  const limit = readLimit(options, context, defaultTimeout);
  const limited = createLimitedFetch(agent, url, limit);
  const withCliError = <R>(call: Promise<R>): Promise<R> =>
    call.catch((error: unknown) => {
      if (signal.aborted) throw abortedError(signal);
      throw cliError(error, { url, limit, failed: limited.failed(), grant });
    });
  const user = presentUser(options, context, url);
  const client = { name: "agentauth", version: VERSION, extension: parseExtension(grant), user };
  const session = await withCliError(
    openMcp(url, { ...client, fetch: limited.fetch, token: limited.token, timeoutMs: limit * 1000, signal }),
  );
  try {
    return await work({
      tools: (callSignal) => withCliError(session.tools(callSignal)),
      call: (...call) => withCliError(session.call(...call)),
    });
  } finally {
    await session.close().catch(() => undefined);
  }
}

/** The user who can open what a server needs: at a terminal, or with a browser that the flags name. */
function presentUser(options: McpFlags, { io, signal }: CommandContext, server: string): McpOptions["user"] {
  const { browser } = options;
  const isNamed = canPrompt(options, io) && browser !== undefined && browser !== "none";
  const isPresent = canConfirm(options, io);
  if (!isNamed && !isPresent) return undefined;
  const say = (text: string) => io.with({ quiet: false }).say(text);
  return {
    async open({ url, message }) {
      say(addressText({ server, url, message }));
      if (browser === "none") return true;
      if (!isNamed && !(await confirm(io, "Open it in your browser?", signal))) return false;
      if ((await openBrowser(url, { command: browser, env: io.env, signal })) === "failed") say(BROWSER_FAILED);
      return true;
    },
    async wait(done) {
      const limit = followSignal(signal, DEFAULT_LOGIN_TIMEOUT_MS);
      const said = isPresent ? confirm(io, "Are you done there?", limit.signal) : done;
      try {
        // Where the server cannot say it, the user does.
        return await untilAborted(Promise.race([said, done.then((isDone) => isDone || said)]), limit.signal);
      } catch (error) {
        if (signal.aborted) throw error;
        return false;
      } finally {
        limit.abort(undefined);
        limit.release();
      }
    },
  };
}

/** A fetch with the token and the time limit that remembers the last error response. */
function createLimitedFetch(agent: AgentClient, url: string, limit: number) {
  let failed: FailedResponse | undefined;
  let token: string | undefined;
  const onToken = (sent: Secret) => {
    token = sent.reveal();
  };
  const fetch: McpOptions["fetch"] = async (address, { signal, ...init }) => {
    const request = new HttpRequest(address, init);
    // The stream for server-initiated messages has no time limit.
    if (init.method !== "POST") return agent.fetch(request, { signal: signal ?? null });
    const call = followSignal(signal ?? undefined);
    // A notification, such as the one that ends the handshake, has no other time limit.
    const timer = setTimeout(() => call.abort(lateError(url, limit)), limit * 1000);
    try {
      const response = await agent.fetch(request, { signal: call.signal, onToken });
      failed =
        response.status >= 400
          ? { response, isRejected: await saysTokenRejected(response, { method: init.method, url }) }
          : undefined;
      return response;
    } catch (error) {
      throw call.signal.aborted ? abortedError(call.signal) : networkError(error, url);
    } finally {
      clearTimeout(timer);
    }
  };
  return { fetch, token: () => token, failed: () => failed };
}

/** The last response with an error, and whether it says that the token was rejected. */
interface FailedResponse {
  response: Response;
  isRejected: boolean;
}

interface SessionContext {
  url: string;
  limit: number;
  failed: FailedResponse | undefined;
  grant: string | undefined;
}

/** The error that `request` would report; a JSON-RPC error keeps the server's message. */
function cliError(error: unknown, { url, limit, failed, grant }: SessionContext): unknown {
  const known = isTimeout(error) ? lateError(url, limit) : connectionError(error, url);
  if (known) return known;
  const message = serverMessage(error);
  if (failed) {
    const { response, isRejected } = failed;
    const httpError = responseError(response, { requested: url, grant, isRejected, words: message });
    if (message === undefined || httpError.class !== "remote") return httpError;
  }
  if (isAgentAuthError(error) || !(error instanceof Error)) return error;
  const text = `the MCP server ${quote(url)}: ${escapeText(message ?? error.message).slice(0, 300)}`;
  return new AgentAuthError("mcp_failed", text, { class: "remote", cause: error });
}
