import { AgentAuthError } from "../../errors.js";
import type { Grant } from "../model/grant.js";

/**
 * How the user completes a login. `agentauth/node` has methods for a terminal (browser with a loopback listener,
 * paste); a program with its own interface implements its own.
 */
export interface LoginMethod {
  /** Milliseconds for the user to log in. Limits a device login; the others limit themselves. */
  readonly loginTimeoutMs?: number | undefined;
  /** Prepares to receive the callback, before a client is registered or an address is shown. */
  open(request: LoginOpen): Promise<LoginSession>;
  /**
   * Shows the user the origins of two endpoints and asks for consent, before a client is registered or an address is
   * opened. Consent is stored with the login, for its issuer. Without this method such a login is refused, unless
   * `allowCrossOriginEndpoints` is set.
   */
  confirmEndpoints?(prompt: EndpointsPrompt): Promise<boolean>;
  /**
   * Shows the user the code of a device login (RFC 8628 section 3.3) and returns at once. Without it, device logins
   * fail.
   */
  showDeviceCode?(prompt: DevicePrompt): Promise<void>;
}

/**
 * Endpoints of an issuer on different origins without a proof that they belong together: the token endpoint gets the
 * code of the login page, which may be that of an honest issuer (RFC 9700 section 4.4).
 */
export interface EndpointsPrompt {
  /** The MCP server. */
  resource: string;
  /** The authorization server. */
  issuer: string;
  /** Where the user logs in; the device authorization endpoint in a device login. */
  authorizationEndpoint: string;
  /** Where the code is sent. */
  tokenEndpoint: string;
  /** Aborts the login. */
  signal: AbortSignal;
}

/** The target of a login. */
export interface LoginOpen {
  /** The MCP server. */
  resource: string;
  /** The authorization server. */
  issuer: string;
  /** The redirect address of an earlier registration with this issuer; using it again saves a new registration. */
  preferredRedirectUri?: string | undefined;
  /** Aborts the login. */
  signal: AbortSignal;
}

/** A login that is ready to receive its callback. */
export interface LoginSession {
  /** The redirect address. */
  readonly redirectUri: string;
  /**
   * Sends the user to the authorization server and waits for the callback.
   *
   * Accepts only a callback with the right `state`; every other request is answered and ignored. The caller validates
   * the rest. May be called a second time if the issuer rejected optional scopes: the waiting browser is then
   * redirected again.
   *
   * @returns the parameters of the callback
   */
  authorize(request: AuthorizePrompt): Promise<URLSearchParams>;
  /** Shows the user the outcome, then closes everything. Called exactly once, also after a failure. */
  close(outcome: LoginOutcome): Promise<void>;
}

/** What the user needs for a login. */
export interface AuthorizePrompt {
  /** The address to open: https, or http on a loopback host. */
  url: string;
  /** The `state` that the callback must have. */
  state: string;
  /**
   * Whether the user may paste a bare code: only with PKCE and if the issuer does not promise `iss`. The parameters are
   * then those of a callback with this `state`.
   */
  allowBareCode: boolean;
  /**
   * The endpoint that gets the code. Show it to the user if its origin is not that of `url`, with a warning unless
   * `promisesIss`: it may steal the code of an honest issuer.
   */
  tokenEndpoint?: string | undefined;
  /** Whether the issuer promises to name itself in the callback (RFC 9207). */
  promisesIss?: boolean | undefined;
  /**
   * Whether the page forces the user to consent, which it does for a refresh token. Where users may not consent, it ends
   * at a request for approval and never returns: a login with `authorizationParams: { prompt: "" }` goes on.
   */
  forcesConsent?: boolean | undefined;
  /** Whether the issuer has a device authorization endpoint (RFC 8628): without it no device login works. */
  hasDeviceFlow?: boolean | undefined;
  /** Aborts the login. */
  signal: AbortSignal;
}

/** The outcome of a login. */
export type LoginOutcome = { ok: true; login?: CompletedLogin | undefined } | { ok: false; error: AgentAuthError };

/** A login that is stored. Texts of servers: escape them where a user sees them. */
export type CompletedLogin = Pick<Grant, "server" | "issuer" | "account">;

/** What the user needs for a device login. */
export interface DevicePrompt {
  /** The address to visit. */
  verificationUri: string;
  /** The same with the code in it, if the server returned one. */
  verificationUriComplete: string | undefined;
  /** The code to type. */
  userCode: string;
  /** Seconds until polling stops, because the code has expired or the login has timed out. */
  expiresInSeconds: number;
}

export const DEFAULT_LOGIN_TIMEOUT_MS = 300_000;

export function timeoutError(resource: string, seconds: number): AgentAuthError {
  const message = `the login was not finished within ${formatSeconds(seconds)}`;
  const hint = "log in again; the option loginTimeoutMs allows more time";
  const remedy = { action: "login", server: resource, option: "loginTimeoutMs" } as const;
  return new AgentAuthError("timeout", message, { class: "auth", hint, remedy });
}

export function formatSeconds(seconds: number): string {
  const [count, unit] = seconds >= 120 ? [Math.floor(seconds / 60), "minute"] : [Math.round(seconds), "second"];
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}
