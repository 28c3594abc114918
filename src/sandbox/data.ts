import { DeviceIds, idOf, ordinalOf } from "./data/ids.js";
import { type DeviceDraft, PoolDevices } from "./data/pool-devices.js";
import { mix } from "./data/random.js";
import { type Account, accountAt, domainAt, poolAt } from "./data/summaries.js";
import { OrderCache } from "./order.js";
import type { Device, Domain, Pool } from "./types.js";

/** How much there is of each kind. */
export interface DataSize {
  accounts: number;
  /** Per account. */
  domains: number;
  /** Per domain. */
  pools: number;
  /** Per pool. */
  devices: number;
}

/**
 * The sandbox's accounts, domains, pools and devices. Everything is a pure function of the seed and its place, so that
 * a million devices cost no memory; only what was inserted or deleted is held.
 */
export class SandboxData {
  readonly #seed: number;
  readonly #size: DataSize;
  readonly #anchor: number;
  readonly #orders = new OrderCache();
  readonly #devices = new Map<string, PoolDevices>();

  /** @param anchor the moment before which all interactions lie, Unix seconds */
  constructor(seed: number, size: DataSize, anchor: number) {
    this.#seed = seed;
    this.#size = size;
    this.#anchor = anchor;
  }

  /** Every account, in the order they were made. */
  accounts(): Account[] {
    return Array.from({ length: this.#size.accounts }, (_, ordinal) => accountAt(this.#seed, ordinal));
  }

  /** The first account, domain and pool. */
  get first(): { account: string; domain: string; pool: string } {
    const seed = this.#seed;
    return { account: idOf(seed, "account", 0), domain: idOf(seed, "domain", 0), pool: idOf(seed, "pool", 0) };
  }

  /** The domains of an account, in the order they were made; `undefined` where there is no such account. */
  findDomains(accountId: string): Domain[] | undefined {
    const account = this.#ordinal("account", accountId);
    if (account === undefined) return undefined;
    const start = account * this.#size.domains;
    return Array.from({ length: this.#size.domains }, (_, i) => domainAt(this.#seed, start + i, account));
  }

  /** The pools of a domain, in the order they were made; `undefined` where there is no such domain. */
  findPools(domainId: string): Pool[] | undefined {
    const domain = this.#ordinal("domain", domainId);
    if (domain === undefined) return undefined;
    const start = domain * this.#size.pools;
    return Array.from({ length: this.#size.pools }, (_, i) => {
      return poolAt(this.#seed, start + i, domain, Math.floor(domain / this.#size.domains));
    });
  }

  /** The devices of a pool; `undefined` where there is no such pool. */
  findDevices(poolId: string): PoolDevices | undefined {
    const pool = this.#ordinal("pool", poolId);
    if (pool === undefined) return undefined;
    const known = this.#devices.get(poolId);
    if (known) return known;
    const made = this.#makeDevices(poolId, pool);
    this.#devices.set(poolId, made);
    return made;
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
   * Adds a device to a pool; what the draft leaves out is made up.
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

  #makeDevices(poolId: string, pool: number): PoolDevices {
    const domain = Math.floor(pool / this.#size.pools);
    const ids = new DeviceIds(this.#seed, pool);
    const context = {
      seed: mix(mix(this.#seed, 1), pool),
      anchor: this.#anchor,
      account_id: idOf(this.#seed, "account", Math.floor(domain / this.#size.domains)),
      domain_id: idOf(this.#seed, "domain", domain),
      pool_id: poolId,
      id: (index: number) => ids.fromKey(ids.key(index)),
    };
    return new PoolDevices(context, ids, this.#size.devices, this.#orders);
  }

  #ordinal(kind: "account" | "domain" | "pool", id: string): number | undefined {
    const { accounts, domains, pools } = this.#size;
    const count = { account: accounts, domain: accounts * domains, pool: accounts * domains * pools }[kind];
    const ordinal = ordinalOf(this.#seed, kind, id);
    return ordinal !== undefined && ordinal < count ? ordinal : undefined;
  }
}

function missing(kind: string, id: string): never {
  throw new TypeError(`the sandbox has no ${kind} ${id}`);
}
