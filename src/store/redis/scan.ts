import type { RecordKind, ScanFilter, ScanPage, StoredRecord, Version } from "../driver/driver.js";
import type { Session } from "./engine.js";
import { decodeName, type Names } from "./names.js";
import { PARTITIONS, SCAN } from "./scripts.js";

interface Part {
  readonly limit: number;
  readonly cursor?: string | undefined;
}

type Run = Session["run"];

/** A scan of all partitions asks for this many at a time. */
const PARTITIONS_AT_ONCE = 16;

/**
 * A part of the records of one partition. The index is sorted by id, and the cursor is the last id: a record has one place
 * there, whatever others write.
 */
export async function scanPartition(
  run: Run,
  names: Names,
  { kind, partition, tags }: ScanFilter & { readonly partition: string },
  { limit, cursor }: Part,
): Promise<ScanPage> {
  const keys = [names.records(kind, partition), names.index(kind, partition), ...names.tags(kind, partition, tags)];
  const reply = (await run(SCAN, keys, [after(cursor), limit])) as unknown[];
  const [last = "", ...parts] = reply.map(String);
  const items: StoredRecord[] = [];
  for (let at = 0; at + 2 < parts.length; at += 3) {
    const [id = "", version, value = ""] = parts.slice(at, at + 3);
    items.push({ key: { kind, partition, id: decodeName(id) }, version: version as Version, value });
  }
  return { items, cursor: last === "" ? undefined : last };
}

/**
 * A part of the records of all partitions. The cursor is the partition, and the last id in it unless the partition is
 * complete.
 */
export async function scanAll(run: Run, names: Names, kind: RecordKind, { limit, cursor }: Part): Promise<ScanPage> {
  const [name = "", id] = cursor?.split(" ") ?? [];
  if (id !== undefined) {
    const page = await scanPartition(run, names, { kind, partition: decodeName(name) }, { limit, cursor: id });
    return { items: page.items, cursor: page.cursor === undefined ? name : `${name} ${page.cursor}` };
  }
  const wanted = Math.min(limit, PARTITIONS_AT_ONCE);
  const found = (await run(PARTITIONS, [names.partitions(kind)], [after(cursor), wanted])) as unknown[];
  const partitions = found.map(String);
  const share = Math.floor(limit / Math.max(1, partitions.length));
  const pages = await Promise.all(
    partitions.map((each) => scanPartition(run, names, { kind, partition: decodeName(each) }, { limit: share })),
  );
  // What follows a partition that is not complete would be returned again.
  const isPartial = pages.findIndex((page) => page.cursor !== undefined);
  const items = pages.slice(0, isPartial === -1 ? undefined : isPartial + 1).flatMap((page) => page.items);
  if (isPartial !== -1) return { items, cursor: `${partitions[isPartial]} ${pages[isPartial]?.cursor}` };
  return { items, cursor: partitions.length < wanted ? undefined : partitions.at(-1) };
}

/** The begin of a range of ids; the cursor comes from outside, so it must not change what kind of a range it is. */
function after(cursor: string | undefined): string {
  return cursor === undefined ? "-" : `(${cursor}`;
}
