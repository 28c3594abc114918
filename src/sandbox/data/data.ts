import { type DeviceDraft, PoolDevices } from "./pool-devices.js";
import type { SandboxDevice, SandboxDomain, SandboxPool } from "./sample-device.js";
import { deviceIdPrefix, mix, objectId } from "./sample-device.js";

// As many in Latin script as there are by default, which every reader can show; others follow.
const DOMAIN_TITLES = [
  ...["agents.example.com", "Example GmbH – München", "Société Exemple"],
  ...["例子有限公司", "Пример", "مثال للتجارة"],
];
const POOL_TITLES = ["Production agents", "Staging", "Équipe données", "Field devices 📡", "客户支持", "Партнёры"];
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
  /** The first account, domain and pool. */
  readonly first: { account: string; domain: string; pool: string };
  readonly #accounts: Account[];
  readonly #domains = new Map<string, SandboxDomain[]>();
  readonly #pools = new Map<string, SandboxPool[]>();
  /** The devices of each pool; a function generates those of a pool that was not read yet. */
  readonly #devices = new Map<string, PoolDevices | (() => PoolDevices)>();

  /** @param anchor the moment before which all interactions lie, Unix seconds */
  constructor(seed: number, size: DataSize, anchor: number) {
    this.first = {
      account: objectId(seed, "account", 0),
      domain: objectId(seed, "domain", 0),
      pool: objectId(seed, "pool", 0),
    };
    this.#accounts = childNumbers(0, size.accounts).map((n) => ({
      id: objectId(seed, "account", n),
      title: `Account ${n + 1}`,
    }));
    for (const [account, { id: account_id }] of this.#accounts.entries()) {
      const domains = childNumbers(account, size.domains);
      this.#domains.set(
        account_id,
        domains.map((n) => ({ account_id, ...makeSummary(seed, "domain", n, DOMAIN_TITLES) })),
      );
      for (const domain of domains) {
        const domain_id = objectId(seed, "domain", domain);
        const authentication_ruleset_nid = objectId(seed, "ruleset", domain);
        const pools = childNumbers(domain, size.pools);
        this.#pools.set(
          domain_id,
          pools.map((n) => ({
            account_id,
            authentication_ruleset_nid,
            domain_id,
            ...makeSummary(seed, "pool", n, POOL_TITLES),
          })),
        );
        for (const n of pools) {
          const pool_id = objectId(seed, "pool", n);
          const idPrefix = deviceIdPrefix(seed, n);
          const context = { seed: mix(mix(seed, 1), n), anchor, idPrefix, account_id, domain_id, pool_id };
          this.#devices.set(pool_id, () => new PoolDevices(context, size.devices));
        }
      }
    }
  }

  /** Every account, in the order of creation. */
  accounts(): Account[] {
    return structuredClone(this.#accounts);
  }

  /** The domains of an account, in the order of creation; `undefined` where there is no such account. */
  findDomains(accountId: string): SandboxDomain[] | undefined {
    return this.#domains.get(accountId)?.map((domain) => ({ ...domain }));
  }

  /** The pools of a domain, in the order of creation; `undefined` where there is no such domain. */
  findPools(domainId: string): SandboxPool[] | undefined {
    return this.#pools.get(domainId)?.map((pool) => ({ ...pool }));
  }

  /** Whether there is a pool. */
  hasPool(poolId: string): boolean {
    return this.#devices.has(poolId);
  }

  /** The devices of a pool, generated on first use; `undefined` where there is no such pool. */
  findDevices(poolId: string): PoolDevices | undefined {
    const found = this.#devices.get(poolId);
    if (typeof found !== "function") return found;
    const devices = found();
    this.#devices.set(poolId, devices);
    return devices;
  }

  /** Like {@link findDomains}. @throws TypeError where there is no such account */
  domains(accountId: string): SandboxDomain[] {
    return this.findDomains(accountId) ?? throwMissing("account", accountId);
  }

  /** Like {@link findPools}. @throws TypeError where there is no such domain */
  pools(domainId: string): SandboxPool[] {
    return this.findPools(domainId) ?? throwMissing("domain", domainId);
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
  device(poolId: string, index: number): SandboxDevice | undefined {
    return this.#pool(poolId).at({ field: "id", direction: "asc" }, index);
  }

  /**
   * Adds a device to a pool; the sandbox fills in what the draft leaves out.
   *
   * @throws TypeError where there is no such pool, or the id is taken
   */
  insertDevice(poolId: string, draft?: DeviceDraft): SandboxDevice {
    return this.#pool(poolId).insert(draft);
  }

  /** The device of an id; `undefined` where the pool has none. @throws TypeError where there is no such pool */
  findDevice(poolId: string, id: string): SandboxDevice | undefined {
    return this.#pool(poolId).find(id);
  }

  /**
   * Changes a device, for instance its status to `revoked`: then it cannot refresh its tokens any more.
   *
   * @returns the device as it is then; `undefined` where the pool has none of this id
   * @throws TypeError where there is no such pool
   */
  updateDevice(poolId: string, id: string, changes: Omit<DeviceDraft, "id">): SandboxDevice | undefined {
    return this.#pool(poolId).update(id, changes);
  }

  /** Removes a device; whether it was there. @throws TypeError where there is no such pool */
  deleteDevice(poolId: string, id: string): boolean {
    return this.#pool(poolId).delete(id);
  }

  #pool(poolId: string): PoolDevices {
    return this.findDevices(poolId) ?? throwMissing("pool", poolId);
  }
}

/** The fields that domains and pools share. The first of each kind is active, so that there is always one to try. */
function makeSummary<K extends "domain" | "pool">(seed: number, type: K, n: number, titles: readonly string[]) {
  const round = Math.floor(n / titles.length);
  const title = (titles[n % titles.length] ?? "") + (round === 0 ? "" : ` ${round + 1}`);
  const status = n === 0 ? "active" : (STATUSES[mix(seed, n) % STATUSES.length] ?? "");
  return { id: objectId(seed, type, n), status, title, type };
}

function childNumbers(parent: number, count: number): number[] {
  return Array.from({ length: count }, (_, index) => parent * count + index);
}

function throwMissing(kind: string, id: string): never {
  throw new TypeError(`the sandbox has no ${kind} ${id}`);
}
