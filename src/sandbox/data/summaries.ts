import type { Domain, Pool } from "../types.js";
import { idOf } from "./ids.js";
import { fraction, mix } from "./random.js";
import { DOMAIN_TITLES, POOL_TITLES } from "./titles.js";

/** An account: the service documents no more of it than its id. */
export interface Account {
  /** Its identifier. */
  id: string;
  /** What people call it. */
  title: string;
}

/** The n-th account. */
export function accountAt(seed: number, ordinal: number): Account {
  return { id: idOf(seed, "account", ordinal), title: `Account ${ordinal + 1}` };
}

/** The n-th domain of all. */
export function domainAt(seed: number, ordinal: number, account: number): Domain {
  return {
    account_id: idOf(seed, "account", account),
    id: idOf(seed, "domain", ordinal),
    status: statusOf(mix(seed, 11), ordinal),
    title: titleOf(DOMAIN_TITLES, mix(seed, 12), ordinal),
    type: "domain",
  };
}

/** The n-th pool of all. */
export function poolAt(seed: number, ordinal: number, domain: number, account: number): Pool {
  return {
    account_id: idOf(seed, "account", account),
    authentication_ruleset_nid: idOf(seed, "ruleset", domain),
    domain_id: idOf(seed, "domain", domain),
    id: idOf(seed, "pool", ordinal),
    status: statusOf(mix(seed, 13), ordinal),
    title: titleOf(POOL_TITLES, mix(seed, 14), ordinal),
    type: "pool",
  };
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
