import { accessSync, constants, existsSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { type AgentAuthError, isAgentAuthError, usageError, withHint } from "../../../errors.js";
import { codeOf } from "../../../platform/files.js";
import { removeCommand } from "../../../platform/shell.js";
import type { Format, Settings } from "../../../profile/settings.js";
import { quote } from "../../../redact.js";
import type { ListFlags } from "../../flags/list.js";
import { DOCUMENT_FORMATS } from "../../flags/output.js";
import { outputError } from "../../io/write-all.js";
import { buildFilter, type Filter } from "../../listing/filters.js";
import { resumeCommand } from "../../listing/resume-command.js";
import { requireScope, unusableHint } from "../../listing/scope.js";
import { documentedValues, parseSort } from "../../listing/source.js";
import { type ListEnding, readList, requireComplete } from "../../listing/summary.js";
import { countText, groupThousands } from "../../output/value.js";
import { printObject } from "../../output/writer.js";
import type { CommandContext } from "../../runtime/context.js";
import { createAggregate } from "./aggregate.js";
import type { Report } from "./model.js";
import { reportText } from "./text.js";

/** Options of `devices report`. */
interface ReportFlags extends ListFlags {
  html?: string;
}

/** How a pool was read. */
interface Reading extends ListEnding {
  /** Devices in the pool, as the service reports. */
  total: number | null;
  /** The error that ended it early, after some devices were read. */
  failure: AgentAuthError | undefined;
}

/** `devices report`. */
export async function runReport(options: ReportFlags, context: CommandContext): Promise<undefined> {
  const { io, now } = context;
  const settings = context.settings();
  const poolId = requireScope("pool", settings, "devices report");
  const filter = buildFilter(options, now(), documentedValues("devices"));
  const format = formatOf(options, settings);
  const { html } = options;
  if (html !== undefined) checkHtmlFile(html);
  const aggregate = createAggregate(now());
  const reading = await readPool(poolId, filter, options, aggregate.add, context);
  const { yielded: read, total, failure, verdict } = reading;
  // A reached limit is complete; a list that changed while it was read may have missed devices.
  const complete = failure === undefined && (verdict === undefined || verdict.complete || verdict.next !== undefined);
  const notes = notesOf(reading, filter, options);
  const report = aggregate.report({ pool_id: poolId, complete, read, total, notes });
  if (html !== undefined) await writePage(report, html, context);
  const isText = options.jq === undefined && (format === "table" || format === "plain");
  if (isText) await io.stdout.write(reportText(report, io.stdout, io.env));
  else if (format !== undefined) await printObject(format, report, options, context);
  warn(reading, filter, context);
  if (failure) throw withContinuation(failure, reading, poolId, options, context);
  requireComplete(verdict);
  return undefined;
}

/** The format on stdout; undefined where the page alone is written. */
function formatOf({ html, output, json, jq }: ReportFlags, settings: Settings): Format | undefined {
  const requested = output ?? (json || jq !== undefined ? "json" : undefined);
  if (html !== undefined || requested !== undefined) return requested;
  // A report does not support every list format that a profile may name.
  return DOCUMENT_FORMATS.find((format) => format === settings.output?.value) ?? "table";
}

/**
 * Reads a pool page by page.
 *
 * @param add receives each device that matches the filter
 * @throws `AgentAuthError` if the first page fails, and for a signal; a later error is in the result
 */
async function readPool(
  scopeId: string,
  filter: Filter | undefined,
  options: ReportFlags,
  add: (device: object) => void,
  context: CommandContext,
): Promise<Reading> {
  const kind = { noun: "devices", scope: "pool" } as const;
  const sort = options.sort === undefined ? undefined : parseSort(options.sort, kind.noun);
  const { end, selections } = readList(await context.management(), { kind, scopeId, sort, filter, options }, context);
  let total: number | null = null;
  try {
    for await (const { page, items } of selections) {
      total = page.pagination.item_count ?? total;
      items.forEach(add);
    }
    return { ...end, total, failure: undefined };
  } catch (thrown) {
    if (!isAgentAuthError(thrown) || thrown.class !== "partial") throw thrown;
    return { ...end, total, failure: thrown };
  }
}

/** How the numbers were collected. */
function notesOf(reading: Reading, filter: Filter | undefined, { limit, offset }: ReportFlags): string[] {
  const { yielded, matched, total, drift, left, verdict, failure } = reading;
  const read = countText(yielded, "device");
  const of = total === null ? "" : ` of the ${groupThousands(total)} of the pool`;
  const isLimited = left !== undefined || (failure === undefined && verdict?.next !== undefined);
  return [
    failure?.unusable && `${countText(failure.unusable.count, "device")} without an id are not counted`,
    failure && !failure.unusable && `the list ended early: ${read}${of} could be read`,
    filter && `${groupThousands(matched)} of ${read} match ${filter.text}`,
    offset && `started at offset ${groupThousands(offset)}: earlier devices are not counted`,
    isLimited && `ended at --limit ${groupThousands(limit ?? matched)}: the pool has more devices`,
    drift.length > 0 && "the list changed while it was read: devices that were added or removed may be missing",
  ].filter((note) => typeof note === "string");
}

/** Refuses a file that cannot be written, before the pool is read. @throws `AgentAuthError` `usage` */
function checkHtmlFile(path: string): void {
  if (existsSync(path))
    throw usageError(`--html ${quote(path)} already exists`, `give another file, or remove it: ${removeCommand(path)}`);
  try {
    accessSync(dirname(path), constants.W_OK);
  } catch (error) {
    throw usageError(`--html ${quote(path)} cannot be written (${codeOf(error)})`, "give another file", error);
  }
}

async function writePage(report: Report, path: string, { io }: CommandContext): Promise<void> {
  const { reportPage } = await import("./page.js");
  try {
    writeFileSync(path, reportPage(report), { flag: "wx", mode: 0o644, flush: true });
  } catch (error) {
    throw outputError(`the report cannot be written to ${quote(path)}`, error as Error, "check the disk of the file");
  }
  io.say(`wrote ${quote(path)}: ${countText(report.devices.counted, "device")}`);
}

function warn({ verdict, drift, matched, failure }: Reading, filter: Filter | undefined, { io }: CommandContext): void {
  if (filter && matched === 0) for (const sentence of filter.mistyped()) io.warn(sentence);
  if (drift.length > 0 && failure === undefined) io.warn("the list changed while it was read; the report says so");
  if (verdict && verdict.duplicates > 0 && drift.length === 0)
    io.warn(`the service listed ${countText(verdict.duplicates, "item")} twice; each is counted once`);
}

/** The error with the command that reports on the rest; only the rest, since reports cannot be merged. */
function withContinuation(
  failure: AgentAuthError,
  { matched }: Reading,
  poolId: string,
  { limit, html }: ReportFlags,
  { argv, settings }: CommandContext,
): AgentAuthError {
  const { resume, unusable } = failure;
  if (resume === undefined)
    return unusable ? withHint(failure, unusableHint("devices", "pool", poolId, settings())) : failure;
  // Another file, so that the rest does not overwrite the first page.
  const isPage = (word: string) => html !== undefined && (word === html || word === `--html=${html}`);
  const words = argv.map((word) => (isPage(word) ? `${word}.from-${resume}.html` : word));
  return withHint(
    failure,
    `continue with: ${resumeCommand(words, resume, limit === undefined ? undefined : limit - matched)}`,
  );
}
