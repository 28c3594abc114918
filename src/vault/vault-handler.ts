import { isAgentAuthError } from "../errors.js";
import { type Clock, systemClock } from "../http/deadline.js";
import { Lru } from "../http/lru.js";
import { checkOptionNames, type OptionNames } from "../http/public-class.js";
import type { AgentClient } from "../oauth/agent.js";
import type { AgentUser } from "../oauth/agent-tokens.js";
import { checkRedirectUri, checkReturnTo } from "../oauth/login/web-app.js";
import { callbackPage, cookiesOfStart, describeFailure, isOffered } from "../oauth/login-handlers.js";
import type { ConnectionState } from "../oauth/model/connection.js";
import { parseMcpUrl } from "../oauth/model/resource.js";
import { quote } from "../redact.js";
import {
  type FormToken,
  formTokenOf,
  readPost,
  respondJson,
  respondProblem,
  respondSeeOther,
  type SentFields,
} from "./http.js";

export type { FormToken } from "./http.js";

/** A user of the platform, as `AgentClient.for` takes it. */
export type VaultUser = AgentUser;

/** What the vault of a platform needs. */
export interface VaultOptions {
  /**
   * Who sent a request, by the session of the platform; undefined if no user is logged in, which is answered with 401. A
   * cookie of the session needs `SameSite=Lax`: the browser returns to `callback` from the issuer.
   */
  authenticate: (request: Request) => VaultUser | undefined | Promise<VaultUser | undefined>;
  /**
   * The public address of the handler, such as `https://app.example/vault`: https, or http on a loopback host. Its origin is
   * that of the pages of the platform, and issuers send users back to `callback` below it.
   */
  baseUrl: string;
  /** The MCP servers that users may connect. */
  servers: readonly string[];
  /** The scopes that `scope` of a request may name. Default: none, which leaves the choice to the server. */
  scopes?: readonly string[] | undefined;
  /**
   * The page that a browser returns to if a request names none, and if its login failed: with the query parameter `error`.
   * Default: `/`.
   */
  returnTo?: string | undefined;
  /** Answers `POST /token` with the access token of a connection. Default false: no response holds a token. */
  token?: boolean | undefined;
  /** How many requests a user may send in a minute to each process. Default: 120. */
  requestsPerMinute?: number | undefined;
  /** Called for each login that fails, and for errors of the platform itself: responses have the code alone. */
  onError?: ((error: unknown) => void) | undefined;
  /** The clock of the limit. Default: that of the machine. */
  clock?: Pick<Clock, "now"> | undefined;
}

const OPTIONS: OptionNames<VaultOptions> = {
  authenticate: true,
  baseUrl: true,
  servers: true,
  scopes: true,
  returnTo: true,
  token: true,
  requestsPerMinute: true,
  onError: true,
  clock: true,
};

/** The vault of a platform: its users list, start, finish and end connections, each their own. */
export interface Vault {
  /** Answers the requests below `baseUrl`, as `vault.openapi.yaml` describes them. */
  fetch(request: Request): Promise<Response>;
  /** The hidden field of the plain forms of a page, for the browser that requested the page. */
  formToken(request: Request): FormToken;
}

/** The settings of a vault, checked. */
interface VaultSettings {
  baseUrl: string;
  /** What the path of each request begins with. */
  basePath: string;
  redirectUri: URL;
  servers: readonly string[];
  scopes: readonly string[];
  returnTo: string;
}

/** A request of a user. */
interface VaultRequest {
  agent: AgentClient;
  request: Request;
  settings: VaultSettings;
}

type Operation = [method: "GET" | "POST", run: (context: VaultRequest, sent: SentFields) => Promise<Response>];

const OPERATIONS = new Map<string, Operation>([
  ["connections", ["GET", listConnections]],
  ["connect", ["POST", startConnection]],
  ["callback", ["GET", finishConnection]],
  ["disconnect", ["POST", endConnection]],
  ["token", ["POST", respondToken]],
]);

