import { type AgentAuthError, usageError } from "../../../errors.js";
import { redirectForm } from "../../../oauth/client/registration.js";
import type { ClientRecord, Grant } from "../../../oauth/model/grant.js";
import type { ClientBinding, GrantStore } from "../../../oauth/model/grant-store.js";
import { givenAddress } from "../../../profile/engine/engine.js";
import { openEngine } from "../../../profile/engine/open-engine.js";
import { isEngine } from "../../../profile/profile-settings.js";
import { readConfig, writtenProfile } from "../../../profile/settings-file.js";
import { engineSettings } from "../../../profile/store-choice.js";
import { quote } from "../../../redact.js";
import { unavailableError } from "../../../store/driver/engine.js";
import { warnOfUnusable } from "../../clients/login-first.js";
import { engineHost } from "../../clients/store.js";
import type { GlobalFlags, OutputFlags } from "../../flags/global.js";
import { printResult } from "../../output/writer.js";
import type { CommandContext } from "../../runtime/context.js";
import { EXIT_CODES } from "../../runtime/exit-codes.js";

interface SkippedRecord {
  /** What it is. */
  record: string;
  /** Why it was not copied. */
  reason: string;
}

/** What was copied, as `store copy -o json` prints it. */
export interface CopyReport {
  /** The engine, without its credentials. */
  to: string;
  /** The number of copied logins. */
  logins: number;
  /** The number of copied clients. */
  clients: number;
  /** The number of copied bindings of clients to issuers. */
  bindings: number;
  /** The number of records that the engine has already. */
  unchanged: number;
  /** The records that were not copied. */
  skipped_records: SkippedRecord[];
}

/** What became of a record: the reason why it was skipped, else one of these. */
type Outcome = "copied" | "unchanged" | { reason: string };

const NEWER = { reason: "the engine has a newer one" };
const TRIES = 5;

/** `store copy`: copies the logins in files to an engine, with what they need there. */
export async function runCopy(
  { to, ...options }: GlobalFlags & OutputFlags & { to?: string },
  context: CommandContext,
) {
  if (to === undefined) throw usageError("store copy needs --to", "agentauth store copy --to env:REDIS_URL");
  const { value, source } = context.storeChoice();
  if (value === "memory" || isEngine(value))
    throw usageError(`logins in files are copied, and the store is ${value} (${source})`, "set AGENTAUTH_STORE=file");
  const { io, home, settings } = context;
  const written = writtenProfile(settings().profile.value, readConfig(home()));
  const host = engineHost(context);
  const { kind, url } = givenAddress(to, "--to", io.env, host.hide);
  const { store, ring } = openEngine(kind, { ...engineSettings(io.env, written), url }, host);
  const unusable: AgentAuthError[] = [];
  const report = await copyStore(await context.store(), store, (error) => unusable.push(error));
  await printResult(report, options, context);
  for (const { record, reason } of report.skipped_records) io.warn(`skipped the ${record}: ${reason}`);
  if (ring === "none") io.warn(`store_keys is none: the tokens in ${store.location} are not sealed`);
  warnOfUnusable(unusable, context);
  return unusable.length > 0 ? EXIT_CODES.store : undefined;
}

/** Copies every login, client and binding of every profile. It replaces no newer login, no newer client and no binding. */
export async function copyStore(
  from: GrantStore,
  to: GrantStore,
  onUnusable: (error: AgentAuthError) => void,
): Promise<CopyReport> {
  const counts = { logins: 0, clients: 0, bindings: 0, unchanged: 0 };
  const report: CopyReport = { to: to.location, ...counts, skipped_records: [] };
  const note = (kind: "logins" | "clients" | "bindings", record: string, outcome: Outcome) => {
    if (outcome === "copied") report[kind]++;
    else if (outcome === "unchanged") report.unchanged++;
    else report.skipped_records.push({ record, reason: outcome.reason });
  };
  // A login must find its client and the binding of that.
  for (const binding of await from.listBindings())
    note("bindings", `binding of ${quote(binding.clientId)}`, await copyBinding(to, binding));
  for (const client of (await from.listClients?.()) ?? [])
    note("clients", `client ${quote(client.clientId)}`, await copyClient(to, client));
  for (const grant of await from.list({}, onUnusable)) note("logins", grantName(grant), await copyGrant(to, grant));
  return report;
}

function grantName({ server, profile, account }: Grant): string {
  return `login at ${quote(server)} of profile ${profile}${account === undefined ? "" : `, account ${quote(account)}`}`;
}

async function copyGrant(to: GrantStore, grant: Grant): Promise<Outcome> {
  for (let tries = 0; tries < TRIES; tries++) {
    const stored = await to.read(grant);
    if (stored && isSame(stored, grant)) return "unchanged";
    if (stored && isNewer(stored, grant)) return NEWER;
    // The generations of another login begin again.
    const generation = Math.max(grant.generation, (stored?.generation ?? -1) + 1);
    if (await to.save({ ...grant, generation }, stored?.generation)) return "copied";
  }
  throw unavailableError(`other processes change the ${grantName(grant)} in ${to.location} at the same time`);
}

function isSame(one: Grant, other: Grant): boolean {
  return (
    one.signedInAt === other.signedInAt &&
    one.tokens.accessToken.reveal() === other.tokens.accessToken.reveal() &&
    one.generation >= other.generation
  );
}

function isNewer(one: Grant, other: Grant): boolean {
  return one.signedInAt === other.signedInAt ? one.generation >= other.generation : one.signedInAt > other.signedInAt;
}

async function copyClient(to: GrantStore, client: ClientRecord): Promise<Outcome> {
  if (client.redirectUri === undefined) return { reason: "it has no redirect address" };
  const form = redirectForm(client.redirectUri);
  const stored = await to.readClient(client.issuer, form);
  if (stored?.clientId === client.clientId) return "unchanged";
  if (stored && registeredAt(stored) >= registeredAt(client)) return NEWER;
  await to.saveClient(client, form);
  return "copied";
}

function registeredAt({ registeredAt: times = [] }: ClientRecord): number {
  return Math.max(0, ...times);
}

async function copyBinding(to: GrantStore, binding: ClientBinding): Promise<Outcome> {
  const stored = await to.readBinding(binding);
  if (stored?.issuer === binding.issuer) return "unchanged";
  const after = stored ?? (await to.saveBinding(binding, undefined));
  return after.issuer === binding.issuer ? "copied" : { reason: `it is bound to ${quote(after.issuer)}` };
}
