import type { Client, ClientOptions } from "openapi-fetch";
import createOpenApiClient from "openapi-fetch";
import { AgentAuthError } from "../errors.js";
import { parseBaseUrl } from "../http/address.js";
import { forgetBody } from "../http/buffered-response.js";
import { systemClock } from "../http/deadline.js";
import { acceptsInternalRequest, HttpRequest } from "../http/http-message.js";
import { bindMethods, checkOptionNames, type OptionNames } from "../http/public-class.js";
import { Throttle } from "../http/retry.js";
import { createTransport, type Logger, type Transport, type TransportOptions } from "../http/transport.js";
import { userAgent } from "../http/version.js";
import { quote, Redactor } from "../redact.js";
import { bearerAuth, type PlaceToken, type TokenSource } from "./auth.js";
import {
  hideSecret,
  hideSecrets,
  type ListedKind,
  makeReadable,
  mayRetry,
  ReceivedPage,
  readBufferedResponse,
  readEnvelope,
  requireDocumented,
  serviceError,
} from "./envelope.js";
import { Listing, type ResourceOperations } from "./listing.js";
import { type IgnoredSorting, type ListingSummary, type ListOptions, orderText } from "./page.js";
import { type FetchPage, isUnusableItems, missingText, type Pace, pageError } from "./pages.js";
import type { paths } from "./schema.gen.js";
import type { CallOptions, Device, DeviceSorting, Domain, OpenSorting, Pool, SortingEncoding } from "./types.js";
import { callHeaders, querySerializer, readCallLimits, readSorting, readStrictChecks, requireId } from "./types.js";

/** How an {@link ManagementClient} reaches the service. */
export interface ManagementClientOptions extends TransportOptions {
  /** The service's base address, with or without `/api/v1`; https, or http to this machine. */
  baseUrl: string;
  /** The API token, or a function that returns it. It is sent to the origin of `baseUrl` and nowhere else. */
  token?: TokenSource | undefined;
  /** Puts the token on a request. Default: `Authorization: Bearer <token>`. */
  auth?: PlaceToken | undefined;
  /** How the requested order is sent. Default `deep`: `sorting[field]=title&sorting[direction]=asc`. */
  sorting?: SortingEncoding | undefined;
  /** Serialises query parameters, in place of `sorting`. Default: names and values are percent-encoded. */
  querySerializer?: ClientOptions["querySerializer"];
  /** The name of your program, put in front of ours in `User-Agent`. */
  userAgent?: string | undefined;
}

/**
 * The names of {@link ManagementClientOptions}.
 *
 * @internal
 */
export const MANAGEMENT_OPTIONS: OptionNames<ManagementClientOptions> = {
  ...{ fetch: true, timeoutMs: true, deadlineMs: true, maxRetries: true, maxBodyBytes: true },
  ...{ redirects: true, onEvent: true, logger: true, clock: true, random: true, baseUrl: true },
  ...{ token: true, auth: true, querySerializer: true, sorting: true, userAgent: true },
};

/** The raw client, typed by `openapi.yaml`; it shares token, retries, deadlines and caps with the lists. */
export type RawClient = Client<paths>;

interface PageCall<Sorting> {
  query: { sorting?: Sorting; "pagination[offset]"?: number; "pagination[page_size]"?: number };
  init: { parseAs: "stream"; fetch: (request: Request) => Promise<Response>; headers: Record<string, string> };
}

const LIST_OPTIONS: OptionNames<ListOptions<OpenSorting>> = {
  ...{ pageSize: true, sort: true, limit: true, concurrency: true, offset: true, maxPages: true, strict: true },
  ...{ onDrift: true, onSortingIgnored: true, onEnd: true, signal: true, headers: true },
  ...{ timeoutMs: true, maxRetries: true },
};

/**
 * The client of the management interface (`{base_url}/api/v1`): pools of a domain, domains of an account, devices of a
 * pool.
 *
 * @example
 * const service = new ManagementClient({ baseUrl: "https://agentauth.example", token: () => readToken() });
 * for await (const pool of service.pools.list({ domain_id })) console.log(pool.id, pool.title);
 */
