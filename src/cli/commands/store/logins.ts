import { type AgentAuthError, usageError } from "../../../errors.js";
import type { Connection } from "../../../oauth/model/connection.js";
import type { GrantStore } from "../../../oauth/model/grant-store.js";
import { readConfig } from "../../../profile/settings-file.js";
import { quote } from "../../../redact.js";
import { warnOfUnusable } from "../../clients/printed-login.js";
import type { OutputFlags } from "../../flags/output.js";
import { rowColumns } from "../../output/columns.js";
import { printPages } from "../../output/writer.js";
import type { CommandContext } from "../../runtime/context.js";
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
export async function runLogins(options: LoginsFlags, given: CommandContext): Promise<number | undefined> {
  const { profile, ...others } = options;
  // The profiles of a platform are its users, and most of them have no settings.
  const hasSettings = profile === undefined || Object.hasOwn(readConfig(given.home()).profiles, profile);
  const context = hasSettings ? given : given.with({ flags: others });
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
