import { existsSync } from "node:fs";
import { abortedError } from "../errors.js";
import type { LoginMethod } from "../oauth/login/login-method.js";
import { DEFAULT_LOGIN_TIMEOUT_MS } from "../oauth/login/login-method.js";
import { chosenByEnvironment, type OpenBrowser, openBrowser } from "./browser.js";
import { commandWords } from "./command-words.js";
import { showDeviceCode } from "./device-code.js";
import { reserveRedirect } from "./listen.js";
import { openLoopback } from "./loopback.js";
import { endpointsText, type LoginDisplay, type OptionText, probeText } from "./messages.js";
import type { PasteInput } from "./paste.js";
import { detectEnvironment, type LoginEnvironment } from "./platform.js";
import { planRedirect, type RedirectHost } from "./redirect-address.js";
import { TerminalSession } from "./terminal-session.js";

/** How a user logs in at a terminal. */
export interface TerminalLoginOptions {
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
  /** How the redirect address spells this machine. Default `127.0.0.1`. */
  redirectHost?: RedirectHost | undefined;
  /** A required port. Default: any free one. */
  redirectPort?: number | undefined;
  /** Default `/callback`. */
  redirectPath?: string | undefined;
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

const DEFAULT_TIMEOUT_S = DEFAULT_LOGIN_TIMEOUT_MS / 1000;

/**
 * The ways to log in at a terminal: a browser with a listener on this machine, pasting the address where the browser
 * ends up, and the code of a device login.
 *
 * @throws `TypeError` for a port, a path or a timeout that cannot be one
 * @throws AgentAuthError `usage` for a browser command that cannot be split into words
 */
export function terminalLogin(options: TerminalLoginOptions): LoginMethod {
  const { say, env, input, confirm, loginTimeoutSeconds: loginTimeout = DEFAULT_TIMEOUT_S } = options;
  const redirect = { host: options.redirectHost, port: options.redirectPort, path: options.redirectPath };
  planRedirect(redirect);
  if (options.browser !== undefined) commandWords(options.browser);
  if (!(Number.isFinite(loginTimeout) && loginTimeout > 0))
    throw new TypeError("loginTimeoutSeconds must be a number above 0");
  const environment = options.environment ?? detectEnvironment({ env, exists: existsSync, platform: process.platform });
  const isPaste = options.flow === "paste";
  return {
    loginTimeoutMs: loginTimeout * 1000,
    async open({ resource, preferredRedirectUri: preferred, signal }) {
      if (signal.aborted) throw abortedError(signal);
      const onProbe = () => say(probeText(loopback?.redirectUri ?? ""));
      const loopback = isPaste ? undefined : await openLoopback({ ...redirect, preferred, signal, onProbe });
      return new TerminalSession({
        resource,
        signal,
        loopback,
        redirectUri: loopback?.redirectUri ?? (await reserveRedirect({ ...redirect, preferred })),
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
