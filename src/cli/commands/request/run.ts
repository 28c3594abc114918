import { createReadStream } from "node:fs";
import type { Readable } from "node:stream";
import { AgentAuthError, abortedError, usageError } from "../../../errors.js";
import { shownUrl } from "../../../http/address.js";
import { followSignal } from "../../../http/deadline.js";
import { HttpHeaders, HttpRequest, TOKEN } from "../../../http/http-message.js";
import { networkError } from "../../../http/network-error.js";
import { userAgent } from "../../../http/version.js";
import type { AgentClient } from "../../../oauth/agent.js";
import { saysTokenRejected } from "../../../oauth/grant/token-fetch.js";
import { escapeText, quote } from "../../../redact.js";
import { lateError, parseHeaderLine, readLimit, responseError } from "../../clients/http-error.js";
import { loginFirst, parseMcpUrlArgument } from "../../clients/login-first.js";
import type { AgentFlags } from "../../flags/agent.js";
import type { Io } from "../../io/io.js";
import { readStream } from "../../io/stream.js";
import type { CommandContext } from "../../runtime/context.js";

const DEFAULT_TIMEOUT_S = 30;

/** `request`: one request with the token of its server. */
export async function runRequest(options: RequestFlags, context: CommandContext): Promise<undefined> {
  const request = await readRequest(options, context);
  const agent = await context.agent();
  await sendRequest(agent, request, options, context);
}

/**
 * Sends a request and prints the response.
 *
 * @throws `AgentAuthError` `auth` for 401, `unavailable` for 429 and 5xx, `remote` for any other error, after the
 * response is printed; `unavailable` for a timeout
 */
export async function sendRequest(
  agent: Pick<AgentClient, "token" | "requiresLogin" | "status" | "discover" | "fetch">,
  { url, ...init }: OutgoingRequest,
  options: RequestFlags,
  context: CommandContext,
): Promise<void> {
  // A login, if needed, comes before the time limit starts.
  const grant = await loginFirst(agent, url, { signal: context.signal });
  const call = followSignal(context.signal);
  const limit = readLimit(options, context, DEFAULT_TIMEOUT_S);
  const timer = setTimeout(() => call.abort(lateError(url, limit, "no response started")), limit * 1000);
  try {
    const request = new HttpRequest(url, init);
    const response = await agent.fetch(request, { signal: call.signal }).catch((thrown: unknown) => {
      throw call.signal.aborted ? abortedError(call.signal) : networkError(thrown, url);
    });
    clearTimeout(timer);
    const foreign = reportRedirect(response, url, context.io);
    const isRejected = await saysTokenRejected(response, request);
    await printResponse(response, context.io);
    if (response.status >= 400) throw responseError(response, { requested: url, foreign, grant, isRejected });
  } finally {
    clearTimeout(timer);
    call.release();
  }
}

/** Reports a redirect. @returns whether another server sent the response */
function reportRedirect(response: Response, url: string, io: Io): boolean {
  if (!response.redirected) return false;
  const foreign = new URL(response.url).origin !== new URL(url).origin;
  const target = shownUrl(response.url);
  if (foreign)
    io.warn(`redirected to ${target}, another server: the request there had no token, and this is its response`);
  else io.say(`redirected to ${target}`);
  return foreign;
}

/**
 * Prints a response as it arrives: bytes for a pipe, escaped text for a terminal. A slow reader slows the transfer; a
 * closed pipe ends it.
 *
 * @throws `PipeClosed`; `AgentAuthError` if the response breaks off
 */
export async function printResponse(response: Response, { stdout }: Io): Promise<void> {
  if (response.body === null) return;
  const text = stdout.isTTY ? terminalText() : undefined;
  const reader = response.body.getReader();
  try {
    for (;;) {
      const { value } = await reader.read().catch((thrown: unknown) => {
        throw networkError(thrown, response.url);
      });
      if (value === undefined) break;
      await (text ? stdout.write(text.push(value)) : stdout.write(value));
    }
    if (text) await stdout.write(text.end());
  } finally {
    // No effect after the end of the body.
    await reader.cancel().catch(() => undefined);
  }
}

// The last character waits for marks and a line feed that may belong to it; a longer run of marks is cut anyway.
const UNFINISHED = /[^\n\t]\p{M}{0,32}$/u;
const LONGEST_UNFINISHED = 80;

/**
 * Decodes UTF-8 and escapes control characters, also across chunks. Line breaks and tabs stay; invalid UTF-8 becomes
 * U+FFFD.
 */
