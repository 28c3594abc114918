import { abortedError } from "../errors.js";
import { followSignal, untilAborted } from "../http/deadline.js";
import type { AuthorizePrompt, LoginOutcome, LoginSession } from "../oauth/login/login-method.js";
import { timeoutError } from "../oauth/login/login-method.js";
import { briefLinkText, briefLoginText, briefWaitingText, linkWithdrawnText, otherWaysText } from "./brief-messages.js";
import type { BrowserResult } from "./browser.js";
import { checkBrowserUrl } from "./browser.js";
import type { Loopback } from "./loopback.js";
import {
  BROWSER_FAILED,
  BROWSER_OPENED,
  codeTakerText,
  type LoginDisplay,
  loginText,
  type OptionText,
  pasteText,
  waitingText,
} from "./messages.js";
import { inputError, isTerminal, type PasteInput, readPaste } from "./paste.js";
import type { LoginEnvironment } from "./platform.js";

/** The parts of a session. */
export interface TerminalSessionParts {
  resource: string;
  redirectUri: string;
  /** Absent where the user pastes the callback. */
  loopback: Loopback | undefined;
  /** Seconds. */
  timeoutSeconds: number;
  environment: LoginEnvironment;
  optionText: OptionText | undefined;
  /** Absent where everything is printed at once. */
  display: LoginDisplay | undefined;
  input: PasteInput | undefined;
  say: (text: string) => void;
  onInterrupt: () => void;
  /** Absent where no browser is opened. */
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
    for (const abortSignal of [signal, prompt.signal]) if (abortSignal.aborted) throw abortedError(abortSignal);
    if (loopback === undefined && input === undefined) {
      throw inputError("there is no terminal to paste the redirect address into");
    }
    const url = checkBrowserUrl(prompt.url, "the login address", "the authorization server");
    const deadline = followSignal(prompt.signal, timeout * 1000, () => timeoutError(resource, timeout));
    try {
      const show = () => {
        this.#announce(url, prompt);
        void this.#openBrowser(url, deadline.signal);
      };
      const redirected = loopback?.redirectAgain(url);
      this.#linkTo(url);
      // Before the announcement: a terminal may drop what is typed before keys are read.
      const callbacks = [untilAborted(this.#pasted({ ...prompt, url }, deadline.signal), deadline.signal)];
      if (loopback !== undefined) callbacks.push(loopback.receive(prompt.state, deadline.signal));
      const received = untilAborted(Promise.race(callbacks), signal);
      // The announcement may fail first, and the rest of the race then has no one to reject to.
      received.catch(() => {});
      if (redirected === undefined) show();
      else void redirected.then((wasRequested) => wasRequested || deadline.signal.aborted || show());
      return await received;
    } finally {
      // Stops the rest of the race: the reader releases the input, and the browser is no longer watched.
      deadline.abort(undefined);
      deadline.release();
    }
  }

  async close(outcome: LoginOutcome): Promise<void> {
    await this.#parts.loopback?.close(outcome);
  }

  #announce(url: string, prompt: AuthorizePrompt): void {
    const link = this.#linkTo(url);
    if (link === undefined) this.#announceAll(url, prompt);
    else this.#announceLink(link, url, prompt);
  }

  /** A short link that leads to the login page, where it serves the user. */
  #linkTo(url: string): string | undefined {
    const { loopback, say } = this.#parts;
    const onWithdrawn = () => say(linkWithdrawnText(url, this.redirectUri));
    return this.#isBrief() ? loopback?.shortLink(url, onWithdrawn) : undefined;
  }

  #announceLink(link: string, url: string, prompt: AuthorizePrompt): void {
    const { resource, timeoutSeconds: timeout, openBrowser, display, optionText, say } = this.#parts;
    say(briefLoginText(resource, url));
    const recipient = codeTakerText(url, prompt, optionText);
    if (recipient !== undefined) say(recipient);
    say(briefLinkText(openBrowser !== undefined));
    display?.link(link);
    say(briefWaitingText(timeout));
  }

  /**
   * Whether a short link and a key for the rest serve the user: at a terminal that shows and reads them, where a browser
   * can reach this machine's loopback addresses.
   */
  #isBrief(): boolean {
    const { display, input, loopback, openBrowser, environment } = this.#parts;
    if (display === undefined || loopback === undefined || input === undefined || !isTerminal(input)) return false;
    return openBrowser !== undefined || (environment.hasBrowser && !environment.container);
  }

  #announceAll(url: string, prompt: AuthorizePrompt): void {
    const { resource, timeoutSeconds: timeout, environment, input, loopback, openBrowser, say } = this.#parts;
    const { optionText } = this.#parts;
    say(loginText(resource, url));
    const recipient = codeTakerText(url, prompt, optionText);
    if (recipient !== undefined) say(recipient);
    if (openBrowser !== undefined) say(BROWSER_OPENED);
    const hints = loopback === undefined ? [] : environment.hints(this.redirectUri, optionText);
    if (hints.length > 0) say(hints.join("\n"));
    if (input !== undefined) {
      say(pasteText(this.redirectUri, { isOnly: loopback === undefined, isHidden: isTerminal(input) }));
    }
    say(waitingText(timeout));
  }

  async #openBrowser(url: string, signal: AbortSignal): Promise<void> {
    const { openBrowser, environment, say } = this.#parts;
    const result = await openBrowser?.(url, signal).catch(() => "failed" as const);
    if (result !== "failed" || signal.aborted) return;
    say(BROWSER_FAILED);
    // The link may be of no use either.
    if (this.#isBrief() && (environment.container || !environment.hasBrowser)) this.#sayOtherWays(url);
  }

  #sayOtherWays(url: string): void {
    this.#parts.say(otherWaysText(url, this.redirectUri, this.#parts));
  }

  /** The callback that the user pastes. When the input ends, the listener still waits, where there is one. */
  async #pasted(prompt: AuthorizePrompt, signal: AbortSignal): Promise<URLSearchParams> {
    const { input, loopback, say, onInterrupt } = this.#parts;
    const never = new Promise<never>(() => {});
    if (input === undefined) return never;
    const { url: loginUrl, state, allowBareCode } = prompt;
    const rules = { redirectUri: this.redirectUri, state, loginUrl, allowBareCode };
    const onHelp = this.#isBrief() ? () => this.#sayOtherWays(loginUrl) : undefined;
    const pasted = readPaste({ ...rules, input, say, onInterrupt, onHelp, signal });
    return loopback === undefined ? pasted : pasted.catch(() => never);
  }
}
