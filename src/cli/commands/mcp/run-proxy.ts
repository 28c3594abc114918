import { AgentAuthError } from "../../../errors.js";
import { networkError } from "../../../http/network-error.js";
import { runStdioProxy } from "../../../mcp/stdio-proxy.js";
import type { AgentClient } from "../../../oauth/agent.js";
import { loginRequired } from "../../../oauth/grant/grant-requirements.js";
import { parseMcpUrl } from "../../../oauth/model/resource.js";
import { loginFirst } from "../../clients/login-first.js";
import { parseMcpUrlArgument } from "../../clients/mcp-url.js";
import type { AgentFlags } from "../../flags/agent.js";
import { stdinFlag } from "../../flags/grant.js";
import { escapeJson } from "../../output/safe-json.js";
import type { CommandContext } from "../../runtime/context.js";
import { EXIT_CODES } from "../../runtime/exit-codes.js";
import { cliHint, diagnosed } from "../../runtime/hints.js";

/** Options of `mcp proxy`. */
export interface ProxyFlags extends Omit<AgentFlags, "output"> {
  url: string;
}

/** `mcp proxy`: connects a host that speaks over standard input and output to a server that requires a token. */
export async function runProxy(options: ProxyFlags, context: CommandContext): Promise<number> {
  const url = parseMcpUrlArgument(options.url);
  checkStdin(options);
  const { io, redactor, signal } = context;
  const { stdin, stdout } = io;
  await runStdioProxy({
    url,
    fetch: await fetchOf(url, options, context),
    input: stdin.stream,
    // On a terminal, control characters in the JSON are escaped; a host gets it unchanged.
    write: (text) => stdout.write(stdout.isTTY ? escapeJson(text) : text),
    signal,
    mask: (text) => redactor.redact(text),
    onWarning: (text) => io.warn(redactor.redact(text)),
    onLog: (text) => io.verbose(redactor.redact(text)),
  });
  return EXIT_CODES.ok;
}

/** Standard input carries the host's messages: no secret may be read from it. */
function checkStdin(flags: ProxyFlags): void {
  const given = stdinFlag(flags);
  const taken = flags.flow === "paste" ? "--flow paste" : given && `${given} -`;
  if (taken === undefined) return;
  throw new AgentAuthError("usage", `${taken} reads standard input, which carries the MCP host's messages`, {
    class: "usage",
    hint:
      taken === "--flow paste" ? "log in beforehand: agentauth login <mcp_url> --flow paste" : "give a private file",
  });
}

/** A fetch with the token, and with hints in its errors. */
async function fetchOf(url: string, options: ProxyFlags, context: CommandContext): Promise<typeof globalThis.fetch> {
  // Never prompts, even on a terminal: standard input is for the server.
  const unattended = context.with({ io: { ...context.io, stdin: { ...context.io.stdin, isTTY: false } } });
  // A tool may take longer than the usual idle timeout, and a notification stream may be silent for hours.
  const agent = await unattended.agent({ idleTimeoutMs: 0 });
  // For the end of a session, which must not start a login.
  const withoutLogin = unattended.mayLogin() ? await unattended.agent({ login: "never" }) : agent;
  const key = {
    profile: context.settings().profile.value,
    server: parseMcpUrl(url).resource,
    account: options.accountHint,
  };
  const withHint = context.withHint ?? cliHint;
  return async (input, init) => {
    const endsSession = init?.method === "DELETE";
    const response = await send(endsSession ? withoutLogin : agent, options.scope, input, init).catch(
      (error: unknown) => {
        throw init?.signal?.aborted ? error : diagnosed(withHint(networkError(error, url)));
      },
    );
    if (!response.ok) await redactCurrentToken(withoutLogin, url, context);
    // With a machine grant, the server's own message is more useful.
    if (response.status !== 401 || options.grant !== undefined) return response;
    await response.body?.cancel().catch(() => undefined);
    throw withHint(loginRequired(key, "the server rejected the token (HTTP 401)"));
  };
}

async function send(
  agent: AgentClient,
  scope: string | undefined,
  input: string | URL | Request,
  init: RequestInit | undefined,
): Promise<Response> {
  if (scope !== undefined) await loginFirst(agent, String(input), { scope, signal: init?.signal ?? undefined });
  return agent.fetch(input, init);
}

/** An error response is passed on to the host, and the server may echo the token in it. */
async function redactCurrentToken(
  agent: AgentClient,
  url: string,
  { redactor, signal }: CommandContext,
): Promise<void> {
  const token = await agent.token(url, { minTtl: 0, signal }).catch(() => undefined);
  if (token) redactor.add(token.value);
}
