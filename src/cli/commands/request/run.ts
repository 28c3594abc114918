import { abortedError } from "../../../errors.js";
import { shownUrl } from "../../../http/address.js";
import { followSignal } from "../../../http/deadline.js";
import { HttpRequest } from "../../../http/http-request.js";
import { networkError } from "../../../http/network-error.js";
import type { AgentClient } from "../../../oauth/agent.js";
import { saysTokenRejected } from "../../../oauth/grant/rejected-token.js";
import { escapeText } from "../../../redact.js";
import { lateError, limitOf, responseError } from "../../clients/http-error.js";
import { loginFirst } from "../../clients/login-first.js";
import type { Io } from "../../io/io.js";
import type { CommandContext } from "../../runtime/context.js";
import { type OutgoingRequest, type RequestFlags, readRequest } from "./input.js";

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
  const limit = limitOf(options, context, DEFAULT_TIMEOUT_S);
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

/** Escapes a stream of bytes for a terminal. */
interface TerminalText {
  /** The text that can be shown now. */
  push(bytes: Uint8Array): string;
  /** The rest, and a line break if the text does not end with one. */
  end(): string;
}

// The last character waits for marks and a line feed that may belong to it; a longer run of marks is cut anyway.
const UNFINISHED = /[^\n\t]\p{M}{0,32}$/u;
const LONGEST_UNFINISHED = 80;

/**
 * Decodes UTF-8 and escapes control characters, also across chunks. Line breaks and tabs stay; invalid UTF-8 becomes
 * U+FFFD.
 */
export function terminalText(): TerminalText {
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
