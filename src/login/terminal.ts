import { existsSync } from "node:fs";
import { abortedError } from "../errors.js";
import { followSignal, untilAborted } from "../http/deadline.js";
import { requireOptions } from "../http/public-class.js";
import type { AuthorizePrompt, LoginMethod, LoginOutcome, LoginSession } from "../oauth/login/login-method.js";
import { DEFAULT_LOGIN_TIMEOUT_MS, timeoutError } from "../oauth/login/login-method.js";
import { briefLinkText, briefLoginText, briefWaitingText, linkWithdrawnText, otherWaysText } from "./brief-messages.js";
import type { BrowserResult, OpenBrowser } from "./browser.js";
import { checkBrowserUrl, chosenByEnvironment, openBrowser, showDeviceCode } from "./browser.js";
import { commandWords } from "./command-words.js";
import { type Loopback, openLoopback, reserveRedirect } from "./listen.js";
import {
  BROWSER_FAILED,
  BROWSER_OPENED,
  codeTakerText,
  consentText,
  endpointsText,
  type LoginDisplay,
  listeningText,
  loginText,
  type OptionText,
  otherPathText,
  pasteText,
  probeText,
  statelessErrorText,
  waitingText,
} from "./messages.js";
import { inputError, isTerminal, type PasteInput, readPaste } from "./paste.js";
import { detectEnvironment, type LoginEnvironment } from "./platform.js";
import { planRedirect, type RedirectSettings } from "./redirect-address.js";

/** How a user logs in at a terminal. */
export interface TerminalLoginOptions extends RedirectSettings {
  /** Prints a message for the user; the text may have several lines and is escaped already. */
  say: (text: string) => void;
  /** The environment: for `$BROWSER`, for hints about SSH and containers, and for the browser's command. */
  env: Readonly<Record<string, string | undefined>>;
  /**
   * `browser`: a listener on this machine receives the callback. `paste`: the user pastes it. Default `browser`, with
   * both where there is an `input`.
   */
  flow?: "browser" | "paste" | undefined;
  /** A command that gets the address as its last argument, without a shell, or `none`. Default: `$BROWSER`, then the system's. */
  browser?: string | undefined;
  /** Seconds until the login times out, regardless of the request timeout. Default 300. */
  loginTimeoutSeconds?: number | undefined;
  /** Where the user can paste lines, such as `process.stdin`. Omit it in non-interactive use. */
  input?: PasteInput | undefined;
  /** Asks a yes/no question of several lines. Without it, a login that needs confirmation is refused. */
  confirm?: ((question: string, signal: AbortSignal) => Promise<boolean>) | undefined;
  /** What Ctrl-C does while lines are read from a terminal. Default: what SIGINT does. */
  onInterrupt?: (() => void) | undefined;
  /**
   * Shows a short link where a browser on this computer can reach it, and the long address and the other ways when the
   * user presses `?`; and device codes as QR codes. Needs an `input` that is a terminal. Default: `say` prints everything
   * at once.
   */
  display?: LoginDisplay | undefined;
  /** Opens the browser. */
  openBrowser?: OpenBrowser | undefined;
  /** Where the program runs. Default: detected. */
  environment?: LoginEnvironment | undefined;
  /** How texts for the user spell an option. Default: as the SDK does, such as `flow: "paste"`. */
  optionText?: OptionText | undefined;
}

/** Time that a login usually takes, after which the user hears what else a page can want. */
const USUAL_MS = 20_000;

const DEFAULT_TIMEOUT_S = DEFAULT_LOGIN_TIMEOUT_MS / 1000;

/**
 * The ways to log in at a terminal: a browser with a listener on this machine, pasting the address where the browser
 * ends up, and the code of a device login.
 *
 * @throws `TypeError` for a port, a path, an address or a timeout that cannot be one
 * @throws AgentAuthError `usage` without `say` or `env`, for a browser command that cannot be split into words, or a
 * redirect address without a port to listen at
 */
export function terminalLogin(options: TerminalLoginOptions): LoginMethod {
  requireOptions(options, { say: "function", env: "object" }, "terminalLogin");
  const { say, env, input, confirm, loginTimeoutSeconds: loginTimeout = DEFAULT_TIMEOUT_S } = options;
  const isPaste = options.flow === "paste";
  // A callback that is pasted needs no port.
  planRedirect(isPaste ? { ...options, redirectPort: options.redirectPort ?? 80 } : options);
  if (options.browser !== undefined) commandWords(options.browser);
  if (!(Number.isFinite(loginTimeout) && loginTimeout > 0))
    throw new TypeError("loginTimeoutSeconds must be a number above 0");
  const environment = options.environment ?? detectEnvironment({ env, exists: existsSync, platform: process.platform });
  return {
    loginTimeoutMs: loginTimeout * 1000,
    async open({ resource, preferredRedirectUri: preferred, signal }) {
      if (signal.aborted) throw abortedError(signal);
      const listensAt = () => loopback?.listensAt ?? "";
      const own = {
        preferred,
        signal,
        onProbe: () => say(probeText(listensAt())),
        onStatelessError: (error: string) => say(statelessErrorText(error)),
        onOtherPath: (path: string) => say(otherPathText(path, listensAt(), options.optionText)),
      };
      const loopback = isPaste ? undefined : await openLoopback({ ...options, ...own });
      return new TerminalSession({
        resource,
        signal,
        loopback,
        redirectUri: loopback?.redirectUri ?? (await reserveRedirect({ ...options, preferred })),
        timeoutSeconds: loginTimeout,
        environment,
        optionText: options.optionText,
        input,
        display: options.display,
        say,
        onInterrupt: options.onInterrupt ?? interrupt,
        openBrowser: browserOpener(options, isPaste, environment),
      });
    },
    ...(confirm && { confirmEndpoints: (prompt) => confirm(endpointsText(prompt), prompt.signal) }),
    showDeviceCode: (prompt) => showDeviceCode(prompt, options),
  };
}

