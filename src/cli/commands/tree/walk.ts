import type { ManagementClient } from "../../../api/client.js";
import type { Listing } from "../../../api/listing.js";
import type { ListingSummary, Page } from "../../../api/page.js";
import { isUnusableItems } from "../../../api/pages.js";
import type { Device, Domain, Pool } from "../../../api/types.js";
import type { AgentAuthError } from "../../../errors.js";
import type { CommandContext } from "../../runtime/context.js";

/** A list of a tree. */
interface ListOfTree {
  noun: "domains" | "pools" | "devices";
  scope: "account" | "domain" | "pool";
  id: string;
}

/** A list of a tree that has items without an id, and the error that it ended with after all others. */
export interface UnusableList extends ListOfTree {
  error: AgentAuthError;
}

/** Reads the domains, pools and devices of an account. Items without an id are left out, and the lists of them named. */
export class Walk {
  /** The lists that have items without an id. */
  readonly unusable: UnusableList[] = [];
  readonly #service: ManagementClient;
  readonly #options: { signal: AbortSignal; concurrency: number | undefined };

  constructor(service: ManagementClient, context: CommandContext, concurrency: number | undefined) {
    this.#service = service;
    this.#options = { signal: context.signal, concurrency };
  }

  /** The domains of an account. */
  domains(account_id: string, limit?: number): Promise<Domain[]> {
    const listing = this.#service.domains.list({ account_id }, { ...this.#options, limit });
    return this.#read(listing, { noun: "domains", scope: "account", id: account_id });
  }

  /** The pools of a domain. */
  pools(domain_id: string, limit?: number): Promise<Pool[]> {
    const listing = this.#service.pools.list({ domain_id }, { ...this.#options, limit });
    return this.#read(listing, { noun: "pools", scope: "domain", id: domain_id });
  }

  /** The first devices of a pool, and how many there are: undefined if the service does not say it. */
  async devices(pool_id: string, limit: number | undefined): Promise<{ items: Device[]; total: number | undefined }> {
    let summary: ListingSummary | undefined;
    let total: number | undefined;
    const listing = this.#service.devices.list(
      { pool_id },
      {
        ...this.#options,
        limit: limit === 0 ? 1 : limit,
        onEnd: (end) => {
          summary = end;
        },
      },
    );
    const items = await this.#read(listing, { noun: "devices", scope: "pool", id: pool_id }, ({ pagination }) => {
      total = pagination.item_count ?? total;
    });
    if (summary?.next === undefined && summary !== undefined) total ??= items.length;
    return { items: limit === 0 ? [] : items, total };
  }

  /** All of an account. */
  async whole(account: string, limit: number | undefined): Promise<object[]> {
    const domains = [];
    for (const domain of await this.domains(account)) {
      const pools = [];
      for (const pool of await this.pools(domain.id)) {
        const { items, total } = await this.devices(pool.id, limit);
        pools.push({ ...pool, device_count: total ?? null, devices: items });
      }
      domains.push({ ...domain, pools });
    }
    return domains;
  }

  async #read<T extends object>(
    listing: Listing<T>,
    list: ListOfTree,
    onPage: (page: Page<T>) => void = () => {},
  ): Promise<T[]> {
    const items: T[] = [];
    try {
      for await (const page of listing.pages()) {
        onPage(page);
        for (const item of page.items) items.push(item);
      }
    } catch (thrown) {
      if (!isUnusableItems(thrown)) throw thrown;
      this.unusable.push({ ...list, error: thrown });
    }
    return items;
  }
}
