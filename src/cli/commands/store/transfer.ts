import { AgentAuthError, messageOf } from "../../../errors.js";
import { isJsonObject, parseStrictJson } from "../../../http/strict-json.js";
import { redirectForm } from "../../../oauth/client/registration.js";
import {
  decodeBinding,
  decodeClient,
  decodeGrant,
  encodeBinding,
  encodeClient,
  encodeGrant,
} from "../../../oauth/model/codec.js";
import type { ClientRecord, Grant } from "../../../oauth/model/grant.js";
import type { ClientBinding, GrantStore } from "../../../oauth/model/grant-store.js";
import { writeSecretFile } from "../../../profile/secrets.js";
import { quote } from "../../../redact.js";
import { readPrivateFile } from "../../../store/private/private-file.js";
import type { KeyRing } from "../../../store/seal/key-ring.js";
import { storeError } from "../../../store/store-error.js";

/** What was exported, as `store export -o json` prints it. */
interface ExportReport {
  /** The file. */
  path: string;
  /** Whether the file is sealed. */
  sealed: boolean;
  /** The number of logins. */
  logins: number;
  /** The number of registered clients. */
  clients: number;
  /** The number of bindings of clients to issuers. */
  bindings: number;
}

/** Writes every login, client and binding of every profile to a file that only this user can read. */
export async function exportStore(
  store: GrantStore,
  { path, ring, onUnusable }: { path: string; ring: KeyRing | "none"; onUnusable: (error: AgentAuthError) => void },
): Promise<ExportReport> {
  const grants = await store.list({}, onUnusable);
  const clients = (await store.listClients?.()) ?? [];
  const bindings = await store.listBindings();
  writeSecretFile(path, await encodeRecords({ grants, clients, bindings }, ring));
  const counts = { logins: grants.length, clients: clients.length, bindings: bindings.length };
  return { path, sealed: ring !== "none", ...counts };
}

/** A record that was not imported. */
interface SkippedRecord {
  /** What it is. */
  record: string;
  /** Why it was not imported. */
  reason: string;
}

/** What was imported, as `store import -o json` prints it. */
export interface ImportReport {
  /** The number of imported logins. */
  logins: number;
  /** The number of imported clients. */
  clients: number;
  /** The number of imported bindings of clients to issuers. */
  bindings: number;
  /** The number of records that the store has already. */
  unchanged: number;
  /** The records that were not imported. */
  skipped_records: SkippedRecord[];
}

/** What became of a record: the reason why it was skipped, else one of these. */
type Outcome = "imported" | "unchanged" | { reason: string };

const TRIES = 5;

/** Reads a file of `store export` into a store. It replaces no newer login, no newer client and no binding. */
export async function importStore(
  store: GrantStore,
  { path, ring }: { path: string; ring: KeyRing | "none" },
): Promise<ImportReport> {
  const { grants, clients, bindings } = await readRecords(path, ring);
  const report: ImportReport = { logins: 0, clients: 0, bindings: 0, unchanged: 0, skipped_records: [] };
  const note = (kind: "logins" | "clients" | "bindings", record: string, outcome: Outcome) => {
    if (outcome === "imported") report[kind]++;
    else if (outcome === "unchanged") report.unchanged++;
    else report.skipped_records.push({ record, reason: outcome.reason });
  };
  // A login must find the binding of its client.
  for (const binding of bindings) {
    note("bindings", `binding of ${quote(binding.clientId)}`, await importBinding(store, binding));
  }
  for (const client of clients) {
    note("clients", `client ${quote(client.clientId)}`, await importClient(store, client));
  }
  for (const grant of grants) note("logins", nameOf(grant), await importGrant(store, grant));
  return report;
}

function nameOf({ server, profile, account }: Grant): string {
  return `login at ${quote(server)} of profile ${profile}${account === undefined ? "" : `, account ${quote(account)}`}`;
}

