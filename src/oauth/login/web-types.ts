import type { StartedLogin } from "../../remedy.js";
import type { AccessToken } from "../grant/access-token.js";

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
  /** The MCP server. */
  server: string;
  /** The page to show, as an absolute address; undefined if none was named. */
  returnTo: string | undefined;
  /** The token. */
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
