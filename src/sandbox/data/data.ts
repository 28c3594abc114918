import type { Device, Domain, Pool } from "../wire-types.js";
import { Ids } from "./ids.js";
import { type DeviceDraft, PoolDevices } from "./pool-devices.js";
import { fraction, mix } from "./random.js";
import { DOMAIN_TITLES, POOL_TITLES } from "./titles.js";

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

/** An account: the service documents no more of it than its id. */
export interface Account {
  /** Its identifier. */
  id: string;
  /** What people call it. */
  title: string;
}

/**
 * The sandbox's accounts, domains, pools and devices: plain objects that are pure functions of the seed and their
 * place, made when they are needed.
 */
export class SandboxData {
  readonly #seed: number;
  readonly #size: DataSize;
  readonly #anchor: number;
  readonly #ids: { account: Ids; domain: Ids; pool: Ids; ruleset: Ids };
  readonly #devices = new Map<string, PoolDevices>();

  /** @param anchor the moment before which all interactions lie, Unix seconds */
  constructor(seed: number, size: DataSize, anchor: number) {
    this.#seed = seed;
    this.#size = size;
    this.#anchor = anchor;
    const idsOf = (kind: "account" | "domain" | "pool" | "ruleset") => new Ids(seed, kind);
    this.#ids = { account: idsOf("account"), domain: idsOf("domain"), pool: idsOf("pool"), ruleset: idsOf("ruleset") };
  }

  /** Every account, in the order of creation. */
  accounts(): Account[] {
    return range(0, this.#size.accounts).map((n) => ({ id: this.#ids.account.of(n), title: `Account ${n + 1}` }));
  }

  /** The first account, domain and pool. */
  get first(): { account: string; domain: string; pool: string } {
    return { account: this.#ids.account.of(0), domain: this.#ids.domain.of(0), pool: this.#ids.pool.of(0) };
  }

  /** The domains of an account, in the order of creation; `undefined` where there is no such account. */
  findDomains(accountId: string): Domain[] | undefined {
    const account = this.#ordinal("account", accountId);
    if (account === undefined) return undefined;
    return range(account * this.#size.domains, this.#size.domains).map((n) => ({
      account_id: accountId,
      id: this.#ids.domain.of(n),
      status: statusOf(mix(this.#seed, 11), n),
      title: titleOf(DOMAIN_TITLES, mix(this.#seed, 12), n),
      type: "domain",
    }));
  }

  /** The pools of a domain, in the order of creation; `undefined` where there is no such domain. */
  findPools(domainId: string): Pool[] | undefined {
    const domain = this.#ordinal("domain", domainId);
    if (domain === undefined) return undefined;
    return range(domain * this.#size.pools, this.#size.pools).map((n) => ({
      account_id: this.#ids.account.of(Math.floor(domain / this.#size.domains)),
      authentication_ruleset_nid: this.#ids.ruleset.of(domain),
      domain_id: domainId,
      id: this.#ids.pool.of(n),
      status: statusOf(mix(this.#seed, 13), n),
      title: titleOf(POOL_TITLES, mix(this.#seed, 14), n),
      type: "pool",
    }));
  }

  /** The devices of a pool; `undefined` where there is no such pool. */
  findDevices(poolId: string): PoolDevices | undefined {
    const pool = this.#ordinal("pool", poolId);
    if (pool === undefined) return undefined;
    const devices = this.#devices.get(poolId) ?? this.#makeDevices(poolId, pool);
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

  #makeDevices(poolId: string, pool: number): PoolDevices {
    const domain = Math.floor(pool / this.#size.pools);
    const context = {
      seed: mix(mix(this.#seed, 1), pool),
      anchor: this.#anchor,
      account_id: this.#ids.account.of(Math.floor(domain / this.#size.domains)),
      domain_id: this.#ids.domain.of(domain),
      pool_id: poolId,
    };
    return new PoolDevices(context, new Ids(this.#seed, "device", pool), this.#size.devices);
  }

  #ordinal(kind: "account" | "domain" | "pool", id: string): number | undefined {
    const { accounts, domains, pools } = this.#size;
    const count = { account: accounts, domain: accounts * domains, pool: accounts * domains * pools }[kind];
    const ordinal = this.#ids[kind].ordinal(id);
    return ordinal !== undefined && ordinal < count ? ordinal : undefined;
  }
}

function range(start: number, length: number): number[] {
  return Array.from({ length }, (_, index) => start + index);
}

/** The first of each kind is active, so that there is always something to try. */
function statusOf(key: number, ordinal: number): string {
  const draw = fraction(key, ordinal);
  return ordinal === 0 || draw < 0.8 ? "active" : draw < 0.92 ? "paused" : "archived";
}

function titleOf(titles: readonly string[], key: number, ordinal: number): string {
  const title = titles[(ordinal + key) % titles.length] ?? "";
  const round = Math.floor(ordinal / titles.length);
  return round === 0 ? title : `${title} ${round + 1}`;
}

function missing(kind: string, id: string): never {
  throw new TypeError(`the sandbox has no ${kind} ${id}`);
}
