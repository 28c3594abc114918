import type { AccessToken } from "../grant/access-token.js";
import type { LoginOptions } from "../grant/grant-requirements.js";

/** Options of `AgentClient.startLogin`. Default scopes: those that the server names. */
export interface StartLoginOptions extends LoginOptions {
  /** Where the browser returns to: an https address of the web app, or http on a loopback host. One serves every server. */
  redirectUri: string;
  /** The page to show after the login: a path, or an address on the origin of `redirectUri`. */
  returnTo?: string | undefined;
}

/** A login that waits for its callback, in any process of a web app. */
export interface StartedLogin {
  /** Where to redirect the browser. */
  url: string;
  /** The `state` of the callback. */
  state: string;
  /** The login, sealed with `loginSecret`; undefined without a `loginSecret`: the store holds it then. */
  saved: string | undefined;
  /** The `Set-Cookie` header to send with the redirect: only the browser with this cookie can finish the login. */
  cookie: string;
}

/** Begins the login of a remedy, even if the user declined it before. */
export interface LoginStart {
  /**
   * Begins the login in a web app, as `AgentClient.startLogin` does, by default for the scopes of the remedy. The client
   * needs a `loginSecret`, or a store with short-lived records.
   */
  (options: StartLoginOptions): Promise<StartedLogin>;
  /** Begins the login with the `login` method of the client; resolves once the user has logged in. */
  (options?: Pick<LoginOptions, "signal" | "authorizationParams">): Promise<unknown>;
}

declare module "../../remedy.js" {
  // Declared here, since remedies are data below all that begins a login.
  interface LoginRemedy {
    /**
     * Begins this login. Set by an `AgentClient` with a `login` method, or one that can start logins in a web app; not
     * enumerable.
     */
    readonly start?: LoginStart | undefined;
  }
}

/** Options of `AgentClient.handleCallback`. */
export interface CallbackOptions {
  /** The `saved` of the login, if it has one. */
  saved?: string | undefined;
  /** The `Cookie` header of the callback. Default: that of the request. */
  cookie?: string | undefined;
  /** Aborts the call. */
  signal?: AbortSignal | undefined;
}

/** A login that a callback finished; its grant is stored. */
export interface FinishedLogin {
  /** The MCP server, or the identity provider. */
  server: string;
  /** The page to show, as an absolute address; undefined if none was named. */
  returnTo: string | undefined;
  /** The token; that of the identity provider is for no MCP server. */
  token: AccessToken;
}

/** A callback that finished its login. */
export interface CallbackDone {
  /** The login. */
  done: FinishedLogin;
  /** Undefined: no other redirect is needed. */
  redirect?: undefined;
  /** Undefined. */
  cookie?: undefined;
}

/** A callback whose issuer rejected an optional scope: redirect the browser once more, with another cookie. */
export interface CallbackRedirect extends Omit<StartedLogin, "url"> {
  /** Undefined: the login waits for another callback. */
  done?: undefined;
  /** Where to redirect the browser. */
  redirect: string;
}

/** The result of a callback. */
export type CallbackResult = CallbackDone | CallbackRedirect;
