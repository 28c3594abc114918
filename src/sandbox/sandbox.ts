import { abortedError } from "../errors.js";
import { Clock, type SandboxClock } from "./clock.js";
import { type Account, SandboxData } from "./data/data.js";
import { FaultController } from "./faults/controller.js";
import { adminApi } from "./http/admin-api.js";
import { hostGuard } from "./http/request-guard.js";
import { createRequestLog, type RequestLog } from "./http/request-log.js";
import { json, type Part, Refusal } from "./http/round-trip.js";
import { createRouter } from "./http/router.js";
import { listen, type RequestHandler } from "./http/server.js";
import { Sleeps } from "./http/sleeps.js";
import { managementPart } from "./management/management.js";
import { mcpPart } from "./mcp/mcp-server.js";
import { authorizationPart } from "./oauth/authorization-server.js";
import { identityProviderPart } from "./oauth/identity-provider.js";
import { Machines, type SandboxMachine } from "./oauth/machine.js";
import { MCP_PATH, PoolServers } from "./oauth/pool-servers.js";
import { readSettings, type SandboxOptions, type SandboxSettings } from "./settings.js";

/** A running sandbox. */
export interface Sandbox {
  /** Where it listens, such as `http://127.0.0.1:40123`. */
  readonly origin: string;
  /** The base address of the service: the management interface is at `${baseUrl}/api/v1`. */
  readonly baseUrl: string;
  /** The MCP server that the first pool's authorization server protects; any pool's is at `${mcpUrl}/{pool_id}`. */
  readonly mcpUrl: string;
  /** The issuer of a pool, which is the base address of its authorization server. @throws TypeError for no pool */
  authUrl(poolId: string): string;
  /** What the management interface takes as a bearer token. */
  readonly apiToken: string;
  /** What the endpoints below `/_sandbox` take as a bearer token. */
  readonly controlToken: string;
  /** Every account, in order. */
  readonly accounts: readonly Account[];
  /** The first account, its first domain, and that one's first pool. */
  readonly ids: { readonly account: string; readonly domain: string; readonly pool: string };
  /** What the service knows; devices can be inserted and deleted while it runs. */
  readonly data: SandboxData;
  /** What it does wrong on purpose. */
  readonly faults: FaultController;
  /** What it was asked, control endpoints left out. */
  readonly requests: RequestLog;
  /** What programs need that get tokens without a person; `undefined` without the option `machineGrants`. */
  readonly machine: SandboxMachine | undefined;
  /** Its time, which can be put forward: tokens expire by it. */
  readonly clock: SandboxClock;
  /** Resolves when it has closed, however that came about. */
  readonly closed: Promise<void>;
  /** Stops it and ends every connection, within a second. */
  close(): Promise<void>;
  /** As {@link Sandbox.close}. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Starts the service on loopback: made-up data, an authorization server for each pool, MCP servers behind them, a real
 * HTTP server, and faults on demand.
 *
 * @throws AgentAuthError `usage` for an option that is wrong or an address that cannot be had, `aborted` where the
 * signal has fired
 */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  const { signal } = options;
  if (signal?.aborted) throw abortedError(signal);
  const settings = readSettings(options);
  const clock = new Clock(settings.now);
  const data = new SandboxData(settings.seed, settings.size, startOfDay(clock.now()));
  const faults = new FaultController(settings.seed);
  faults.add(settings.faults);
  const requests = createRequestLog();
  const waits = new Sleeps();
  const { promise: closed, resolve: markClosed } = deferred();

  // The parts need the origin, which is known only once the server listens: the handler is put in place just after.
  let dispatch: RequestHandler = async (_request, response) => void response.destroy();
  const server = await listen(settings.host, settings.port, (request, response) => dispatch(request, response));
  const close = () => {
    waits.end();
    server.close().then(markClosed, markClosed);
    signal?.removeEventListener("abort", close);
    return closed;
  };
  const { origin } = server;
  const machines = settings.oauth.machineGrants
    ? new Machines(origin, clock, () => `${origin}/${data.first.pool}`)
    : undefined;
  const servers = new PoolServers({ ...settings, origin, clock, data, machines });
  const world = { data, faults, clock, servers, machines, origin, requests: requests.log, shutdown: close };
  dispatch = createRouter({
    ...settings,
    parts: partsOf(settings, world),
    faults,
    guard: hostGuard(settings.host, server.port),
    log: requests.add,
    now: () => clock.now(),
    waits,
  });
  if (signal?.aborted) await close();
  else signal?.addEventListener("abort", close);
  return publicFace(settings, { ...world, closed, close });
}

/** What a sandbox consists of. */
interface World {
  data: SandboxData;
  faults: FaultController;
  clock: Clock;
  servers: PoolServers;
  machines: Machines | undefined;
  origin: string;
  requests: RequestLog;
  shutdown: () => void;
}

function partsOf(settings: SandboxSettings, world: World): Part[] {
  const { machines, servers } = world;
  return [
    managementPart({ ...settings, ...world }),
    authorizationPart({ ...settings, ...world }),
    mcpPart({ ...settings.oauth, ...world }),
    ...(machines ? [identityProviderPart({ machines, knows: (issuer) => servers.knows(issuer) })] : []),
    adminApi({ ...settings, ...world }),
    healthPart(settings),
  ];
}

function publicFace(settings: SandboxSettings, world: World & Pick<Sandbox, "closed" | "close">): Sandbox {
  const { apiToken, controlToken } = settings;
  const { data, faults, clock, servers, machines, origin, requests, closed, close } = world;
  return withHidden(
    { apiToken, controlToken },
    {
      origin,
      baseUrl: origin,
      mcpUrl: origin + MCP_PATH,
      authUrl: (poolId: string) => authUrl(servers, poolId),
      accounts: data.accounts(),
      ids: data.first,
      data,
      faults,
      requests,
      machine: machines,
      clock,
      closed,
      close,
      [Symbol.asyncDispose]: close,
    },
  );
}

function authUrl(servers: PoolServers, poolId: string): string {
  const server = servers.find(poolId);
  if (!server) throw new TypeError(`the sandbox has no pool ${poolId}`);
  return server.issuer;
}

/** Adds properties that printing and serialising leave out, as is due to secrets; `%o` shows that they are there. */
function withHidden<H extends object, T extends object>(hidden: H, target: T): T & H {
  for (const [name, value] of Object.entries(hidden)) Object.defineProperty(target, name, { get: () => value });
  return target as T & H;
}

/** Says without a token that the sandbox runs, and that it is one. */
function healthPart({ seed, size }: SandboxSettings): Part {
  return {
    owns: (path) => path === "/health",
    faulty: false,
    unlogged: false,
    latency: 0,
    handle({ method }) {
      if (method === "GET" || method === "HEAD") return json({ status: "ok", service: "sandbox", seed, size });
      throw new Refusal(405, "invalid_action", "use GET", { allow: "GET, HEAD" });
    },
  };
}

function startOfDay(ms: number): number {
  return Math.floor(ms / 86_400_000) * 86_400;
}

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
