import { usageError } from "../../../errors.js";
import { discardBody } from "../../../http/buffered-response.js";
import { Cookies } from "../../../http/cookies.js";
import { HttpHeaders, HttpRequest, type HttpRequestInit } from "../../../http/http-message.js";
import { isSessionUnknown } from "../../../http/lost-session.js";
import { networkError } from "../../../http/network-error.js";
import { sendWithinOrigin } from "../../../http/redirect.js";
import type { SendRequest } from "../../../mcp/http-channel.js";
import { runStdioProxy, type StdioProxyOptions } from "../../../mcp/proxy.js";
import type { AgentClient } from "../../../oauth/agent.js";
import { loginRequired } from "../../../oauth/grant/grant-requirements.js";
import { saysTokenRejected } from "../../../oauth/grant/token-fetch.js";
import { parseExtension } from "../../../oauth/machine/grant-strategies.js";
import { parseMcpUrl } from "../../../oauth/model/resource.js";
import { readSecretFile, referencedSecret } from "../../../profile/secrets.js";
import { quote, type Secret } from "../../../redact.js";
import { checkHeaderValue, parseHeaderLine } from "../../clients/http-error.js";
import { loginFirst, parseMcpUrlArgument } from "../../clients/login-first.js";
import type { AgentFlags } from "../../flags/agent.js";
import { stdinFlag } from "../../flags/grant.js";
import { escapeJson } from "../../output/value.js";
import type { CommandContext } from "../../runtime/context.js";
import { EXIT_CODES } from "../../runtime/exit-codes.js";
import { cliHint } from "../../runtime/hints.js";

export interface ProxyFlags extends Omit<AgentFlags, "output">, HeaderFlags {
  url: string;
  allowTool?: string[];
  hideTool?: string[];
  keepAlive?: number | true;
}

const DEFAULT_KEEP_ALIVE_S = 30;

/** `mcp proxy`: connects a host that speaks over standard input and output to a server that requires a token. */
export async function runProxy(options: ProxyFlags, context: CommandContext): Promise<number> {
  const url = parseMcpUrlArgument(options.url);
  checkStdin(options);
  const headers = readHeaders(options, context);
  const { io, redactor, signal } = context;
  const { stdin, stdout } = io;
  const { allowTool: allow, hideTool: hide, keepAlive, verbose, debug } = options;
  const seconds = keepAlive === true ? DEFAULT_KEEP_ALIVE_S : keepAlive;
  await runStdioProxy({
    url,
    ...(await createSenders(url, { options, headers, context })),
    tools: { allow, hide },
    keepAliveMs: seconds && seconds * 1000,
    input: stdin.stream,
    // On a terminal, control characters in the JSON are escaped; a host gets it unchanged.
    write: (text) => stdout.write(stdout.isTTY ? escapeJson(text) : text),
    signal,
    mask: (text) => redactor.redact(text),
    onWarning: (text) => io.warn(redactor.redact(text)),
    onLog: verbose || debug ? (text) => io.verbose(redactor.redact(text)) : () => undefined,
  });
  return EXIT_CODES.ok;
}

/** Standard input carries the host's messages: no secret may be read from it. */
function checkStdin(flags: ProxyFlags): void {
  const flag = stdinFlag(flags);
  const taken = flags.flow === "paste" ? "--flow paste" : flag && `${flag} -`;
  if (taken === undefined) return;
  throw usageError(
    `${taken} reads standard input, which carries the MCP host's messages`,
    taken === "--flow paste" ? "log in beforehand: agentauth login <mcp_url> --flow paste" : "give a private file",
  );
}

interface Sending {
  options: ProxyFlags;
  /** More headers of each request. */
  headers: Record<string, string>;
  context: CommandContext;
}

/** How requests are sent: with the headers of the flags, and with the token unless they have one of their own. */
async function createSenders(
  url: string,
  sending: Sending,
): Promise<Pick<StdioProxyOptions, "fetch" | "unattended" | "token" | "extension">> {
  const { headers, context, options } = sending;
  if (!("authorization" in headers)) {
    // Never prompts, even on a terminal: standard input is for the server.
    const unattended = context.with({ io: { ...context.io, stdin: { ...context.io.stdin, isTTY: false } } });
    // A tool may take longer than the usual idle timeout, and a notification stream may be silent for hours.
    const agent = await unattended.agent({ idleTimeoutMs: 0 });
    let token: string | undefined;
    const onToken = (sent: Secret) => {
      token = sent.reveal();
    };
    const createSender = (login?: false) => withToken(url, { ...sending, agent, login, onToken });
    const logins = options.grant === undefined ? await agent.status(url).catch(() => []) : [];
    const isOfUser = logins.some(({ grant }) => grant === "login");
    const grant = options.grant ?? (isOfUser ? undefined : logins[0]?.grant);
    const extension = parseExtension(grant);
    return { fetch: createSender(), unattended: createSender(false), token: () => token, extension };
  }
  const network = await context.network({ idleTimeoutMs: 0 });
  const connection = network.connectTo(new URL(url), new Set());
  const withHint = context.withHint ?? cliHint;
  const cookies = new Cookies();
  return {
    fetch: async (address, { signal = null, ...init }) => {
      const request = new HttpRequest(address, withHeaders(init, headers));
      const ownCookie = request.headers.get("cookie");
      const { method } = request;
      const within = { method, url: address, mayRepeat: true, cookies, ownCookie };
      const sent = sendWithinOrigin(within, async (target, _hop, more) => {
        const all = new HttpHeaders(request.headers);
        for (const [name, value] of Object.entries(more)) all.set(name, value);
        const how = { headers: all, signal, redirect: "manual" } as const;
        return { response: await connection.fetch(request.movedTo(target), how) };
      });
      const { reply, refused } = await sent.catch((error: unknown) => {
        throw signal?.aborted ? error : cliHint(withHint(networkError(error, url)));
      });
      if (refused === undefined) return reply.response;
      await discardBody(reply.response);
      throw withHint(refused);
    },
  };
}

