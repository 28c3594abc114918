import { checkRedirectUri } from "./login/web-app.js";
import { answerPage, callbackPage, type LoginHandlersOptions, type LoginPage, startPage } from "./login-handlers.js";

/** The part of a request of Node's `http` or Express that the pages of a login use. */
export interface LoginNodeRequest {
  /** The HTTP method. */
  method?: string | undefined;
  /** Path and query. */
  url?: string | undefined;
  /** The headers, by their names in lower case. */
  headers: Readonly<Record<string, string | readonly string[] | undefined>>;
}

/** The part of a response of Node's `http` that the pages of a login use. */
export interface LoginNodeResponse {
  /** The HTTP status to send. */
  statusCode: number;
  /** Sets a header. */
  setHeader(name: string, value: string | readonly string[]): unknown;
  /** Sends the response. */
  end(body?: string): unknown;
}

/** A middleware for Express, or a handler of Node's `http`. */
export type LoginMiddleware<R extends LoginNodeRequest = LoginNodeRequest> = (
  request: R,
  response: LoginNodeResponse,
) => Promise<void>;

/** The two pages of a login, for GET requests. */
export interface LoginMiddlewares<R extends LoginNodeRequest = LoginNodeRequest> {
  /** As `start` of {@link loginHandlers}. */
  start: LoginMiddleware<R>;
  /** As `callback` of {@link loginHandlers}. */
  callback: LoginMiddleware<R>;
}

/**
 * The two pages of a login as handlers for Express, or for Node's `http`.
 *
 * @example
 * const logins = loginMiddlewares({ agent: clientOfUser, redirectUri: "https://app.example/oauth/callback", servers });
 * app.get("/oauth/start", logins.start);
 * app.get("/oauth/callback", logins.callback);
 */
export function loginMiddlewares<R extends LoginNodeRequest = LoginNodeRequest>(
  options: LoginHandlersOptions<R>,
): LoginMiddlewares<R> {
  const { origin } = checkRedirectUri(options.redirectUri);
  const middleware = (page: LoginPage): LoginMiddleware<R> => {
    return async (request, response) => {
      const answered = await answerPage(options, page, buildWebRequest(request, origin), request);
      const { status, headers } = answered;
      response.statusCode = status;
      for (const [name, value] of headers) if (name !== "set-cookie") response.setHeader(name, value);
      const cookies = headers.getSetCookie();
      if (cookies.length > 0) response.setHeader("set-cookie", cookies);
      response.end(await answered.text());
    };
  };
  return { start: middleware(startPage), callback: middleware(callbackPage) };
}

/** The parts of a request that the pages read. */
function buildWebRequest({ method = "GET", url = "", headers }: LoginNodeRequest, origin: string): Request {
  const address = new URL(origin);
  address.search = url.split("#")[0]?.split(/\?(.*)/s)[1] ?? "";
  const read = ["cookie", "sec-fetch-site", "origin", "referer"].flatMap((name) => {
    const value = headers[name];
    return value === undefined ? [] : [[name, [value].flat().join("; ")]];
  });
  // Of the other methods, some cannot be in a request of fetch.
  return new Request(address, { method: method === "GET" ? "GET" : "POST", headers: Object.fromEntries(read) });
}