export class ManagementClient {
  /** The pools of a domain. */
  readonly pools: ResourceOperations<{ domain_id: string }, OpenSorting, Pool>;
  /** The domains of an account. */
  readonly domains: ResourceOperations<{ account_id: string }, OpenSorting, Domain>;
  /** The devices of a pool. */
  readonly devices: ResourceOperations<{ pool_id: string }, DeviceSorting, Device>;
  readonly #redactor = new Redactor();
  readonly #mask = (text: string): string => this.#redactor.redact(text);
  readonly #transport: Transport;
  readonly #pace: Pace;
  readonly #openClient: (requestClass?: typeof Request) => RawClient;
  readonly #acceptsInternalRequest: boolean;
  readonly #logger: Logger | undefined;
  #plainClient: RawClient | undefined;
  #typedClient: RawClient | undefined;
  #shownClient: RawClient | undefined;

  constructor(options: ManagementClientOptions) {
    bindMethods(this, ManagementClient.prototype);
    checkOptionNames(options, MANAGEMENT_OPTIONS, "ManagementClient");
    const baseUrl = parseBaseUrl(options.baseUrl, "baseUrl").replace(/\/api\/v1$/, "");
    const auth = bearerAuth(options.token, options.auth, new URL(baseUrl).origin, this.#redactor);
    const { clock = systemClock } = options;
    this.#transport = createTransport(options, auth, mayRetry, this.#mask, new Throttle(clock));
    this.#pace = { now: () => clock.now(), inFlight: 0 };
    const serializer = options.querySerializer ?? querySerializer(options.sorting);
    this.#openClient = (requestClass) =>
      createOpenApiClient<paths>({
        baseUrl,
        headers: { accept: "application/json", "user-agent": userAgent(options.userAgent) },
        querySerializer: serializer,
        ...(requestClass && { Request: requestClass }),
        fetch: async (request) => makeReadable(await this.#transport(request, request.signal)).response,
      });
    this.#acceptsInternalRequest = acceptsInternalRequest(options.fetch);
    this.#logger = options.logger;
    this.pools = this.#operations("pool", "domain_id", (domain_id, { query, init }) =>
      this.#pageClient().GET("/api/v1/pool", { params: { query: { domain_id, ...query } }, ...init }),
    );
    this.domains = this.#operations("domain", "account_id", (account_id, { query, init }) =>
      this.#pageClient().GET("/api/v1/domain", { params: { query: { account_id, ...query } }, ...init }),
    );
    this.devices = this.#operations("device", "pool_id", (pool_id, { query, init }) =>
      this.#pageClient().GET("/api/v1/device", { params: { query: { pool_id, ...query } }, ...init }),
    );
  }

  /** The typed client for raw calls: `service.client.GET("/api/v1/device", { params: { query: { pool_id } } })`. */
  get client(): RawClient {
    this.#typedClient ??= this.#openClient();
    this.#shownClient ??= withHiddenSecrets(this.#typedClient);
    return this.#shownClient;
  }

  /** Middlewares of the typed client see the requests of lists too. */
  #pageClient(): RawClient {
    if (this.#typedClient) return this.#typedClient;
    // A request that goes through no middleware needs no global class, unless the fetch that gets it does.
    const requestClass = this.#acceptsInternalRequest ? (HttpRequest as unknown as typeof Request) : undefined;
    this.#plainClient ??= this.#openClient(requestClass);
    return this.#plainClient;
  }

  /**
   * One raw GET request, for paths that the typed client does not know.
   *
   * @param path the path below the base address, such as `/api/v1/device`
   * @param query parameters by their full names: `pagination[offset]`
   * @returns the response; its body can be read
   * @throws `AgentAuthError` for every response that is not a success
   */
  async get(
    path: string,
    query: Iterable<readonly [string, string]> = [],
    options: CallOptions = {},
  ): Promise<Response> {
    const headers = callHeaders(options);
    if (!/^\/(?!\/)[^?#\\]*$/.test(path) || /(?:^|\/)\.{1,2}(?:\/|$)/.test(path))
      throw new TypeError(`path ${quote(path)} must begin with a single "/", without ".", "..", query or fragment`);
    const pairs = [...query].map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(value)}`);
    // The one call outside the contract: its paths are not in openapi-fetch's types.
    const get = this.#pageClient().GET as unknown as UntypedGet;
    const reply = await readBufferedResponse(
      (fetch) =>
        get(path, { params: { query: {} }, querySerializer: () => pairs.join("&"), parseAs: "stream", fetch, headers }),
      async (request) => makeReadable(await this.#transport(request, options.signal, readCallLimits(options))),
    );
    const error = serviceError(reply, this.#mask);
    if (error) throw error;
    return reply.response;
  }

  /** @param scopeName the parameter that names what the items belong to */
  #operations<Name extends string, Sorting extends OpenSorting, Item extends { id: string }>(
    kind: ListedKind,
    scopeName: Name,
    requestPage: (scopeId: string, call: PageCall<Sorting>) => Promise<{ response: Response }>,
  ): ResourceOperations<Record<Name, string>, Sorting, Item> {
    const list = (scopeId: string, options?: ListOptions<Sorting>) => {
      requireId(scopeName, scopeId);
      const subject = `${kind}s of ${scopeName} ${quote(scopeId)}`;
      return this.#list<Item, Sorting>({ kind, subject }, (call) => requestPage(scopeId, call), options);
    };
    return {
      // Without parameters the error names the one that is missing.
      list: (params, options) => list(params?.[scopeName], options),
      async get(params, options) {
        const { id } = params;
        requireId("id", id);
        const scopeId = params[scopeName];
        let missing = 0;
        const onEnd = (summary: ListingSummary) => {
          ({ missing } = summary);
          options?.onEnd?.(summary);
        };
        try {
          for await (const item of list(scopeId, { ...options, onEnd })) if (item.id === id) return item;
        } catch (thrown) {
          // An item without an id is not the requested one.
          if (!isUnusableItems(thrown)) throw pageError(thrown);
        }
        const where = `${scopeName.replace("_id", "")} ${quote(scopeId)}`;
        if (missing > 0) {
          const message = `no ${kind} ${quote(id)} came in ${where}, but ${missingText({ missing })}`;
          const remedy = { action: "retry" } as const;
          throw new AgentAuthError("list_changed", message, { class: "unavailable", retryable: true, remedy });
        }
        throw new AgentAuthError("not_found", `no ${kind} ${quote(id)} in ${where}`, { class: "remote" });
      },
    };
  }

  #list<T extends object, Sorting extends OpenSorting>(
    { kind, subject }: { kind: ListedKind; subject: string },
    requestPage: (call: PageCall<Sorting>) => Promise<{ response: Response }>,
    options: ListOptions<Sorting> = {},
  ): Listing<T> {
    checkOptionNames(options, LIST_OPTIONS, "a list");
    const headers = callHeaders(options);
    const checks = readStrictChecks(options.strict);
    const sort = readSorting(options.sort);
    const fetchPage: FetchPage<T> = async (offset, signal) => {
      const query = {
        ...(sort && { sorting: sort }),
        ...(offset !== undefined && { "pagination[offset]": offset }),
        ...(options.pageSize && { "pagination[page_size]": options.pageSize }),
      };
      const reply = await readBufferedResponse(
        (fetch) => requestPage({ query, init: { parseAs: "stream", fetch, headers } }),
        async (request) => {
          const received = await this.#transport(request, signal, readCallLimits(options));
          // openapi-fetch reads the body of a failed response.
          return received.response.ok ? received : makeReadable(received);
        },
      );
      const envelope = readEnvelope<T>(reply, this.#mask);
      requireDocumented(kind, reply, checks);
      for (const item of envelope.summaries) hideSecret(item);
      forgetBody(reply);
      return new ReceivedPage(envelope, reply, offset ?? 0);
    };
    const onSortingIgnored = (ignored: IgnoredSorting) => {
      options.onSortingIgnored?.(ignored);
      const { requested, applied } = ignored;
      this.#logger?.warn(
        `${subject}: ${orderText(requested)} was requested, and the answer names ${orderText(applied)}`,
      );
    };
    return new Listing<T>(fetchPage, { ...options, sort, onSortingIgnored, checks, subject }, this.#pace);
  }
}

type UntypedGet = (
  path: string,
  init: PageCall<never>["init"] & { params: { query: Record<string, never> }; querySerializer: () => string },
) => Promise<{ response: Response }>;

/** openapi-fetch parses a body after every middleware, so secrets are hidden in the parsed value here. */
function withHiddenSecrets(client: RawClient): RawClient {
  const hiding = <Method extends (...args: never[]) => Promise<{ data?: unknown }>>(method: Method): Method =>
    (async (...args: Parameters<Method>) => {
      const result = await method(...args);
      hideSecrets(result.data);
      return result;
    }) as Method;
  return { ...client, GET: hiding(client.GET), request: hiding(client.request) };
}