/**
 * Opens the browser, if at all. By default only where the user would see it; with `paste`
 * the user's browser is on another machine.
 */
function browserOpener(
  { browser, env, openBrowser: open = openBrowser }: TerminalLoginOptions,
  isPaste: boolean,
  environment: LoginEnvironment,
): ((url: string, signal: AbortSignal) => ReturnType<OpenBrowser>) | undefined {
  const command = browser ?? (isPaste ? "none" : chosenByEnvironment(env));
  if (command === "none" || (command === undefined && !environment.hasBrowser)) return undefined;
  return (url, signal) => open(url, { command, env, signal });
}

/** In raw mode a terminal sends no SIGINT for Ctrl-C. On Windows `process.kill` would not run the handlers. */
function interrupt(): void {
  if (!process.emit("SIGINT", "SIGINT")) process.kill(process.pid, "SIGINT");
}

interface TerminalSessionParts extends Pick<TerminalLoginOptions, "say" | "input" | "display" | "optionText"> {
  resource: string;
  redirectUri: string;
  /** Absent where the user pastes the callback. */
  loopback: Loopback | undefined;
  /** Seconds. */
  timeoutSeconds: number;
  environment: LoginEnvironment;
  onInterrupt: () => void;
  /** Absent where no browser is opened. */
  openBrowser: ((url: string, signal: AbortSignal) => Promise<BrowserResult>) | undefined;
  signal: AbortSignal;
}

class TerminalSession implements LoginSession {
  readonly redirectUri: string;
  readonly #parts: TerminalSessionParts;

  constructor(parts: TerminalSessionParts) {
    this.#parts = parts;
    this.redirectUri = parts.redirectUri;
  }

  async authorize(prompt: AuthorizePrompt): Promise<URLSearchParams> {
    const { resource, timeoutSeconds: timeout, loopback, input, signal, say, optionText } = this.#parts;
    for (const abortSignal of [signal, prompt.signal]) if (abortSignal.aborted) throw abortedError(abortSignal);
    if (loopback === undefined && input === undefined)
      throw inputError("there is no terminal to paste the redirect address into");
    const url = checkBrowserUrl(prompt.url, "the login address", "the authorization server");
    const deadline = followSignal(prompt.signal, timeout * 1000, () => timeoutError(resource, timeout));
    const sayConsent = () => prompt.forcesConsent && say(consentText(optionText));
    const usual = setTimeout(sayConsent, Math.min(USUAL_MS, timeout * 500));
    try {
      const show = () => {
        this.#announce(url, prompt);
        void this.#openBrowser(url, prompt, deadline.signal);
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
      clearTimeout(usual);
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
    const onWithdrawn = () => say(linkWithdrawnText(url, loopback?.listensAt ?? ""));
    return this.#isBrief() ? loopback?.shortLink(url, onWithdrawn) : undefined;
  }

  #announceLink(link: string, url: string, prompt: AuthorizePrompt): void {
    const { resource, timeoutSeconds: timeout, openBrowser, display, optionText, say } = this.#parts;
    say(briefLoginText(resource, url));
    this.#sayForwarded();
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
    const isForwarded = this.#sayForwarded();
    const hints =
      loopback === undefined || isForwarded
        ? []
        : environment.hints(this.redirectUri, optionText, prompt.hasDeviceFlow);
    if (hints.length > 0) say(hints.join("\n"));
    if (input !== undefined)
      say(pasteText(this.redirectUri, { isOnly: loopback === undefined, isHidden: isTerminal(input) }));
    say(waitingText(timeout));
  }

  /** Says where the listener is, where something must forward the callback to it. @returns whether it must */
  #sayForwarded(): boolean {
    const { loopback, say } = this.#parts;
    if (loopback === undefined || loopback.listensAt === this.redirectUri) return false;
    say(listeningText(this.redirectUri, loopback.listensAt));
    return true;
  }

  async #openBrowser(url: string, prompt: AuthorizePrompt, signal: AbortSignal): Promise<void> {
    const { openBrowser, environment, say } = this.#parts;
    const result = await openBrowser?.(url, signal).catch(() => "failed" as const);
    if (result !== "failed" || signal.aborted) return;
    say(BROWSER_FAILED);
    // The link may be of no use either.
    if (this.#isBrief() && (environment.container || !environment.hasBrowser)) this.#sayOtherWays(url, prompt);
  }

  #sayOtherWays(url: string, { hasDeviceFlow }: AuthorizePrompt): void {
    const { loopback, ...parts } = this.#parts;
    parts.say(otherWaysText(url, this.redirectUri, { ...parts, hasDeviceFlow, listensAt: loopback?.listensAt }));
  }

  /** The callback that the user pastes. When the input ends, the listener still waits, where there is one. */
  async #pasted(prompt: AuthorizePrompt, signal: AbortSignal): Promise<URLSearchParams> {
    const { input, loopback, say, onInterrupt } = this.#parts;
    const never = new Promise<never>(() => {});
    if (input === undefined) return never;
    const { url: loginUrl, state, allowBareCode } = prompt;
    const rules = { redirectUri: this.redirectUri, state, loginUrl, allowBareCode };
    const onHelp = this.#isBrief() ? () => this.#sayOtherWays(loginUrl, prompt) : undefined;
    const pasted = readPaste({ ...rules, input, say, onInterrupt, onHelp, signal });
    return loopback === undefined ? pasted : pasted.catch(() => never);
  }
}