/**
 * The requests with which the users of a platform connect MCP servers, as a fetch-style handler for Hono, Next.js or a
 * worker.
 *
 * @param agents the client whose `for` has the users
 * @throws `TypeError`, or `AgentAuthError` `usage`, for an option that is wrong
 *
 * @example
 * const vault = vaultHandler(agents, { authenticate: userOf, baseUrl: "https://app.example/vault", servers });
 * app.all("/vault/*", (c) => vault.fetch(c.req.raw));
 */
export function vaultHandler(agents: AgentClient, options: VaultOptions): Vault {
  checkOptionNames(options, OPTIONS, "vaultHandler");
  const { authenticate, onError, requestsPerMinute = 120, clock = systemClock } = options;
  if (typeof authenticate !== "function") throw new TypeError("authenticate is required: it says who sent a request");
  if (!(requestsPerMinute >= 1)) throw new TypeError(`requestsPerMinute must be 1 or more, not ${requestsPerMinute}`);
  const settings = settingsOf(options);
  const limit = new RateLimit(requestsPerMinute, clock);

  /** The response to a request of a user. */
  async function answer(request: Request, user: VaultUser): Promise<Response> {
    const wait = limit.secondsToWait(JSON.stringify([user.tenant, user.user]));
    if (wait !== undefined) return respondProblem(429, "too_many_requests", { "retry-after": `${wait}` });
    const name = operationOf(request, settings);
    const operation = name === "token" && !options.token ? undefined : OPERATIONS.get(name);
    if (operation === undefined) return respondProblem(404, "not_found");
    const [method, run] = operation;
    if (request.method !== method) return respondProblem(405, "method_not_allowed", { allow: method });
    const isCallback = name === "callback";
    const sent = method === "POST" ? await readPost(request, settings.baseUrl) : { isPage: isCallback, field: noField };
    if (sent instanceof Response) return sent;
    try {
      return await run({ agent: agents.for(user), request, settings }, sent);
    } catch (error) {
      onError?.(error);
      const { status, code } = describeFailure(error);
      return sent.isPage ? respondSeeOther(withError(settings.returnTo, code)) : respondProblem(status, code);
    }
  }

  return {
    async fetch(request) {
      try {
        const user = await authenticate(request);
        return user === undefined ? respondProblem(401, "not_authenticated") : await answer(request, user);
      } catch (error) {
        onError?.(error);
        return respondProblem(500, "internal_error");
      }
    },
    formToken: formTokenOf,
  };
}

function settingsOf({ baseUrl: given, servers, scopes = [], returnTo = "/" }: VaultOptions): VaultSettings {
  const baseUrl = given.replace(/\/$/, "");
  const redirectUri = checkRedirectUri(`${baseUrl}/callback`);
  if (redirectUri.search !== "") throw new TypeError(`baseUrl ${quote(given)} must have no query`);
  const page = checkReturnTo(returnTo, redirectUri) ?? redirectUri.origin;
  const basePath = `${new URL(baseUrl).pathname.replace(/\/$/, "")}/`;
  const known = servers.map((url) => parseMcpUrl(url).resource);
  return { baseUrl, basePath, redirectUri, servers: known, scopes, returnTo: page };
}

/** The last part of the path, if it is directly below the base address; a proxy may have changed the host. */
function operationOf(request: Request, { basePath }: VaultSettings): string {
  const { pathname } = new URL(request.url);
  return pathname.startsWith(basePath) ? pathname.slice(basePath.length) : "";
}

function noField(): undefined {
  return undefined;
}

function withError(page: string, code: string): string {
  const url = new URL(page);
  url.searchParams.set("error", code);
  return url.href;
}

/** A page of the user's connections. The user's name at the store is of no use to the user. */
async function listConnections({ agent, request }: VaultRequest): Promise<Response> {
  const query = new URL(request.url).searchParams;
  const [limit, server] = [query.get("limit"), query.get("server")];
  const page = await agent.connections({
    state: (query.get("state") as ConnectionState | null) ?? undefined,
    server: server === null ? undefined : (canonical(server) ?? server),
    limit: limit === null ? undefined : Number(limit),
    cursor: query.get("cursor") ?? undefined,
  });
  return respondJson({ items: page.items.map(({ profile, ...shown }) => shown), cursor: page.cursor ?? null });
}

