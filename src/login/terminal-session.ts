import { AgentAuthError, abortedError } from "../errors.js";
import { follow, untilAborted } from "../http/deadline.js";
import type { AuthorizePrompt, LoginOutcome, LoginSession } from "../oauth/login/login-method.js";
import { timeoutError } from "../oauth/login/login-timeout.js";
import type { BrowserResult } from "./browser.js";
import { checkBrowserUrl } from "./browser-url.js";
import type { Loopback } from "./loopback.js";
import { BROWSER_FAILED, BROWSER_OPENED, codeTakerText, pasteText, signInText, waitingText } from "./messages.js";
import { isTerminal, type PasteInput, readPaste } from "./paste.js";
import type { LoginEnvironment } from "./platform.js";

/** What a session is made of. */
export interface TerminalSessionParts {
  resource: string;
  redirectUri: string;
  /** Absent where the person brings the callback. */
  loopback: Loopback | undefined;
  /** Seconds. */
  timeoutSeconds: number;
  environment: LoginEnvironment;
  input: PasteInput | undefined;
  say: (text: string) => void;
  onInterrupt: () => void;
  /** Absent where no browser is to be opened. */
  openBrowser: ((url: string, signal: AbortSignal) => Promise<BrowserResult>) | undefined;
  signal: AbortSignal;
}

/** One login at a terminal. */
export class TerminalSession implements LoginSession {
  readonly redirectUri: string;
  readonly #parts: TerminalSessionParts;

  constructor(parts: TerminalSessionParts) {
    this.#parts = parts;
    this.redirectUri = parts.redirectUri;
  }

  async authorize(prompt: AuthorizePrompt): Promise<URLSearchParams> {
    const { resource, timeoutSeconds: timeout, loopback, input, signal } = this.#parts;
    for (const given of [signal, prompt.signal]) if (given.aborted) throw abortedError(given);
    if (loopback === undefined && input === undefined) throw nobodyError();
    const url = checkBrowserUrl(prompt.url, "the sign-in address", "the authorization server");
    const ends = follow(prompt.signal, timeout * 1000, () => timeoutError(resource, timeout));
    try {
      const show = () => {
        this.#announce(url, prompt);
        void this.#openBrowser(url, ends.signal);
      };
      const isSentOn = loopback?.redirectAgain(url);
      if (isSentOn === undefined) show();
      else void isSentOn.then((came) => came || ends.signal.aborted || show());
      const ways = [untilAborted(this.#pasted({ ...prompt, url }, ends.signal), ends.signal)];
      if (loopback !== undefined) ways.push(loopback.receive(prompt.state, ends.signal));
      return await untilAborted(Promise.race(ways), signal);
    } finally {
      // Whoever lost the race stops: the reader gives the input back, the browser is no longer watched.
      ends.abort(undefined);
      ends.release();
    }
  }

  async close(outcome: LoginOutcome): Promise<void> {
    await this.#parts.loopback?.close(outcome);
  }

  #announce(url: string, prompt: AuthorizePrompt): void {
    const { resource, timeoutSeconds: timeout, environment, input, loopback, openBrowser, say } = this.#parts;
    say(signInText(resource, url));
    const taker = codeTakerText(url, prompt);
    if (taker !== undefined) say(taker);
    if (openBrowser !== undefined) say(BROWSER_OPENED);
    const hints = loopback === undefined ? [] : environment.hints(this.redirectUri);
    if (hints.length > 0) say(hints.join("\n"));
    if (input !== undefined) {
      say(pasteText(this.redirectUri, { isOnly: loopback === undefined, isHidden: isTerminal(input) }));
    }
    say(waitingText(timeout));
  }

  async #openBrowser(url: string, signal: AbortSignal): Promise<void> {
    const { openBrowser, say } = this.#parts;
    const result = await openBrowser?.(url, signal).catch(() => "failed" as const);
    if (result === "failed" && !signal.aborted) say(BROWSER_FAILED);
  }

  /** The callback as the person pasted it. An input that ends leaves it to the listener, where there is one. */
  async #pasted(prompt: AuthorizePrompt, signal: AbortSignal): Promise<URLSearchParams> {
    const { input, loopback, say, onInterrupt } = this.#parts;
    const never = new Promise<never>(() => {});
    if (input === undefined) return never;
    const { url: loginUrl, state, allowBareCode } = prompt;
    const rules = { redirectUri: this.redirectUri, state, loginUrl, allowBareCode };
    const pasted = readPaste({ ...rules, input, say, onInterrupt, signal });
    return loopback === undefined ? pasted : pasted.catch(() => never);
  }
}

function nobodyError(): AgentAuthError {
  return new AgentAuthError("login_required", "nobody is there to paste the redirect address", {
    class: "auth",
    hint: "run the command in a terminal, or sign in with --flow device",
  });
}
