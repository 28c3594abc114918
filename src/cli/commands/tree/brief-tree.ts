import { shellWord } from "../../../redact.js";
import { BRIEF_ITEMS, type BriefNotice } from "../../listing/resume-command.js";
import { type ServiceSettings, serviceFlags } from "../../listing/scope.js";
import type { Walk } from "./walk.js";

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
    const pools = taken.map((pool): BriefPool => ({ ...short(pool), id: pool.id, device_count: null, devices: [] }));
    domains.push({ ...short(domain), pools, ...(hasMore && { pools_left_out: true }) });
  }
  for (const pool of domains.flatMap(({ pools }) => pools)) {
    const { items, total } = await walk.devices(pool.id, Math.min(DEVICES_PER_POOL, left));
    left -= items.length;
    pool.device_count = total ?? null;
    pool.devices = items.map(short);
    if (total === undefined || total > items.length) {
      pool.devices_left_out = true;
      continueWith("devices", `--pool ${shellWord(pool.id)}`, items.length);
    }
  }
  const message = `the short form, as with --brief: up to ${DEVICES_PER_POOL} devices of a pool; -o json prints everything, --limit <n> prints whole items, n devices of each pool`;
  const tree = { domains, ...(found.hasMore && { domains_left_out: true as const }) };
  return { tree, notice: { shown: BRIEF_ITEMS - left, columns: FIELDS.join(","), next, message } };
}

function short(item: Item): object {
  return Object.fromEntries(FIELDS.map((name) => [name, item[name] ?? null]));
}