/** Sends the browser to the issuer: with a redirect, or with the address of it for a script. */
async function startConnection({ agent, request, settings }: VaultRequest, { isPage, field }: SentFields) {
  const server = offeredServer(settings, field("server"));
  const scope = field("scope");
  if (server === undefined || !isOffered(scope, settings.scopes)) return respondProblem(404, "not_found");
  const redirectUri = settings.redirectUri.href;
  const returnTo = field("return_to") ?? settings.returnTo;
  const login = await agent.startLogin(server, { redirectUri, returnTo, scope, signal: request.signal });
  const cookies = await cookiesOfStart(login, redirectUri, request);
  return isPage ? respondSeeOther(login.url, cookies) : respondJson({ url: login.url }, cookies);
}

/** Stores the connection, and sends the browser to the page that it started from; or to the issuer once more. */
async function finishConnection({ agent, request, settings }: VaultRequest): Promise<Response> {
  const { servers, redirectUri } = settings;
  const { headers } = await callbackPage(agent, request, { servers, redirectUri: redirectUri.href });
  return respondSeeOther(headers.get("location") ?? settings.returnTo, headers.getSetCookie());
}

/** Removes a connection of the user, also to a server that is not offered any more. */
async function endConnection({ agent, request, settings }: VaultRequest, { isPage, field }: SentFields) {
  const server = canonical(field("server"));
  const returnTo = checkReturnTo(field("return_to"), settings.redirectUri) ?? settings.returnTo;
  if (server === undefined) return respondProblem(404, "not_found");
  const { removed, revoked } = await agent.disconnect(server, {
    account: field("account") ?? null,
    signal: request.signal,
  });
  if (isPage) return respondSeeOther(returnTo);
  return removed ? respondJson({ revoked }) : respondProblem(404, "not_found");
}

async function respondToken({ agent, request, settings }: VaultRequest, { isPage, field }: SentFields) {
  if (isPage) return respondProblem(415, "bad_content_type");
  const server = offeredServer(settings, field("server"));
  if (server === undefined) return respondProblem(404, "not_found");
  try {
    const token = await agent.token(server, { login: false, signal: request.signal });
    return respondJson({
      access_token: token.value,
      token_type: token.tokenType,
      expires_at: token.expiresAt?.toISOString() ?? null,
      scope: token.scope ?? null,
    });
  } catch (error) {
    if (isAgentAuthError(error) && error.class === "auth") return respondProblem(409, "login_required");
    throw error;
  }
}

/** The canonical address of a server, if users may connect it: the vault sends requests to no other. */
function offeredServer({ servers }: VaultSettings, value: string | undefined): string | undefined {
  const server = canonical(value);
  return server !== undefined && servers.includes(server) ? server : undefined;
}

function canonical(value: string | undefined): string | undefined {
  try {
    return value === undefined ? undefined : parseMcpUrl(value).resource;
  } catch {
    return undefined;
  }
}

/** Subjects whose requests are counted at once. */
const MAX_SUBJECTS = 10_000;
const MINUTE_MS = 60_000;

/** A bucket of tokens for each subject, in this process: full at first, and refilled within a minute. */
class RateLimit {
  readonly #perMinute: number;
  readonly #clock: Pick<Clock, "now">;
  readonly #buckets = new Lru<{ left: number; at: number }>(MAX_SUBJECTS);

  constructor(perMinute: number, clock: Pick<Clock, "now">) {
    this.#perMinute = perMinute;
    this.#clock = clock;
  }

  /** Counts a request. @returns the seconds to wait if it is one too many */
  secondsToWait(subject: string): number | undefined {
    const now = this.#clock.now();
    const { left, at } = this.#buckets.get(subject) ?? { left: this.#perMinute, at: now };
    const refilled = Math.min(this.#perMinute, left + ((now - at) * this.#perMinute) / MINUTE_MS);
    const isAllowed = refilled >= 1;
    this.#buckets.set(subject, { left: isAllowed ? refilled - 1 : refilled, at: now });
    return isAllowed ? undefined : Math.ceil(((1 - refilled) * MINUTE_MS) / this.#perMinute / 1000);
  }
}