async function importGrant(store: GrantStore, grant: Grant): Promise<Outcome> {
  for (let tries = 0; tries < TRIES; tries++) {
    const stored = await store.read(grant);
    if (stored && isSame(stored, grant)) return "unchanged";
    if (stored && isNewer(stored, grant)) return { reason: "the store has a newer one" };
    // The generations of another login begin again.
    const generation = Math.max(grant.generation, (stored?.generation ?? -1) + 1);
    if (await store.save({ ...grant, generation }, stored?.generation)) return "imported";
  }
  return { reason: "other processes change it at the same time" };
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

async function importClient(store: GrantStore, client: ClientRecord): Promise<Outcome> {
  if (client.redirectUri === undefined) return { reason: "it has no redirect address" };
  const form = redirectForm(client.redirectUri);
  const stored = await store.readClient(client.issuer, form);
  if (stored?.clientId === client.clientId) return "unchanged";
  if (stored && registeredAt(stored) >= registeredAt(client)) return { reason: "the store has a newer one" };
  await store.saveClient(client, form);
  return "imported";
}

function registeredAt({ registeredAt: times = [] }: ClientRecord): number {
  return Math.max(0, ...times);
}

async function importBinding(store: GrantStore, binding: ClientBinding): Promise<Outcome> {
  const stored = await store.readBinding(binding);
  if (stored?.issuer === binding.issuer) return "unchanged";
  const after = stored ?? (await store.saveBinding(binding, undefined));
  return after.issuer === binding.issuer ? "imported" : { reason: `it is bound to ${quote(after.issuer)}` };
}

/** Everything of a store that outlives a login. */
interface StoreRecords {
  grants: Grant[];
  clients: ClientRecord[];
  bindings: ClientBinding[];
}

const MAX_BYTES = 256 * 1024 * 1024;
const END = "export-end";

/** The text of a file: each line a sealed record, which is bound to its place, and one that ends it. */
async function encodeRecords({ grants, clients, bindings }: StoreRecords, ring: KeyRing | "none"): Promise<string> {
  const texts = [
    ...bindings.map(encodeBinding),
    ...clients.map(encodeClient),
    ...grants.map((grant) => encodeGrant(grant)),
  ];
  const ended = [...texts, JSON.stringify({ kind: END, records: texts.length })];
  const seal = async (text: string, at: number) => (ring === "none" ? oneLine(text) : ring.seal(text, nameAt(at)));
  const lines = await Promise.all(ended.map(seal));
  return lines.map((line) => `${line.trimEnd()}\n`).join("");
}

/**
 * Reads such a file completely.
 *
 * @throws `AgentAuthError` class `store` if it is missing, incomplete, or cannot be opened with the keys
 */
async function readRecords(path: string, ring: KeyRing | "none"): Promise<StoreRecords> {
  const text = readPrivateFile(path, MAX_BYTES);
  if (text === undefined) throw storeError(`the file ${path} cannot be read`, { code: "ENOENT" });
  const records: StoreRecords = { grants: [], clients: [], bindings: [] };
  const lines = text.split("\n").filter((line) => line !== "");
  let isEnded = false;
  for (const [at, line] of lines.entries()) {
    try {
      if (isEnded) throw new Error("it is behind the end of the export");
      isEnded = add(records, ring === "none" ? line : await ring.open(line, nameAt(at)), at);
    } catch (cause) {
      throw fileError(path, `line ${at + 1}: ${messageOf(cause)}`);
    }
  }
  if (!isEnded) throw fileError(path, "its end is missing");
  return records;
}

/** @returns whether the text is the end of the export */
function add(records: StoreRecords, text: string, at: number): boolean {
  const { kind, records: count } = membersOf(text);
  if (kind === "grant") records.grants.push(decodeGrant(text));
  else if (kind === "client") records.clients.push(decodeClient(text));
  else if (kind === "binding") records.bindings.push(decodeBinding(text));
  else if (kind === END && count === at) return true;
  else throw new Error(kind === "sealed" ? "it is sealed, and store_keys is none" : "it is no record of an export");
  return false;
}

function membersOf(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = parseStrictJson(text);
  } catch {
    // The parser's message may quote a token.
    throw new Error("it is not valid JSON");
  }
  return isJsonObject(value) ? value : {};
}

function oneLine(text: string): string {
  return JSON.stringify(JSON.parse(text));
}

/** A line that was moved, removed or repeated cannot be opened. */
function nameAt(at: number): string {
  return `export:${at}`;
}

function fileError(path: string, reason: string): AgentAuthError {
  return new AgentAuthError("store_failed", `the file ${path} cannot be imported: ${reason}`, {
    class: "store",
    hint: "use the key ring that it was exported with, or export it again; nothing was changed",
  });
}
