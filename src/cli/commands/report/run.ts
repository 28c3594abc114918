import { join, parse } from "node:path";
import type { ManagementClient } from "../../../api/client.js";
import { type AgentAuthError, isAgentAuthError, usageError, withHint } from "../../../errors.js";
import type { Format, Settings } from "../../../profile/settings.js";
import { quote } from "../../../redact.js";
import type { ListFlags } from "../../flags/list.js";
import { DOCUMENT_FORMATS } from "../../flags/output.js";
import { buildFilter, type Filter } from "../../listing/filters.js";
import { resumeCommand } from "../../listing/resume-command.js";
import { requireScope, unusableHint } from "../../listing/scope.js";
import { documentedValues, parseSort } from "../../listing/source.js";
import { type ListEnding, readList } from "../../listing/summary.js";
import { countText, groupThousands } from "../../output/value.js";
import { printObject } from "../../output/writer.js";
import type { CommandContext } from "../../runtime/context.js";
import { createAggregate } from "./aggregate.js";
import { checkHtmlFile, writeHtmlFile } from "./html-file.js";
import type { Report } from "./model.js";
import { reportText } from "./text.js";

const STDOUT = "-";

/** Options of `devices report`. */
interface ReportFlags extends ListFlags {
  html?: string;
  force?: boolean;
}

/** `devices report`. */
export async function runReport(options: ReportFlags, context: CommandContext): Promise<undefined> {
  const settings = context.settings();
  const poolId = requireScope("pool", settings, "devices report");
  const filter = buildFilter(options, context.now(), documentedValues("devices"));
  const format = formatOf(options, settings);
  const { html, force = false } = options;
  if (html !== undefined && html !== STDOUT) checkHtmlFile(html, force);
  const service = await context.management();
  const aggregate = createAggregate(context.now());
  const reading = await readPool(service, { poolId, filter, options }, aggregate.add, context);
  const report = aggregate.report({
    pool_id: poolId,
    pool_title: await readPoolTitle(service, poolId, reading, context.signal),
    complete: isComplete(reading),
    read: reading.yielded,
    total: reading.total,
    notes: notesOf(reading, filter, options),
  });
  if (html !== undefined) await writePage(report, html, force, context);
  if (format !== undefined) await print(report, format, options, context);
  warn(reading, filter, context);
  if (reading.failure) throw withContinuation(reading.failure, reading, poolId, options, context);
  return undefined;
}