export function terminalText(): { push(bytes: Uint8Array): string; end(): string } {
  const decoder = new TextDecoder();
  let waiting = "";
  let last = "\n";
  const show = (text: string): string => {
    last = text.at(-1) ?? last;
    return text
      .replaceAll("\r\n", "\n")
      .split(/([\n\t])/)
      .map((part) => (part === "\n" || part === "\t" ? part : escapeText(part)))
      .join("");
  };
  return {
    push(bytes) {
      const text = waiting + decoder.decode(bytes, { stream: true });
      waiting = UNFINISHED.exec(text.slice(-LONGEST_UNFINISHED))?.[0] ?? "";
      return show(text.slice(0, text.length - waiting.length));
    },
    end() {
      const rest = show(waiting + decoder.decode());
      waiting = "";
      return last === "\n" ? rest : `${rest}\n`;
    },
  };
}

export interface RequestFlags extends Omit<AgentFlags, "output"> {
  url: string;
  method?: string;
  header?: string[];
  data?: string;
}

/** A request without its token. */
export interface OutgoingRequest {
  url: string;
  method: string;
  headers: Headers;
  body?: Uint8Array<ArrayBuffer>;
}

/** The body is buffered, since it is sent again after a rejected token. */
const MAX_BODY_BYTES = 64 * 1024 * 1024;

/** The types that an MCP server requires (Streamable HTTP transport), then anything else. */
const ACCEPT = "application/json, text/event-stream, */*;q=0.5";

/** The request that the flags describe, its body read. @throws `AgentAuthError` `usage` */
export async function readRequest(options: RequestFlags, context: CommandContext): Promise<OutgoingRequest> {
  const url = parseAddress(options.url);
  const headers = parseHeaders(options.header ?? []);
  const method = chooseMethod(options);
  const body = options.data === undefined ? undefined : await readBody(options.data, context);
  if (!headers.has("accept")) headers.set("accept", ACCEPT);
  if (!headers.has("user-agent")) headers.set("user-agent", userAgent("agentauth-cli"));
  if (body && !headers.has("content-type")) headers.set("content-type", detectContentType(body));
  return { url, method, headers, ...(body && { body }) };
}

function parseAddress(value: string): string {
  const url = parseMcpUrlArgument(value);
  // A fragment is never sent, so it is a mistake.
  if (value.includes("#"))
    throw usageError(`the URL of the MCP server ${quote(value)} must not contain a fragment`, 'leave out the "#"');
  return url;
}

function chooseMethod({ method, data }: RequestFlags): string {
  if (method === undefined) return data === undefined ? "GET" : "POST";
  const verb = method.toUpperCase();
  if (!TOKEN.test(verb))
    throw usageError(`--method ${quote(method, 80)} is not an HTTP method`, "for example -X DELETE");
  if (["CONNECT", "TRACE", "TRACK"].includes(verb))
    throw usageError(`--method ${verb} is not supported with a token`, "for example -X DELETE");
  if (data !== undefined && (verb === "GET" || verb === "HEAD"))
    throw usageError(`--method ${verb} has no body, but --data is given`, "leave --method out to send it with POST");
  return verb;
}

function parseHeaders(lines: readonly string[]): Headers {
  const headers = new HttpHeaders();
  for (const line of lines) {
    const { name, value } = parseHeaderLine(line, "--header");
    if (name.toLowerCase() === "authorization")
      throw usageError(
        `--header ${quote(name, 40)} is reserved for the server's token`,
        "leave it out: the token is added to the request",
      );
    headers.append(name, value);
  }
  return headers;
}

async function readBody(data: string, { io, signal }: CommandContext): Promise<Uint8Array<ArrayBuffer>> {
  if (data === "-" || data === "@-") return readAll(io.stdin.stream, "standard input", signal);
  if (data.startsWith("@")) return readAll(createReadStream(data.slice(1)), `the file ${quote(data.slice(1))}`, signal);
  return new TextEncoder().encode(data);
}

async function readAll(stream: Readable, name: string, signal: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
  const tooLong = () => usageError(`--data: ${name} is longer than ${MAX_BODY_BYTES} bytes`, "send a shorter body");
  try {
    return await readStream(stream, { maxBytes: MAX_BODY_BYTES, tooLong, signal });
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (signal.aborted || error instanceof AgentAuthError || code === undefined) throw error;
    throw usageError(`--data: ${name} cannot be read (${code})`, '--data - sends a text that begins with "@"', error);
  }
}

function detectContentType(body: Uint8Array): string {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch {
    return "application/octet-stream";
  }
  try {
    JSON.parse(text);
    return "application/json";
  } catch {
    return "text/plain;charset=utf-8";
  }
}
