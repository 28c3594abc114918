import type { Device, Domain, Pool } from "../wire-types.js";
import { deviceIdPrefix, idOf } from "./ids.js";
import { type DeviceDraft, PoolDevices } from "./pool-devices.js";
import { mix } from "./random.js";

const DOMAIN_TITLES = ["agents.example.com", "Example GmbH – München", "例子有限公司", "Пример", "مثال للتجارة"];
const POOL_TITLES = ["Production agents", "Staging", "客户支持", "Équipe données", "Партнёры", "Field devices 📡"];
const STATUSES = ["active", "active", "active", "active", "paused", "archived"];

/** How many objects of each kind there are. */
export interface DataSize {
  accounts: number;
  /** Per account. */
  domains: number;
  /** Per domain. */
  pools: number;
  /** Per pool. */
  devices: number;
}

/** An account: the service documents its id only. */
export interface Account {
  /** Its identifier. */
  id: string;
  /** Its display name. */
  title: string;
}

/** The sandbox's accounts, domains, pools and devices: plain objects that depend on the seed alone. */
export class SandboxData {
  readonly #seed: number;
  readonly #anchor: number;
  readonly #devicesPerPool: number;
  readonly #accounts: Account[];
  readonly #domainsByAccount = new Map<string, Domain[]>();
  readonly #poolsByDomain = new Map<string, Pool[]>();
  readonly #poolsById = new Map<string, { pool: Pool; n: number }>();
  /** The devices of the pools that were read. */
  readonly #devices = new Map<string, PoolDevices>();

  /** @param anchor the moment before which all interactions lie, Unix seconds */
  constructor(seed: number, size: DataSize, anchor: number) {
    this.#seed = seed;
    this.#anchor = anchor;
    this.#devicesPerPool = size.devices;
    this.#accounts = range(0, size.accounts).map((n) => ({ id: idOf(seed, "account", n), title: `Account ${n + 1}` }));
    for (const [account, { id: account_id }] of this.#accounts.entries()) {
      const domains = range(account * size.domains, size.domains);
      this.#domainsByAccount.set(
        account_id,
        domains.map((n) => ({ account_id, ...summary(seed, "domain", n, DOMAIN_TITLES) })),
      );
      for (const domain of domains) this.#addPools(account_id, domain, size.pools);
    }
  }

  /** Every account, in the order of creation. */
  accounts(): Account[] {
    return this.#accounts.map((account) => ({ ...account }));
  }

  /** The first account, domain and pool. */
  get first(): { account: string; domain: string; pool: string } {
    const idOfFirst = (kind: "account" | "domain" | "pool") => idOf(this.#seed, kind, 0);
    return { account: idOfFirst("account"), domain: idOfFirst("domain"), pool: idOfFirst("pool") };
  }

  /** The domains of an account, in the order of creation; `undefined` where there is no such account. */
  findDomains(accountId: string): Domain[] | undefined {
    return this.#domainsByAccount.get(accountId)?.map((domain) => ({ ...domain }));
  }

  /** The pools of a domain, in the order of creation; `undefined` where there is no such domain. */
  findPools(domainId: string): Pool[] | undefined {
    return this.#poolsByDomain.get(domainId)?.map((pool) => ({ ...pool }));
  }

  /** Whether there is a pool. */
  hasPool(poolId: string): boolean {
    return this.#poolsById.has(poolId);
  }

  /** The devices of a pool, generated on first use; `undefined` where there is no such pool. */
  findDevices(poolId: string): PoolDevices | undefined {
    const { pool, n } = this.#poolsById.get(poolId) ?? {};
    if (!pool || n === undefined) return undefined;
    const { account_id, domain_id } = pool;
    const context = { seed: mix(mix(this.#seed, 1), n), anchor: this.#anchor, account_id, domain_id, pool_id: poolId };
    const devices =
      this.#devices.get(poolId) ?? new PoolDevices(context, deviceIdPrefix(this.#seed, n), this.#devicesPerPool);
    this.#devices.set(poolId, devices);
    return devices;
  }

  /** Like {@link findDomains}. @throws TypeError where there is no such account */
  domains(accountId: string): Domain[] {
    return this.findDomains(accountId) ?? missing("account", accountId);
  }

  /** Like {@link findPools}. @throws TypeError where there is no such domain */
  pools(domainId: string): Pool[] {
    return this.findPools(domainId) ?? missing("domain", domainId);
  }

  /** How many devices a pool has now. @throws TypeError where there is no such pool */
  deviceCount(poolId: string): number {
    return this.#pool(poolId).count;
  }

  /**
   * The device at a position of the list sorted by id; `undefined` beyond its end.
   *
   * @throws TypeError where there is no such pool
   */
  device(poolId: string, index: number): Device | undefined {
    return this.#pool(poolId).at({ field: "id", direction: "asc" }, index);
  }

  /**
   * Adds a device to a pool; the sandbox fills in what the draft leaves out.
   *
   * @throws TypeError where there is no such pool, or the id is taken
   */
  insertDevice(poolId: string, draft?: DeviceDraft): Device {
    return this.#pool(poolId).insert(draft);
  }

  /** The device of an id; `undefined` where the pool has none. @throws TypeError where there is no such pool */
  findDevice(poolId: string, id: string): Device | undefined {
    return this.#pool(poolId).find(id);
  }

  /**
   * Changes a device, for instance its status to `revoked`: then it cannot refresh its tokens any more.
   *
   * @returns the device as it is then; `undefined` where the pool has none of this id
   * @throws TypeError where there is no such pool
   */
  updateDevice(poolId: string, id: string, changes: Omit<DeviceDraft, "id">): Device | undefined {
    return this.#pool(poolId).update(id, changes);
  }

  /** Removes a device; whether it was there. @throws TypeError where there is no such pool */
  deleteDevice(poolId: string, id: string): boolean {
    return this.#pool(poolId).delete(id);
  }

  #pool(poolId: string): PoolDevices {
    return this.findDevices(poolId) ?? missing("pool", poolId);
  }

  #addPools(account_id: string, domain: number, count: number): void {
    const domain_id = idOf(this.#seed, "domain", domain);
    const authentication_ruleset_nid = idOf(this.#seed, "ruleset", domain);
    const pools = range(domain * count, count).map((n) => {
      const parents = { account_id, authentication_ruleset_nid, domain_id };
      return { pool: { ...parents, ...summary(this.#seed, "pool", n, POOL_TITLES) }, n };
    });
    for (const entry of pools) this.#poolsById.set(entry.pool.id, entry);
    this.#poolsByDomain.set(
      domain_id,
      pools.map(({ pool }) => pool),
    );
  }
}

/** The fields that domains and pools share. The first of each kind is active, so that there is always one to try. */
function summary<K extends "domain" | "pool">(seed: number, type: K, n: number, titles: readonly string[]) {
  const id = idOf(seed, type, n);
  const round = Math.floor(n / titles.length);
  const title = (titles[n % titles.length] ?? "") + (round === 0 ? "" : ` ${round + 1}`);
  const status = n === 0 ? "active" : (STATUSES[mix(seed, n) % STATUSES.length] ?? "");
  return { id, status, title, type };
}

function range(start: number, length: number): number[] {
  return Array.from({ length }, (_, index) => start + index);
}

function missing(kind: string, id: string): never {
  throw new TypeError(`the sandbox has no ${kind} ${id}`);
}
