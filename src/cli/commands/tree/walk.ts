import type { ManagementClient } from "../../../api/client.js";
import type { ListingSummary } from "../../../api/page.js";
import type { Device, Domain, Pool } from "../../../api/types.js";
import { AgentAuthError } from "../../../errors.js";
import { quote } from "../../../redact.js";
import type { CommandContext } from "../../runtime/context.js";

/** Reads the domains, pools and devices of an account. */
export class Walk {
  readonly #service: ManagementClient;
  readonly #options: { signal: AbortSignal; concurrency: number | undefined };

  constructor(service: ManagementClient, context: CommandContext, concurrency: number | undefined) {
    this.#service = service;
    this.#options = { signal: context.signal, concurrency };
  }

  /** The domains of an account. */
  domains(account_id: string, maxItems?: number): Promise<Domain[]> {
    return this.#service.domains.list({ account_id }, { ...this.#options, maxItems }).toArray();
  }

  /** The pools of a domain. */
  pools(domain_id: string, maxItems?: number): Promise<Pool[]> {
    return this.#service.pools.list({ domain_id }, { ...this.#options, maxItems }).toArray();
  }

  /** The first devices of a pool, and how many there are: undefined if the service does not say it. */
  async devices(pool_id: string, limit: number | undefined): Promise<{ items: Device[]; total: number | undefined }> {
    let summary: ListingSummary | undefined;
    const items = await this.#service.devices
      .list(
        { pool_id },
        {
          ...this.#options,
          maxItems: limit === 0 ? 1 : limit,
          onEnd: (end) => {
            summary = end;
          },
        },
      )
      .toArray();
    const total = summary?.expected ?? (summary?.next === undefined ? items.length : undefined);
    return { items: limit === 0 ? [] : items, total };
  }

  /** All of an account. */
  async whole(account: string, limit: number | undefined): Promise<object[]> {
    const domains = [];
    for (const domain of await this.domains(account)) {
      const pools = [];
      for (const pool of await this.pools(idOf(domain))) {
        const { items, total } = await this.devices(idOf(pool), limit);
        pools.push({ ...pool, device_count: total ?? null, devices: items });
      }
      domains.push({ ...domain, pools });
    }
    return domains;
  }
}

/** @throws `AgentAuthError` `bad_envelope` for an item without an id */
export function idOf(item: { id?: string | null; title?: string | null }): string {
  if (typeof item.id === "string" && item.id !== "") return item.id;
  throw new AgentAuthError("bad_envelope", `the service listed ${quote(item.title ?? "an item")} without an id`, {
    class: "refused",
  });
}
