import { AgentAuthError, usageError } from "../../errors.js";
import { Lru } from "../../http/lru.js";
import { checkOptionNames, type OptionNames } from "../../http/public-class.js";
import {
  CodecError,
  decodeBinding,
  decodeClient,
  decodeGrant,
  encodeBinding,
  encodeClient,
  encodeGrant,
} from "../../oauth/model/codec.js";
import {
  type BindingKey,
  type BindingStore,
  type ClientBinding,
  type GrantStore,
  isSameBinding,
  type ShortLivedRecords,
  UNREVOKED_MS,
  type UnrevokedLogins,
} from "../../oauth/model/grant-store.js";
import { readUsable } from "../../oauth/model/grant-summary.js";
import { quote } from "../../redact.js";
import { noSealing, type Sealing } from "../seal/sealing.js";
import type { StoreDriver } from "./driver.js";
import { DriverLeases, type Takeover } from "./driver-leases.js";
import { EngineClock, type StoreClock, storeClock } from "./engine.js";
import { GrantRecords } from "./grant-records.js";
import { NearGrants, type NearOptions } from "./remembered-grants.js";
import { TenantRecords } from "./tenant-records.js";

function clientRecords(records: TenantRecords): Pick<GrantStore, "readClient" | "saveClient"> {
  return {
    readClient: async (issuer, form) =>
      records.read(await records.key("client", issuer, form), (text) => {
        const client = decodeClient(text);
        if (client.issuer !== issuer) throw new CodecError("it contains a client of another issuer");
        return client;
      }),
    saveClient: async (client, form) => {
      const key = await records.key("client", client.issuer, form);
      const text = encodeClient(client);
      await records.update(key, async () => ({ text, result: undefined }));
    },
  };
}

/** The issuers of the clients of a tenant. */
function bindingRecords(records: TenantRecords): BindingStore {
  const bindingKey = ({ profile, clientId }: BindingKey) => records.key("binding", profile, clientId);
  const decodeFor = (id: string) => async (text: string) => {
    const binding = decodeBinding(text);
    if ((await bindingKey(binding)).id !== id) throw new CodecError("it contains the binding of another client");
    return binding;
  };
  return {
    readBinding: async (binding) => {
      const key = await bindingKey(binding);
      return records.read(key, decodeFor(key.id));
    },
    saveBinding: async (binding, expected) => {
      const key = await bindingKey(binding);
      return records.update<ClientBinding>(key, async (before) => {
        const stored = before && (await records.decode(before, decodeFor(key.id)));
        if (stored !== undefined && !isSameBinding(stored, expected)) return { result: stored };
        return { text: encodeBinding(binding), result: binding };
      });
    },
    // An unreadable binding can be removed too: that exposes no credential, and the user is asked again.
    removeBinding: async (binding) => records.driver.delete(await bindingKey(binding)),
    listBindings: async () => {
      const found = await records.scan("binding");
      const all = await Promise.all(found.map((record) => records.decode(record, decodeFor(record.key.id))));
      return all.filter((binding) => binding !== undefined);
    },
  };
}

/** The texts of a tenant that live for minutes. */
function shortLivedRecords(records: TenantRecords): ShortLivedRecords {
  return {
    put: async (id, text, { now, expiresAt }) => {
      const key = await records.key("login", id);
      const expiresInMs = Math.max(1, expiresAt - now);
      // Two callers may put the same text, and one of them must get false: each stores a text of its own.
      return records.write(key, `${crypto.randomUUID()} ${text}`, undefined, { expiresInMs });
    },
    take: async (id) => {
      const key = await records.key("login", id);
      const record = await records.driver.get(key);
      if (record === undefined || !(await records.driver.delete(key, record.version))) return undefined;
      return records.decode(record, withoutId);
    },
    read: async (id) => records.read(await records.key("login", id), withoutId),
  };
}