/** A reached limit is complete; a list that changed while it was read may have missed devices. */
function isComplete({ failure, verdict }: Reading): boolean {
  return failure === undefined && (verdict === undefined || verdict.complete || verdict.next !== undefined);
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

/** The format on stdout beside the page; undefined if no format was requested. */
function formatOf({ html, force, output, json, jq }: ReportFlags, settings: Settings): Format | undefined {
  const requested = output ?? (json || jq !== undefined ? "json" : undefined);
  if (force && (html === undefined || html === STDOUT)) {
    throw usageError("--force needs --html <file>", "add --html <file>, or leave --force out");
  }
  if (html === STDOUT && requested !== undefined) {
    const hint = "give a file for --html, or leave out -o, --json and --jq";
    throw usageError("--html - and an output format both write to standard output", hint);
  }
  if (html !== undefined || requested !== undefined) return requested;
  // A report does not support every list format that a profile may name.
  return DOCUMENT_FORMATS.find((format) => format === settings.output?.value) ?? "table";
}

async function writePage(report: Report, path: string, force: boolean, { io }: CommandContext): Promise<void> {
  const { reportPage } = await import("./page.js");
  const page = reportPage(report);
  if (path === STDOUT) return io.stdout.write(page);
  writeHtmlFile(path, page, force);
  io.say(`wrote ${quote(path)}: ${countText(report.devices.counted, "device")}`);
}

function print(report: Report, format: Format, options: ReportFlags, context: CommandContext): Promise<void> {
  if (options.jq !== undefined || (format !== "table" && format !== "plain")) {
    return printObject(format, report, options, context);
  }
  const { stdout, env } = context.io;
  return stdout.write(reportText(report, stdout, env));
}

function warn({ verdict, drift, matched, failure }: Reading, filter: Filter | undefined, { io }: CommandContext): void {
  if (filter && matched === 0) for (const sentence of filter.mistyped()) io.warn(sentence);
  if (drift.length > 0 && failure === undefined) io.warn("the list changed while it was read; the report says so");
  if (verdict && verdict.duplicates > 0 && drift.length === 0) {
    io.warn(`the service listed ${countText(verdict.duplicates, "item")} twice; each is counted once`);
  }
}

/** The error with the command that reports on the rest; only the rest, since reports cannot be merged. */
function withContinuation(
  failure: AgentAuthError,
  { matched }: Reading,
  poolId: string,
  { limit, html = STDOUT }: ReportFlags,
  { argv, settings }: CommandContext,
): AgentAuthError {
  const { resume, unusable } = failure;
  if (resume === undefined)
    return unusable ? withHint(failure, unusableHint("devices", "pool", poolId, settings())) : failure;
  const words = html === STDOUT ? argv : withOtherFile(argv, html, resume);
  const left = limit === undefined ? undefined : limit - matched;
  return withHint(failure, `continue with: ${resumeCommand(words, resume, left)}`);
}

/** The command line with another file for the page, so that the rest does not overwrite the first page. */
function withOtherFile(argv: readonly string[], path: string, offset: number): string[] {
  const { dir, name, ext } = parse(path);
  const other = join(dir, `${name}-from-${offset}${ext}`);
  return argv.map((word) => (word === path || word === `--html=${path}` ? word.replace(path, () => other) : word));
}

/** The result of reading a pool. */
interface Reading extends ListEnding {
  /** Devices in the pool, as the service reports. */
  total: number | null;
  /** The domain of the pool, as its first device has it. */
  domainId: unknown;
  /** The error that ended it early, after some devices were read. */
  failure: AgentAuthError | undefined;
}

const DEVICES = { noun: "devices", scope: "pool" } as const;

/**
 * Reads a pool page by page.
 *
 * @param add receives each device that matches the filter
 * @throws `AgentAuthError` if the first page fails, and for a signal; a later error is in the result
 */
async function readPool(
  service: ManagementClient,
  { poolId, filter, options }: { poolId: string; filter: Filter | undefined; options: ReportFlags },
  add: (device: object) => void,
  context: CommandContext,
): Promise<Reading> {
  const sort = options.sort === undefined ? undefined : parseSort(options.sort, DEVICES.noun);
  const request = { kind: DEVICES, scopeId: poolId, sort, filter, options };
  const { end, selections } = readList(service, request, context);
  const pool: Pick<Reading, "total" | "domainId"> = { total: null, domainId: undefined };
  try {
    for await (const { page, items } of selections) {
      pool.total = page.pagination.item_count ?? pool.total;
      pool.domainId ??= page.items[0]?.domain_id;
      items.forEach(add);
    }
    return { ...end, ...pool, failure: undefined };
  } catch (thrown) {
    if (!isAgentAuthError(thrown) || thrown.class !== "partial") throw thrown;
    return { ...end, ...pool, failure: thrown };
  }
}

/** Pools among which the title is looked for, in one request. */
const MOST_POOLS = 1000;

/**
 * The title of a pool, from the list of its domain, since no operation reads one pool; null if it is not found in one
 * try. The report is whole without it.
 */
async function readPoolTitle(
  service: ManagementClient,
  poolId: string,
  { domainId, failure }: Reading,
  signal: AbortSignal,
): Promise<string | null> {
  if (typeof domainId !== "string" || failure !== undefined) return null;
  try {
    const options = { pageSize: MOST_POOLS, limit: MOST_POOLS, maxRetries: 0, signal };
    const { title } = await service.pools.get({ domain_id: domainId, id: poolId }, options);
    return typeof title === "string" && title !== "" ? title : null;
  } catch (error) {
    if (signal.aborted) throw error;
    return null;
  }
}
