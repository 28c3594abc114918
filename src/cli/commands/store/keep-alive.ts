import { type AgentAuthError, usageError } from "../../../errors.js";
import {
  type KeepAliveOptions,
  type KeepAliveProgress,
  type KeepAliveReport,
  type KeepAliveResult,
  keepAlive,
  type OverdueLogins,
} from "../../../oauth/keep-alive.js";
import type { Connection } from "../../../oauth/model/connection.js";
import type { GrantStore } from "../../../oauth/model/grant-store.js";
import { readConfig } from "../../../profile/settings-file.js";
import { quote } from "../../../redact.js";
import { warnOfUnusable } from "../../clients/login-first.js";
import type { OutputFlags } from "../../flags/global.js";
import { rowColumns } from "../../output/columns.js";
import { printPages, printResult } from "../../output/writer.js";
import type { CommandContext, ContextFlags } from "../../runtime/context.js";
import { EXIT_CODES } from "../../runtime/exit-codes.js";

export interface LoginsFlags extends OutputFlags {
  profile?: string;
  tenant?: string;
  needsLogin?: boolean;
  limit?: number;
}

/** A stored login, as `store logins -o json` prints it. */
export interface PrintedConnection extends Connection {}

const LOGINS = rowColumns(
  [
    { path: "profile", header: "PROFILE", kind: "name" },
    { path: "server", header: "SERVER", kind: "name" },
    { path: "state", header: "STATE" },
    { path: "expires_at", header: "EXPIRES", kind: "time" },
    { path: "last_used_at", header: "LAST USED", kind: "time" },
    { path: "account", header: "ACCOUNT", kind: "name" },
  ],
  [
    { path: "issued_at", header: "ISSUED", kind: "time" },
    { path: "logged_in_at", header: "LOGGED IN", kind: "time" },
    { path: "refreshable", header: "REFRESHABLE", kind: "bool" },
    { path: "scope", header: "SCOPE" },
    { path: "issuer", header: "ISSUER" },
    { path: "reason", header: "REASON" },
  ],
);
const PAGE = 100;

/** `store logins`: a page at a time, so that a store of any size is listed in the same memory. */
export async function runLogins(options: LoginsFlags, run: CommandContext): Promise<number | undefined> {
  const { profile, ...others } = options;
  // The profiles of a platform are its users, and most of them have no settings.
  const hasSettings = profile === undefined || Object.hasOwn(readConfig(run.home()).profiles, profile);
  const context = hasSettings ? run : run.with({ flags: others });
  const { tenant, needsLogin, limit = Number.POSITIVE_INFINITY } = options;
  const state = needsLogin ? ("needs_login" as const) : undefined;
  const unusable: AgentAuthError[] = [];
  const onUnusable = (error: AgentAuthError) => void unusable.push(error);
  const store = await context.store();
  checkTenant(store, tenant);
  const query = { profile, tenant, state, limit: Math.min(PAGE, limit), onUnusable };
  async function* pages(): AsyncGenerator<PrintedConnection[]> {
    let left = limit;
    for await (const { items } of store.connections(query)) {
      yield items.slice(0, left);
      left -= items.length;
      if (left <= 0) return;
    }
  }
  await printPages(pages(), LOGINS, options, context);
  warnOfUnusable(unusable, context);
  return unusable.length > 0 ? EXIT_CODES.store : undefined;
}

/** @throws `AgentAuthError` `usage` for a tenant where the store has none */
export function checkTenant(
  { location, for: ofTenant }: GrantStore,
  tenant: string | readonly string[] | undefined,
): void {
  if (tenant !== undefined && ofTenant === undefined)
    throw usageError(`the store in ${quote(location)} has no tenants`, "leave out --tenant");
}

/** The issuers that a line names. */
const MOST_ISSUERS = 3;

