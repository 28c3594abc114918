import type { Filter } from "../../listing/filters.js";
import { countText, numberText } from "./numbers.js";
import type { ReportFlags } from "./options.js";
import type { Reading } from "./read-pool.js";

/** The notes of a report: how its numbers were collected. */
export function notesOf(reading: Reading, filter: Filter | undefined, options: ReportFlags): string[] {
  const { read, counted, total, drift, isLimited, failure } = reading;
  const notes: string[] = [];
  const of = total === undefined ? "" : ` of the ${numberText(total)} of the pool`;
  if (failure?.unusable) notes.push(`${countText(failure.unusable.count, "device")} without an id are not counted`);
  else if (failure) notes.push(`the list ended early: ${countText(read, "device")}${of} could be read`);
  if (filter) notes.push(`${numberText(counted)} of ${countText(read, "device")} match ${filterText(filter, options)}`);
  if (options.offset) notes.push(`started at offset ${numberText(options.offset)}: earlier devices are not counted`);
  if (isLimited) notes.push(`ended at --limit ${numberText(options.limit ?? counted)}: the pool has more devices`);
  if (drift.length > 0)
    notes.push("the list changed while it was read: devices that were added or removed may be missing");
  return notes;
}

/** The filters as they were given. */
function filterText({ flags }: Filter, options: ReportFlags): string {
  const { status, title, sessionType, seenAfter, seenBefore } = options;
  const values: Readonly<Record<string, string | undefined>> = {
    "--status": status,
    "--title": title,
    "--session-type": sessionType,
    "--seen-after": seenAfter,
    "--seen-before": seenBefore,
  };
  return flags.map((flag) => `${flag} ${values[flag] ?? ""}`).join(", ");
}
