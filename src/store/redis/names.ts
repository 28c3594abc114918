import type { RecordKey, RecordKind } from "../driver/driver.js";

const LONE_SURROGATE = /(\p{Surrogate})/u;
const ENCODED_SURROGATE = /%u([\da-f]{4})/;

/**
 * A text as a part of a key: ASCII without braces, colons and blanks, and another one for each text.
 *
 * A client encodes keys in UTF-8, which has no form for half of a surrogate pair: two such texts would be one key.
 */
export function encodeName(text: string): string {
  const parts = text.split(LONE_SURROGATE);
  return parts
    .map((part, index) => (index % 2 ? `%u${part.charCodeAt(0).toString(16)}` : encodeURIComponent(part)))
    .join("");
}

/** The text that {@link encodeName} encoded. */
export function decodeName(name: string): string {
  const parts = name.split(ENCODED_SURROGATE);
  return parts
    .map((part, index) => (index % 2 ? String.fromCharCode(Number.parseInt(part, 16)) : decodeURIComponent(part)))
    .join("");
}

/** A key as one text, for messages. */
export function encodeKey({ kind, partition, id }: RecordKey): string {
  return `${kind} ${encodeName(partition)} ${encodeName(id)}`;
}

/** The key that {@link encodeKey} encoded; undefined for another text, because anybody may publish. */
export function decodeKey(text: string): RecordKey | undefined {
  const [, kind, partition = "", id = ""] = /^([a-z]+) (\S+) (\S+)$/.exec(text) ?? [];
  try {
    return kind ? { kind: kind as RecordKind, partition: decodeName(partition), id: decodeName(id) } : undefined;
  } catch {
    return undefined;
  }
}

/** The names of keys. All keys of a partition have the same hash tag, so that a cluster puts them into one slot. */
export type Names = ReturnType<typeof namesWith>;

export function namesWith(prefix: string) {
  const base = (partition: string) => `${prefix}:{${encodeName(partition)}}`;
  /** What the keys of the records of a kind begin with; their encoded ids follow. */
  const records = (kind: RecordKind, partition: string) => `${base(partition)}:r:${kind}:`;
  return {
    records,
    /** A record: a hash of its version, its value and the keys of its tags. */
    record: ({ kind, partition, id }: RecordKey) => `${records(kind, partition)}${encodeName(id)}`,
    /** The encoded ids of the records of a kind. */
    index: (kind: RecordKind, partition: string) => `${base(partition)}:i:${kind}`,
    /** The encoded ids of the records with each of these tags. */
    tags: (kind: RecordKind, partition: string, tags: Readonly<Record<string, string>> = {}) =>
      Object.entries(tags).map(
        ([name, value]) => `${base(partition)}:t:${kind}:${encodeName(name)}=${encodeName(value)}`,
      ),
    /** The encoded ids of the records that are due at a time, by that. */
    due: (kind: RecordKind, partition: string) => `${base(partition)}:d:${kind}`,
    /** The newest claim under a key. */
    lease: ({ kind, partition, id }: RecordKey) => `${base(partition)}:l:${kind}:${encodeName(id)}`,
    /** The keys of all leases of a partition, by the time when each can be forgotten. */
    leases: (partition: string) => `${base(partition)}:l`,
    /** The newest version of a partition, and when the partition was registered for each kind. */
    state: (partition: string) => `${base(partition)}:seq`,
    /** The encoded names of the partitions that have had a record of this kind. */
    partitions: (kind: RecordKind) => `${prefix}:p:${kind}`,
    /** A key that exists for the moment of a look at the engine. */
    probe: `${prefix}:probe`,
    channel: `${prefix}:ch`,
  };
}