export interface KeepAliveFlags
  extends ContextFlags,
    OutputFlags,
    Partial<Pick<KeepAliveOptions, "every" | "concurrency" | "once">> {
  /** The tenants; empty for that of the settings. */
  tenant?: string[];
}

/** What `store keep-alive -o json` prints at its end. */
export interface KeepAliveRow extends KeepAliveReport {}

/** `store keep-alive`: until a signal, or once; exit code 7 if a single run left logins overdue. */
export async function runKeepAlive(
  { tenant, ...options }: KeepAliveFlags,
  context: CommandContext,
): Promise<number | undefined> {
  const { io, signals } = context;
  const store = await context.store();
  checkTenant(store, tenant);
  const { location } = store;
  if (location === "memory") throw usageError("the store is memory: it has nothing beyond this command");
  const agent = await context.agent({ login: "never" });
  const end = new AbortController();
  let exitCode: number = EXIT_CODES.ok;
  const stop = (code: number) => () => {
    if (!end.signal.aborted) exitCode = code;
    end.abort();
  };
  // A service that is stopped has done its work.
  const own = context.acquireProcess();
  const removals = [
    signals.on("SIGTERM", stop(EXIT_CODES.ok)),
    signals.on("SIGINT", stop(EXIT_CODES.aborted)),
    signals.on("SIGHUP", stop(EXIT_CODES.hungUp)),
  ];
  const { every = "24h", concurrency, once } = options;
  try {
    if (!once) io.say(`keeping the logins in ${location} alive: each is refreshed once in ${every}`);
    const report: KeepAliveRow = await keepAlive(agent, {
      ...{ every, concurrency, once, signal: end.signal },
      ...(tenant && { tenants: () => tenant }),
      onResult: resultLogger(context),
      onProgress: (progress) => {
        if (once) io.say(progressText(progress));
        else if (progress.overdue.count > 0) io.warn(overdueText(progress.overdue));
      },
      onStoreFailure: ({ message }) => io.warn(`${message}; the logins are read again later`),
    });
    await printResult(report, options, context);
    const { overdue } = report;
    if (!once || overdue.count === 0 || exitCode !== EXIT_CODES.ok) return exitCode;
    io.warn(overdueText(overdue));
    return EXIT_CODES.partial;
  } finally {
    for (const remove of removals) remove();
    own.release();
  }
}

function overdueText({ count, oldest, by_issuer }: OverdueLogins): string {
  const issuers = Object.entries(by_issuer).sort(([, one], [, other]) => other - one);
  const named = issuers.slice(0, MOST_ISSUERS).map(([issuer, logins]) => `${logins} at ${quote(issuer)}`);
  if (issuers.length > MOST_ISSUERS) named.push(`others at ${issuers.length - MOST_ISSUERS} more issuers`);
  const what = count === 1 ? "1 login is overdue" : `${count} logins are overdue`;
  return `${what} (oldest token: ${oldest}): ${named.join(", ")}`;
}

function progressText({ refreshed, overdue, due, seconds_left: seconds }: KeepAliveProgress): string {
  const left = seconds === null ? "" : `, about ${Math.ceil(seconds / 60)} min left`;
  return `refreshed ${refreshed}, overdue ${overdue.count}, still due ${due}${left}`;
}

/** One warning for each login that has ended, and for each issuer that begins to fail. */
function resultLogger({ io }: CommandContext): (result: KeepAliveResult) => void {
  const failing = new Set<string>();
  return ({ profile, server, issuer, outcome, error }) => {
    const what = `the login at ${quote(server)} (profile ${quote(profile)})`;
    if (outcome === "refreshed") {
      failing.delete(issuer);
      io.verbose(`refreshed ${what}`);
      return;
    }
    const text = `${what} was not refreshed: ${error?.message ?? outcome}`;
    if (outcome === "needs_login" || !failing.has(issuer)) io.warn(text);
    else io.verbose(text);
    if (outcome === "overdue") failing.add(issuer);
  };
}
