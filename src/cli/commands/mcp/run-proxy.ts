import { AgentAuthError } from "../../../errors.js";
import { networkError } from "../../../http/network-error.js";
import { runStdioProxy } from "../../../mcp/stdio-proxy.js";
import type { AgentClient } from "../../../oauth/agent.js";
import { parseMcpUrl } from "../../../oauth/discovery/resource.js";
import { loginRequired } from "../../../oauth/login/login-command.js";
import { parseMcpUrlArgument } from "../../clients/mcp-url.js";
import { stdinFlag } from "../../flags/grant.js";
import { escapeJson } from "../../output/safe-json.js";
import type { CommandContext } from "../../runtime/context.js";
import { EXIT_CODES } from "../../runtime/exit-codes.js";
import { cliHint } from "../../runtime/hints.js";
import type { ProxyFlags } from "./options.js";

/** `mcp proxy`: joins a host that speaks over standard input and output to a server that wants a token. */
export async function runProxy(options: ProxyFlags, context: CommandContext): Promise<number> {
  const url = parseMcpUrlArgument(options.url);
  checkInput(options);
  const { io, redactor, signal } = context;
  const { stdin, stdout } = io;
  await runStdioProxy({
    url,
    fetch: await fetchOf(url, options, context),
    input: stdin.stream,
    // On a terminal the JSON must act on nothing; a host gets it as it is.
    write: (text) => stdout.write(stdout.isTTY ? escapeJson(text) : text),
    signal,
    mask: (text) => redactor.redact(text),
    onTrouble: (text) => io.warn(redactor.redact(text)),
    onStep: (text) => io.verbose(redactor.redact(text)),
  });
  return EXIT_CODES.ok;
}

/** Standard input is the host's: nothing else may be read from it. */
function checkInput(flags: ProxyFlags): void {
  const given = stdinFlag(flags);
  const taken = flags.flow === "paste" ? "--flow paste" : given && `${given} -`;
  if (taken === undefined) return;
  throw new AgentAuthError("usage", `${taken} reads standard input, over which the MCP host speaks`, {
    class: "usage",
    hint:
      taken === "--flow paste" ? "sign in beforehand: agentauth login <mcp_url> --flow paste" : "name a private file",
  });
}

/** A fetch with the token, and with errors that say what to do about them. */
async function fetchOf(url: string, options: ProxyFlags, context: CommandContext): Promise<typeof globalThis.fetch> {
  // Also on a terminal nobody is there to be asked: what is typed there is for the server.
  const unattended = context.with({ io: { ...context.io, stdin: { ...context.io.stdin, isTTY: false } } });
  // A tool may think for longer than any connection's usual patience, and a stream for news may have none for hours.
  const agent = await unattended.agent({ idleTimeoutMs: 0 });
  // For what is no reason to sign in: the end of a session.
  const quiet = unattended.mayLogin() ? await unattended.agent({ login: "never" }) : agent;
  const key = {
    profile: context.settings().profile.value,
    server: parseMcpUrl(url).resource,
    account: options.accountHint,
  };
  const told = context.withGivenFlags ?? ((error) => error);
  return async (input, init) => {
    const isFarewell = init?.method === "DELETE";
    const response = await send(isFarewell ? quiet : agent, options.scope, input, init).catch((error: unknown) => {
      throw init?.signal?.aborted ? error : told(cliHint(networkError(error, url)));
    });
    if (!response.ok) await learnToken(quiet, url, context);
    // Where nobody signs in, the server's own words tell more.
    if (response.status !== 401 || options.grant !== undefined) return response;
    await response.body?.cancel().catch(() => undefined);
    throw told(loginRequired(key, "the server refuses the token (HTTP 401)"));
  };
}

async function send(
  agent: AgentClient,
  scope: string | undefined,
  input: string | URL | Request,
  init: RequestInit | undefined,
): Promise<Response> {
  if (scope !== undefined) await agent.token(String(input), { scope, signal: init?.signal ?? undefined });
  return agent.fetch(input, init);
}

/** What a server says of a request that it refuses is told on, and a server may repeat the token in it. */
async function learnToken(agent: AgentClient, url: string, { redactor, signal }: CommandContext): Promise<void> {
  const token = await agent.token(url, { minTtl: 0, signal }).catch(() => undefined);
  if (token) redactor.add(token.value);
}
