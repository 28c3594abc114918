import type { ManagementClient } from "../../../api/client.js";
import type { Listing } from "../../../api/listing.js";
import type { ListingSummary, Page } from "../../../api/page.js";
import { isUnusableItems } from "../../../api/pages.js";
import type { Device, Domain, Pool } from "../../../api/types.js";
import type { AgentAuthError } from "../../../errors.js";
import { shellWord } from "../../../redact.js";
import { BRIEF_ITEMS, type BriefNotice } from "../../listing/resume-command.js";
import { type ServiceSettings, serviceFlags } from "../../listing/scope.js";
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

/** Devices of each pool, as the text of a tree has them. */
const DEVICES_PER_POOL = 5;
const FIELDS = ["id", "title", "status"] as const;

type Item = Readonly<Partial<Record<(typeof FIELDS)[number], string | null>>>;

interface BriefPool {
  id: string;
  /** Null if the service does not say it. */
  device_count: number | null;
  devices: object[];
  devices_left_out?: true;
}

interface BriefDomain {
  pools: BriefPool[];
  pools_left_out?: true;
}

/** The printed part of the beginning of a tree, where a mark says which lists have more. */
interface BriefTree {
  domains: object[];
  domains_left_out?: true;
}

/** The beginning of a tree, with few fields: {@link BRIEF_ITEMS} domains, pools and devices in all. */
export async function readBriefTree(
  walk: Walk,
  account: string,
  given: ServiceSettings,
): Promise<{ tree: BriefTree; notice: BriefNotice }> {
  let left = BRIEF_ITEMS;
  let next: BriefNotice["next"] = null;
  const flags = serviceFlags(given);
  const continueWith = (noun: string, scope: string, offset: number) => {
    next ??= { offset, command: `agentauth ${noun} list ${scope}${flags} --offset ${offset}` };
  };
  /** The items that there is room for; the first list that has more is the one to continue with. */
  const take = <T>(items: readonly T[], noun: string, scope: string): { taken: T[]; hasMore: boolean } => {
    const taken = items.slice(0, left);
    left -= taken.length;
    const hasMore = taken.length < items.length;
    if (hasMore) continueWith(noun, scope, taken.length);
    return { taken, hasMore };
  };
  const domains: BriefDomain[] = [];
  // Domains before pools and pools before devices: an agent learns more from the upper levels.
  const found = take(await walk.domains(account, left + 1), "domains", `--account ${shellWord(account)}`);
  for (const domain of found.taken) {
    const { id } = domain;
    const { taken, hasMore } = take(await walk.pools(id, left + 1), "pools", `--domain ${shellWord(id)}`);
    const pools = taken.map(
      (pool): BriefPool => ({ ...shortenItem(pool), id: pool.id, device_count: null, devices: [] }),
    );
    domains.push({ ...shortenItem(domain), pools, ...(hasMore && { pools_left_out: true }) });
  }
  for (const pool of domains.flatMap(({ pools }) => pools)) {
    const { items, total } = await walk.devices(pool.id, Math.min(DEVICES_PER_POOL, left));
    left -= items.length;
    pool.device_count = total ?? null;
    pool.devices = items.map(shortenItem);
    if (total === undefined || total > items.length) {
      pool.devices_left_out = true;
      continueWith("devices", `--pool ${shellWord(pool.id)}`, items.length);
    }
  }
  const message = `the short form, as with --brief: up to ${DEVICES_PER_POOL} devices of a pool; -o json prints everything, --limit <n> prints whole items, n devices of each pool`;
  const tree = { domains, ...(found.hasMore && { domains_left_out: true as const }) };
  return { tree, notice: { shown: BRIEF_ITEMS - left, columns: FIELDS.join(","), next, message } };
}

function shortenItem(item: Item): object {
  return Object.fromEntries(FIELDS.map((name) => [name, item[name] ?? null]));
}
