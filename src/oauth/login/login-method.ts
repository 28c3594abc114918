import type { AgentAuthError } from "../../errors.js";

/**
 * How the user finishes a login. `agentauth/node` has the ways of a terminal (browser with a loopback listener, paste);
 * a program with an interface of its own gives its own.
 */
export interface LoginMethod {
  /** Milliseconds that the user may take. A device login is given up then; any other ends by itself. */
  readonly loginTimeoutMs?: number | undefined;
  /** Makes ready to receive the callback, before anything is registered or shown. */
  open(request: LoginOpen): Promise<LoginSession>;
  /**
   * Names the origins of two endpoints to the user and asks whether to go on, before anything is registered, shown or
   * opened. A yes is remembered with the login, for its issuer. Without it such a login is refused, unless
   * `allowCrossOriginEndpoints` is set.
   */
  confirmEndpoints?(prompt: EndpointsPrompt): Promise<boolean>;
  /**
   * Shows the user the code of a device login (RFC 8628 section 3.3) and returns at once. Without it, no device login.
   */
  showDeviceCode?(prompt: DevicePrompt): Promise<void>;
}

/**
 * Endpoints of an issuer on different origins, where nothing proves that they belong together: the login at the first is
 * handed to the second, which may have named the page of an honest issuer to get its codes (RFC 9700 section 4.4).
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
  /** Ends the login. */
  signal: AbortSignal;
}

/** What a login is for. */
export interface LoginOpen {
  /** The MCP server. */
  resource: string;
  /** The authorization server. */
  issuer: string;
  /** The redirect address of an earlier registration with this issuer; using it again saves a new registration. */
  preferredRedirectUri?: string | undefined;
  /** Ends the login. */
  signal: AbortSignal;
}

/** A login that is ready to receive its callback. */
export interface LoginSession {
  /** Where the authorization server sends the user back to. */
  readonly redirectUri: string;
  /**
   * Sends the user to the authorization server and waits for the callback.
   *
   * Only a callback with the right `state` counts; every other request is answered and changes nothing. Whether the
   * answer can be trusted beyond that is decided by the caller. It may be called once more, where the answer was a no
   * to scopes that can be left out: the browser that brought it is sent on then, if it still waits.
   *
   * @returns the parameters of the callback
   */
  authorize(request: AuthorizePrompt): Promise<URLSearchParams>;
  /** Tells the user how it ended, then closes everything. Called exactly once, also after a failure. */
  close(outcome: LoginOutcome): Promise<void>;
}

/** What the user needs to log in. */
export interface AuthorizePrompt {
  /** The address to open; https, or http on this machine. */
  url: string;
  /** What the callback must carry. */
  state: string;
  /**
   * Whether a bare code may be pasted: only where PKCE is in force and the issuer promises no `iss`. The parameters are
   * then those of a callback with this `state`.
   */
  allowBareCode: boolean;
  /**
   * Where the code will be sent. The user should hear of it where its origin is not that of `url`, and be warned unless
   * `promisesIss`: whoever is there may be after the code of an issuer that knows nothing of it.
   */
  tokenEndpoint?: string | undefined;
  /** Whether the issuer promises to name itself in the callback (RFC 9207). */
  promisesIss?: boolean | undefined;
  /** Ends the login. */
  signal: AbortSignal;
}

/** How a login ended. */
export type LoginOutcome = { ok: true } | { ok: false; error: AgentAuthError };

/** What the user needs for a device login. */
export interface DevicePrompt {
  /** The address to visit. */
  verificationUri: string;
  /** The same with the code in it, where the server gives one. */
  verificationUriComplete: string | undefined;
  /** The code to type. */
  userCode: string;
  /** Seconds until nobody asks for the token any more: the code has ended, or the time for a login is over. */
  expiresIn: number;
}