function withHeaders(init: HttpRequestInit, more: Record<string, string>): HttpRequestInit {
  return { ...init, headers: { ...(init.headers as Record<string, string>), ...more } };
}

interface TokenSending extends Sending {
  agent: AgentClient;
  login: false | undefined;
  onToken(token: Secret): void;
}

/** A fetch with the token, and with hints in its errors. */
function withToken(url: string, { options, headers, context, agent, login, onToken }: TokenSending): SendRequest {
  const key = {
    profile: context.settings().profile.value,
    server: parseMcpUrl(url).resource,
    account: options.accountHint,
  };
  const withHint = context.withHint ?? cliHint;
  return async (address, { signal = null, ...init }) => {
    const request = new HttpRequest(address, withHeaders(init, headers));
    const send = async () => {
      const { scope } = options;
      if (scope !== undefined) await loginFirst(agent, address, { scope, login, signal: signal ?? undefined });
      return agent.fetch(request, { signal, login, onToken });
    };
    const response = await send().catch((error: unknown) => {
      throw signal?.aborted ? error : cliHint(withHint(networkError(error, url)));
    });
    if (!response.ok) await redactCurrentToken(agent, url, context);
    // With a machine grant, the server's own message is more useful.
    if (options.grant !== undefined || !(await saysTokenRejected(response, request))) return response;
    if (await isSessionUnknown(response, request.headers)) return response;
    await discardBody(response);
    throw withHint(loginRequired(key, `the server rejected the token (HTTP ${response.status})`));
  };
}

/** An error response is passed on to the host, and the server may echo the token in it. */
async function redactCurrentToken(
  agent: AgentClient,
  url: string,
  { redactor, signal }: CommandContext,
): Promise<void> {
  const token = await agent.token(url, { minTtl: 0, login: false, signal }).catch(() => undefined);
  if (token) redactor.add(token.value);
}

/** The flags of headers that go with every request. */
interface HeaderFlags {
  header?: string[];
  headerFile?: string;
}

/** Headers that the protocol, or the connection, sets itself. */
const RESERVED =
  /^(?:accept|accept-encoding|connection|content-.*|dpop|host|keep-alive|last-event-id|mcp-.*|proxy-.*|te|trailer|transfer-encoding|upgrade)$/i;
/** Names of headers whose value is a secret. */
const SECRET = /^(?:authorization|cookie)$|api-?key|auth|credential|passw|secret|session|token/i;
/** A value that names its secret, perhaps after the scheme of an Authorization header. */
const REFERENCE = /^((?:[\w-]+ +)?)((?:env:[A-Za-z_]\w*|(?:file|exec):.+))$/;

/**
 * The headers of the flags, their secrets read. Every value is masked in whatever is shown from now on.
 *
 * @throws `AgentAuthError` `usage`, or `store_failed` for a file that other users can read
 */
function readHeaders({ header = [], headerFile }: HeaderFlags, context: CommandContext): Record<string, string> {
  const found = new Map<string, string>();
  const { io, redactor } = context;
  const add = (line: string, from: string, isPrivate: boolean) => {
    const { name, value } = parseHeaderLine(line, from);
    const shown = `${from} ${quote(name, 40)}`;
    if (RESERVED.test(name)) throw usageError(`${shown} is set by the proxy itself`, "leave it out");
    if (found.has(name.toLowerCase())) throw usageError(`${shown} is given twice`, "leave one of them out");
    const [, scheme = "", reference] = REFERENCE.exec(value) ?? [];
    if (reference === undefined && !isPrivate && SECRET.test(name)) {
      const hint = `write ${quote(`${name}: env:NAME`)} or ${quote(`${name}: file:PATH`)}, or give --header-file; and revoke the one that was typed here`;
      redactor.add(value);
      throw usageError(`${shown}: a secret must not be on the command line, where other programs can read it`, hint);
    }
    const secret = reference === undefined ? value : referencedSecret(reference, shown, io.env).read();
    checkHeaderValue(secret, shown);
    redactor.add(secret.replace(/^[\w-]+ +/, ""));
    redactor.add(secret);
    found.set(name.toLowerCase(), `${scheme}${secret}`);
  };
  for (const line of header) add(line, "--header", false);
  if (headerFile !== undefined) {
    const lines = readSecretFile(headerFile).split(/\r?\n/);
    for (const [at, line] of lines.entries()) {
      if (line.trim() !== "" && !line.startsWith("#")) add(line, `--header-file, line ${at + 1}:`, true);
    }
  }
  return Object.fromEntries(found);
}