/** The logins of a tenant whose tokens are to be revoked. */
function unrevokedRecords(records: TenantRecords): UnrevokedLogins {
  return {
    add: async (grant) => {
      const key = await records.key("revocation", crypto.randomUUID());
      await records.write(key, encodeGrant(grant), undefined, { expiresInMs: UNREVOKED_MS });
      return async () => void (await records.driver.delete(key));
    },
    async *list() {
      for await (const { items } of records.pages("revocation")) {
        for (const record of items) {
          const grant = await readUsable(() => records.decode(record, decodeGrant));
          if (grant) yield { grant, remove: async () => void (await records.driver.delete(record.key)) };
        }
      }
    },
  };
}

function withoutId(text: string): string {
  return text.slice(text.indexOf(" ") + 1);
}

/** Options of {@link grantStore}. */
export interface GrantStoreOptions {
  /**
   * What seals the records: a `keyRing` or an `envelope`. `"none"` stores tokens in the clear, for everyone who can read
   * the engine.
   */
  seal: Sealing | "none";
  /** The tenant whose grants these are. Tenants share registered clients, and nothing else. Default: `default`. */
  tenant?: string | undefined;
  /**
   * When another process may take over from a holder that may have sent a refresh token: `patient` after three times the
   * duration of its work (75 seconds by the default timeouts), `fast` after the four seconds in which a live holder extends
   * its lease. A process that is killed between its request and its save delays the others by that. One that is stopped, or
   * cut off from the engine, for longer causes a refresh token to be used twice, which an issuer without a grace period takes
   * for theft. Default: `patient`. A function decides by the issuer. Where the last refresh of a login left its refresh token as
   * it was, a second use does no harm: such a login is taken over as with `fast`.
   */
  takeover?: Takeover | ((issuer: string) => Takeover) | undefined;
  /**
   * What this process calls itself, such as the name of its pod: other processes that wait for its lease report it, the
   * beginning of it if it is longer than 100 characters. It must not be secret.
   */
  holder?: string | undefined;
  /** Returns living tokens without asking the engine. Default: every read asks it, so that a logout is seen at once. */
  near?: NearOptions | undefined;
}

const OPTIONS: OptionNames<GrantStoreOptions> = {
  ...{ seal: true, tenant: true, takeover: true, holder: true, near: true },
};
const NEAR: OptionNames<NearOptions> = { ttlMs: true, maxEntries: true };
/** Milliseconds after which a lease is free, unless it is extended. */
const LEASE_TTL_MS = 4000;
/** The tenants whose keys and newest grants a process remembers. */
const MAX_TENANTS = 1000;

/**
 * A store of grants in an engine that many machines share. The driver asks the engine; everything else is done here:
 * the codec, the sealing, leases that a live process extends each second, saves over exactly what was read, and the
 * repair of what a failover lost.
 *
 * @throws `AgentAuthError` `usage` if `seal` is missing; a save `store_unsafe` (class `store`) if the engine reports that it
 * must not be used; each operation `store_unavailable` (class `unavailable`) if the
 * engine does not respond, and class `store` for a record that cannot be used
 */
export function grantStore(driver: StoreDriver, options: GrantStoreOptions): GrantStore {
  return openGrantStore(driver, options);
}

/** As {@link grantStore}, with the clock of the caller. */
export function openGrantStore(
  driver: StoreDriver,
  options: GrantStoreOptions,
  { clock = storeClock }: { readonly clock?: StoreClock } = {},
): GrantStore {
  checkOptions(options);
  const { tenant = "default", takeover = "patient", holder, near: nearOptions } = options;
  const sealing = options.seal === "none" ? noSealing() : options.seal;
  const shared = new TenantRecords(driver, sealing, "clients");
  const near = nearOptions && new NearGrants(driver, nearOptions, clock);
  const engineClock = new EngineClock(driver, clock);
  const leases = new DriverLeases(clock, { ttlMs: LEASE_TTL_MS, takeover, holder: holder?.slice(0, 100) });
  const engine = { driver, sealing, shared, clock, engineClock, near, leases, check: engineCheck(driver) };
  const stores = new Lru<GrantStore>(MAX_TENANTS);
  const openTenant = (name: string): GrantStore => {
    const known = stores.get(name);
    if (known !== undefined) return known;
    const own = tenantStore(engine, name);
    const store: GrantStore = {
      ...own,
      connections: ({ tenant: other = name, ...query } = {}) => {
        checkTenant(other);
        return (other === name ? own : openTenant(other)).connections(query);
      },
      ...(driver.health && { health: driver.health.bind(driver) }),
      for: (place) => {
        checkTenant(place.tenant);
        return openTenant(place.tenant);
      },
    };
    stores.set(name, store);
    return store;
  };
  return openTenant(tenant);
}

