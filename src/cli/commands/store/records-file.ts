import { AgentAuthError } from "../../../errors.js";
import { isJsonObject, parseStrictJson } from "../../../http/strict-json.js";
import {
  decodeBinding,
  decodeClient,
  decodeGrant,
  encodeBinding,
  encodeClient,
  encodeGrant,
} from "../../../oauth/model/codec.js";
import type { ClientRecord, Grant } from "../../../oauth/model/grant.js";
import type { ClientBinding } from "../../../oauth/model/grant-store.js";
import { readPrivateFile } from "../../../store/private/private-file.js";
import type { KeyRing } from "../../../store/seal/key-ring.js";
import { storeError } from "../../../store/store-error.js";

/** Everything of a store that outlives a login. */
export interface StoreRecords {
  grants: Grant[];
  clients: ClientRecord[];
  bindings: ClientBinding[];
}

const MAX_BYTES = 256 * 1024 * 1024;
const END = "export-end";

/** The text of a file: each line a sealed record, which is bound to its place, and one that ends it. */
export async function encodeRecords(
  { grants, clients, bindings }: StoreRecords,
  ring: KeyRing | "none",
): Promise<string> {
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
export async function readRecords(path: string, ring: KeyRing | "none"): Promise<StoreRecords> {
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
      throw unusable(path, `line ${at + 1}: ${cause instanceof Error ? cause.message : String(cause)}`);
    }
  }
  if (!isEnded) throw unusable(path, "its end is missing");
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

function unusable(path: string, reason: string): AgentAuthError {
  return new AgentAuthError("store_failed", `the file ${path} cannot be imported: ${reason}`, {
    class: "store",
    hint: "use the key ring that it was exported with, or export it again; nothing was changed",
  });
}
