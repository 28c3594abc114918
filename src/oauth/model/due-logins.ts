import type { Connection, ConnectionPage, ConnectionQuery } from "./connection.js";
import { IDP_ACCOUNT, isMachineAccount } from "./machine-grant.js";

/** A unit of time in `KeepAliveOptions`. */
export type TimeUnit = keyof typeof UNITS_MS;

const UNITS_MS = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** @throws `TypeError` for what is no time */
export function millisecondsOf(time: string): number {
  const [, digits = "", unit = ""] = /^(\d+(?:\.\d+)?)([smhd])$/.exec(time) ?? [];
  const ms = Number(digits) * (UNITS_MS[unit as TimeUnit] ?? 0);
  if (ms >= 10_000 && ms <= 90 * UNITS_MS.d) return ms;
  throw new TypeError("every must be a time such as 24h, 90m or 7d, from 10s to 90d");
}

/** A login as keepAlive sees it. Times are Unix milliseconds. */
export interface DueLogin extends Pick<Connection, "profile" | "server" | "account" | "issuer"> {
  /** When its tokens were issued. */
  readonly obtainedAt: number;
  /** When it is due. A new login is due at once. */
  readonly dueAt: number;
  /** How often its refresh has failed since it was due. */
  readonly failures: number;
}

/** The logins that are due until a time. */
export interface DuePage {
  /** The first of them, in order. */
  items: readonly DueLogin[];
  /** How many there are. */
  total: number;
}

/** The logins of a store by the times when they are due. */
export interface DueLogins {
  /** Those that are due until then. @param countTo how far they are counted at least; default: all are */
  next(until: number, limit: number, countTo?: number): Promise<DuePage>;
  /** Sets when a login is due. @returns false, and changes nothing, if another worker was faster or it has been refreshed */
  plan(login: DueLogin, dueAt: number, failures: number): Promise<boolean>;
  /** Those that have failed. */
  failing(): AsyncIterable<readonly DueLogin[]>;
}

/** Whether a login has a refresh token that is still good. */
export function canBeKept({ account, refreshable }: Pick<Connection, "account" | "refreshable">): boolean {
  return refreshable && (!isMachineAccount(account ?? undefined) || account === IDP_ACCOUNT);
}

/** The logins of a store of one machine: all are read, and this process remembers what is planned. */
export function dueByReading(store: {
  connections(query?: ConnectionQuery): AsyncIterable<ConnectionPage>;
}): DueLogins {
  const plans = new Map<string, DueLogin>();
  const nameOf = ({ profile, server, account }: Pick<Connection, "profile" | "server" | "account">) =>
    JSON.stringify([profile, server, account]);
  const read = async (): Promise<DueLogin[]> => {
    const logins: DueLogin[] = [];
    for await (const { items } of store.connections({ limit: 1000 }))
      for (const login of items.filter(canBeKept)) {
        const obtainedAt = Date.parse(login.issued_at);
        const plan = plans.get(nameOf(login));
        const { dueAt = obtainedAt } = plan ?? {};
        logins.push({ ...login, obtainedAt, dueAt, failures: plan?.obtainedAt === obtainedAt ? plan.failures : 0 });
      }
    return logins.sort((one, other) => one.dueAt - other.dueAt);
  };
  return {
    next: async (until) => {
      const items = (await read()).filter(({ dueAt }) => dueAt <= until);
      return { items, total: items.length };
    },
    plan: async (login, dueAt, failures) => plans.set(nameOf(login), { ...login, dueAt, failures }).size > 0,
    async *failing() {
      yield (await read()).filter(({ failures }) => failures > 0);
    },
  };
}