interface Engine {
  driver: StoreDriver;
  sealing: Sealing;
  shared: TenantRecords;
  clock: StoreClock;
  engineClock: EngineClock;
  near: NearGrants | undefined;
  leases: DriverLeases;
  check: () => Promise<void>;
}

function tenantStore(engine: Engine, tenant: string): GrantStore {
  const { driver, shared, near, leases } = engine;
  const own = new TenantRecords(driver, engine.sealing, "tenant", tenant);
  const grants = new GrantRecords(own, engine);
  return {
    location: driver.location,
    tenant,
    read: (key) => grants.read(key),
    save: async (grant, expected) => {
      await engine.check();
      return grants.save(grant, expected);
    },
    reserve: async (key, dueAt) => {
      await engine.check();
      return grants.reserve(key, dueAt);
    },
    remove: (key) => grants.remove(key),
    list: (filter = {}, onUnusable = () => {}) => grants.list(filter, onUnusable),
    connections: (query = {}) => grants.connections(query),
    ...clientRecords(shared),
    ...bindingRecords(own),
    shortLived: shortLivedRecords(own),
    unrevoked: unrevokedRecords(own),
    due: grants.due,
    lease: async (name, work, leaseOptions) => {
      const { refreshes, grant = refreshes } = leaseOptions;
      const rotatedHere = async () => refreshes && grants.rotatedGeneration(refreshes);
      const run = () => leases.run(leaseOptions.shared ? shared : own, name, work, leaseOptions, rotatedHere);
      return near && grant ? near.without((await grants.key(grant)).id, run) : run();
    },
  };
}

/**
 * A check of the engine before the first save: what an engine evicts when its memory is full must not be a login. An
 * engine that does not report its health is used: a managed one may forbid that.
 *
 * @returns a function that throws `AgentAuthError` `store_unsafe` while the engine must not be used
 */
function engineCheck(driver: StoreDriver): () => Promise<void> {
  let isSafe = driver.health === undefined;
  return async () => {
    if (isSafe) return;
    const health = await driver.health?.().catch(() => undefined);
    const errors = health?.errors ?? [];
    if (errors.length > 0) {
      const message = `the engine ${driver.location} must not hold logins: ${errors.join("; ")}`;
      throw new AgentAuthError("store_unsafe", message, { class: "store" });
    }
    isSafe = true;
  };
}

function checkOptions(options: Partial<GrantStoreOptions> = {}): void {
  const { seal, takeover, tenant, holder, near } = options;
  checkOptionNames(options, OPTIONS, "grantStore");
  if (near !== undefined) checkOptionNames(near, NEAR, "near");
  const isSealing = typeof seal === "object" && seal !== null && typeof seal.cipherFor === "function";
  if (seal !== "none" && !isSealing) {
    const given = seal === undefined ? "is missing" : `is ${quote(seal)}`;
    const message = `the option seal ${given}: it decides whether tokens are encrypted before they are stored`;
    const hint = 'pass seal: keyRing({ … }) or envelope({ … }), or seal: "none" to store tokens in the clear';
    throw usageError(message, hint);
  }
  if (takeover !== undefined && takeover !== "fast" && takeover !== "patient" && typeof takeover !== "function")
    throw optionError("takeover", takeover, 'must be "fast", "patient" or a function');
  if (tenant !== undefined) checkTenant(tenant);
  if (holder !== undefined && typeof holder !== "string") throw optionError("holder", holder, "must be a text");
  if (near !== undefined && !(near.ttlMs > 0)) throw optionError("near.ttlMs", near.ttlMs, "must be more than 0");
}

function checkTenant(tenant: unknown): void {
  if (typeof tenant === "string" && tenant !== "") return;
  throw optionError("tenant", tenant, "must be a text of at least one character");
}

function optionError(option: string, value: unknown, rule: string): AgentAuthError {
  return usageError(`the option ${option} is ${quote(value)}; it ${rule}`);
}
