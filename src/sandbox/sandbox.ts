import { abortedError } from "../errors.js";
import { requireOptions } from "../http/public-class.js";
import { type Account, SandboxData } from "./data/data.js";
import { FaultController, type SandboxPart } from "./faults/controller.js";
import { MovableClock, type SandboxClock } from "./http/clock.js";
import { createRequestLog, jsonResponse, READ_METHODS, type RequestLog, requireMethod } from "./http/requests.js";
import { managementPart } from "./management/management-api.js";
import { mcpPart } from "./mcp/mcp-server.js";
import { authorizationPart } from "./oauth/authorization-server.js";
import { Machines, type SandboxMachine } from "./oauth/machine.js";
import { MCP_PATH, PoolServers } from "./oauth/pool-server.js";
import { adminApi, listen } from "./router.js";
import { readSandboxSettings, type SandboxOptions, type SandboxSettings } from "./sandbox-settings.js";

const DAY_MS = 86_400_000;

/** A running sandbox. */
export interface Sandbox {
  /** Where it listens, such as `http://127.0.0.1:40123`; all other addresses begin with the option `publicUrl`, if it is given. */
  readonly origin: string;
  /** The base URL of the service: the management API is at `${baseUrl}/api/v1`. */
  readonly baseUrl: string;
  /** The MCP server of the first pool; the one of any pool is at `${mcpUrl}/{pool_id}`. */
  readonly mcpUrl: string;
  /** The issuer of a pool: the base URL of its authorization server. @throws TypeError for an unknown pool */
  authUrl(poolId: string): string;
  /** The bearer token of the management API. */
  readonly apiToken: string;
  /** The bearer token of the admin API below `/_sandbox`. */
  readonly controlToken: string;
  /** Every account, in order. */
  readonly accounts: readonly Account[];
  /** The first account, its first domain and the first pool of that domain. */
  readonly ids: { readonly account: string; readonly domain: string; readonly pool: string };
  /** The data of the service; devices can be inserted and deleted while it runs. */
  readonly data: SandboxData;
  /** The faults that it injects. */
  readonly faults: FaultController;
  /** The requests that it received, except those of the admin API. */
  readonly requests: RequestLog;
  /** Credentials for the machine grants; `undefined` without the option `machineGrants`. */
  readonly machine: SandboxMachine | undefined;
  /** Its clock, which can be moved forward: tokens expire by it. */
  readonly clock: SandboxClock;
  /** Resolves when it has closed, for whatever reason. */
  readonly closed: Promise<void>;
  /** Stops it and closes every connection, within a second. */
  close(): Promise<void>;
  /** The same as {@link Sandbox.close}. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Starts the service on loopback: sample data, an authorization server for each pool, the MCP servers that they
 * protect, a real HTTP server, and faults on demand.
 *
 * @throws AgentAuthError `usage` for an invalid option or an address that is not available, `aborted` where the
 * signal has fired; `TypeError` for an unknown option
 */
export async function startSandbox(options: SandboxOptions = {}): Promise<Sandbox> {
  requireOptions({ options }, { options: "object" }, "startSandbox");
  const { signal } = options;
  if (signal?.aborted) throw abortedError(signal);
  const settings = readSandboxSettings(options);
  const clock = new MovableClock(settings.now);
  const data = new SandboxData(settings.seed, settings.size, Math.floor(clock.now() / DAY_MS) * (DAY_MS / 1000));
  const faults = new FaultController(settings.seed);
  faults.add(settings.faults);
  const requests = createRequestLog();
  const server = await listen({ ...settings, faults, log: requests.add, now: () => clock.now() }, settings.port);
  const { origin, closed } = server;
  const close = () => {
    signal?.removeEventListener("abort", close);
    return server.close();
  };
  const published = settings.publicUrl ?? origin;
  const machines = settings.machineGrants
    ? new Machines(published, clock, () => `${published}/${data.first.pool}`)
    : undefined;
  const common = { ...settings, oauth: settings, data, clock, machines, origin: published };
  const servers = new PoolServers(common);
  const components = { ...common, faults, servers, requests: requests.log, closed };
  server.serve([
    managementPart(components),
    authorizationPart(components),
    mcpPart(components),
    adminApi({ ...components, shutdown: close }),
    healthPart(settings),
  ]);
  if (signal?.aborted) await close();
  else signal?.addEventListener("abort", close);
  const sandbox: Omit<Sandbox, "apiToken" | "controlToken"> = {
    origin,
    baseUrl: published,
    mcpUrl: published + MCP_PATH,
    authUrl: (poolId: string) => servers.get(poolId).issuer,
    accounts: data.accounts(),
    ids: data.first,
    data,
    faults,
    requests: requests.log,
    machine: machines,
    clock,
    closed,
    close,
    [Symbol.asyncDispose]: close,
  };
  // Secrets are not enumerable: printing and serialising leave them out, and `%o` shows their names.
  const { apiToken, controlToken } = settings;
  Object.defineProperties(sandbox, { apiToken: { get: () => apiToken }, controlToken: { get: () => controlToken } });
  return sandbox as Sandbox;
}

/** `GET /health` needs no token: it identifies the service as a sandbox. */
function healthPart({ seed, size }: SandboxSettings): SandboxPart {
  return {
    owns: (path) => path === "/health",
    faulty: false,
    handle({ method }) {
      requireMethod(method, READ_METHODS);
      return jsonResponse({ status: "ok", service: "sandbox", seed, size });
    },
  };
}
