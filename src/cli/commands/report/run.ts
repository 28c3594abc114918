import { accessSync, constants, existsSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { type AgentAuthError, isAgentAuthError, usageError, withHint } from "../../../errors.js";
import { type Env, errorCode, removeCommand } from "../../../platform.js";
import type { Format, Settings } from "../../../profile/settings.js";
import { escapeText, quote } from "../../../redact.js";
import { DOCUMENT_FORMATS } from "../../flags/global.js";
import type { ListFlags } from "../../flags/list.js";
import type { OutStream } from "../../io/stream.js";
import { isAscii } from "../../io/terminal.js";
import { cutText, textWidth, wrap } from "../../io/width.js";
import { outputError } from "../../io/write-all.js";
import { buildFilter, type Filter } from "../../listing/filters.js";
import { LIST_KINDS, requireScope, unusableHint } from "../../listing/scope.js";
import { documentedValues, parseSort } from "../../listing/source.js";
import { type ListEnding, readList, requireComplete, resumeCommand } from "../../listing/summary.js";
import { isolate } from "../../output/layout.js";
import { countText, groupThousands } from "../../output/value.js";
import { printObject } from "../../output/writer.js";
import type { CommandContext } from "../../runtime/context.js";
import {
  buildCharts,
  type Chart,
  countRest,
  createFindings,
  DAY_SECONDS,
  type DeviceFacts,
  type Finding,
  listFacts,
  notJudgedText,
  type Report,
  readFacts,
  shareText,
  type Tally,
} from "./findings.js";

interface ReportFlags extends ListFlags {
  html?: string;
}

interface Reading extends ListEnding {
  /** Devices in the pool, as the service reports. */
  total: number | null;
  /** The error that ended it early, after some devices were read. */
  failure: AgentAuthError | undefined;
}

export async function runReport(options: ReportFlags, context: CommandContext): Promise<undefined> {
  const { io, now } = context;
  const settings = context.settings();
  const poolId = requireScope("pool", settings, "devices report");
  const filter = buildFilter(options, now(), documentedValues("devices"));
  const format = chooseFormat(options, settings);
  const { html } = options;
  if (html !== undefined) checkHtmlFile(html);
  const aggregate = createAggregate(now());
  const reading = await readPool(poolId, filter, options, aggregate.add, context);
  const { yielded: read, total, failure, summary } = reading;
  // A reached limit is complete; a list that changed while it was read may have missed devices.
  const complete = failure === undefined && (summary === undefined || summary.complete || summary.next !== undefined);
  const notes = buildNotes(reading, filter, options);
  const report = aggregate.report({ pool_id: poolId, complete, read, total, notes });
  if (html !== undefined) await writePage(report, html, context);
  const isText = options.jq === undefined && (format === "table" || format === "plain");
  if (isText) await io.stdout.write(reportText(report, io.stdout, io.env));
  else if (format !== undefined) await printObject(format, report, options, context);
  // The text has them as notes.
  if (!isText) for (const remark of filter?.remarks(reading.matched) ?? []) io.warn(remark);
  warn(reading, context);
  if (failure) throw withContinuation(failure, reading, poolId, options, context);
  requireComplete(summary, options.sort);
}

/** The format on stdout; undefined where the page alone is written. */
function chooseFormat({ html, output, json, jq }: ReportFlags, settings: Settings): Format | undefined {
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
  const kind = LIST_KINDS.devices;
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
function buildNotes(reading: Reading, filter: Filter | undefined, { limit, offset }: ReportFlags): string[] {
  const { yielded, matched, total, drift, stoppedAt, summary, failure } = reading;
  const read = countText(yielded, "device");
  const of = total === null ? "" : ` of the ${groupThousands(total)} of the pool`;
  const isLimited = stoppedAt !== undefined || (failure === undefined && summary?.next !== undefined);
  return [
    failure?.unusable && `${countText(failure.unusable.count, "device")} without an id are not counted`,
    failure && !failure.unusable && `the list ended early: ${read}${of} could be read`,
    filter && `${groupThousands(matched)} of ${read} match ${filter.text}`,
    ...(filter?.remarks(matched) ?? []),
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
    throw usageError(`--html ${quote(path)} cannot be written (${errorCode(error)})`, "give another file", error);
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

function warn({ summary, drift, failure }: Reading, { io }: CommandContext): void {
  if (drift.length > 0 && failure === undefined) io.warn("the list changed while it was read; the report says so");
  if (summary && summary.duplicates > 0 && drift.length === 0)
    io.warn(`the service listed ${countText(summary.duplicates, "item")} twice; each is counted once`);
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
  const args = argv.map((word) => (isPage(word) ? `${word}.from-${resume}.html` : word));
  return withHint(
    failure,
    `continue with: ${resumeCommand(args, resume, limit === undefined ? undefined : limit - matched)}`,
  );
}

/** The number of distinct values that a counter stores, so that invented values cannot exhaust memory. */
const MOST_DISTINCT = 10_000;
/** Values of a field in the report: the most frequent ones. */
const MOST_VALUES = 50;

/** The fields of the report that count values of the devices. */
const COUNTED = {
  status: ({ status }: DeviceFacts) => status,
  session_type: ({ sessionType }: DeviceFacts) => sessionType,
  auth_profile: ({ authProfile }: DeviceFacts) => authProfile,
  countries: ({ country }: DeviceFacts) => country,
  networks: ({ network }: DeviceFacts) => network,
  clients: ({ client }: DeviceFacts) => client,
  fingerprints: ({ fingerprint }: DeviceFacts) => fingerprint,
};

/**
 * Counts devices, and judges them by the rules of findings. Each device is read once and not stored, so memory is bounded.
 *
 * @param now milliseconds since the epoch, for rules about age
 */
export function createAggregate(now: number) {
  const seconds = now / 1000;
  const fields = Object.entries(COUNTED).map(([name, read]) => ({ name, read, counter: createCounter() }));
  const findings = createFindings(seconds);
  const counts = { counted: 0, seen_within_7_days: 0, seen_within_30_days: 0 };
  return {
    add(device: object): void {
      const facts = readFacts(device, seconds);
      const age = seconds - (facts.at ?? Number.NEGATIVE_INFINITY);
      counts.counted++;
      if (age <= 7 * DAY_SECONDS) counts.seen_within_7_days++;
      if (age <= 30 * DAY_SECONDS) counts.seen_within_30_days++;
      for (const { read, counter } of fields) counter.add(read(facts));
      findings.add(facts);
    },
    /** @param subject how the devices were read: what the report says beside the numbers */
    report(
      subject: Pick<Report, "pool_id" | "complete" | "notes"> & Pick<Report["devices"], "read" | "total">,
    ): Report {
      const { read, total, ...others } = subject;
      const tallies = fields.map(({ name, counter }) => [name, counter.tally(MOST_VALUES)] as const);
      return {
        type: "device_report",
        ...others,
        generated_at: new Date(now).toISOString(),
        devices: { read, total, ...counts },
        ...(Object.fromEntries(tallies) as Record<keyof typeof COUNTED, Tally>),
        findings: findings.report(),
      };
    },
  };
}

/**
 * Counts how often each value comes, in bounded memory: values after the first `mostDistinct` ones are counted together.
 * An undefined value is not known.
 */
export function createCounter(mostDistinct = MOST_DISTINCT) {
  const counts = new Map<string, number>();
  let unknown = 0;
  let surplus = 0;
  return {
    add(value: string | undefined): void {
      if (value === undefined) unknown++;
      else if (counts.has(value) || counts.size < mostDistinct) counts.set(value, (counts.get(value) ?? 0) + 1);
      else surplus++;
    },
    /** The counts so far, with at most `most` of the values. */
    tally(most: number): Tally {
      const all = [...counts].map(([value, count]) => ({ value, count }));
      // Equal counts by the code units of their values, so that the same devices yield the same report.
      all.sort((a, b) => b.count - a.count || (a.value < b.value ? -1 : 1));
      const others = all.slice(most).reduce((sum, { count }) => sum + count, surplus);
      return { distinct: counts.size, unknown, top: all.slice(0, most), others };
    },
  };
}

type Target = Pick<OutStream, "colors" | "columns" | "isTTY">;

const NARROWEST = 40;
const WIDEST = 100;
const SEPARATOR = " · ";
/** The HTML page and the JSON have more. */
const MOST_ROWS = 10;
const MOST_EXAMPLES = 5;
const ASCII_SIGNS: Readonly<Record<string, string>> = { "→": "->", "…": "~", "·": "-" };

/** The text of a report, no line wider than the stream where that has at least 40 columns. */
export function reportText(report: Report, stream: Target, env: Env): string {
  const width = Math.max(NARROWEST, Math.min(WIDEST, stream.columns));
  const sections = [
    headLines(report, width, stream),
    ...buildCharts(report).map((chart) => chartLines(chart, report.devices.counted, width, stream)),
    findingLines(report.findings, width, stream),
  ];
  const text = sections.map((lines) => `${lines.join("\n").trimEnd()}\n`).join("\n");
  return isAscii(env) ? text.replace(/[→…·]/g, (sign) => ASCII_SIGNS[sign] ?? sign) : text;
}

function headLines(report: Report, width: number, stream: Target): string[] {
  const { bold, yellow, dim } = stream.colors;
  const heading = "Devices of pool ";
  return [
    bold(heading + isolateText(cutText(escapeText(report.pool_id), width - heading.length), stream)),
    ...wrap(listFacts(report).join(SEPARATOR), width),
    ...(report.complete ? [] : [bold(yellow("INCOMPLETE: not all of the devices are in these numbers"))]),
    ...report.notes.flatMap((note) => wrap(`note: ${escapeText(note)}`, width).map(dim)),
  ];
}

/** Text from the service; on a terminal isolated so that its writing direction does not affect its neighbours. */
function isolateText(text: string, { isTTY }: Target): string {
  return isTTY ? isolate(text) : text;
}

/** A heading, and one line per value: its name, count and share. */
function chartLines(chart: Chart, whole: number, width: number, stream: Target): string[] {
  const rows = [...chart.top.slice(0, MOST_ROWS), ...countRest(chart, MOST_ROWS)].map(({ value, count }) => {
    const numbers = `${groupThousands(count).padStart(9)}${shareText(count, whole).padStart(5)}`;
    const cut = cutText(escapeText(value), Math.min(50, width - numbers.length));
    return isolateText(cut, stream) + " ".repeat(Math.min(50, width - numbers.length) - textWidth(cut)) + numbers;
  });
  return [stream.colors.bold(chart.title.toUpperCase()), ...rows];
}

function findingLines(findings: readonly Finding[], width: number, stream: Target): string[] {
  const found = findings.filter(({ count }) => count > 0);
  const clear = findings.filter(({ count }) => count === 0);
  return [
    stream.colors.bold("FINDINGS"),
    ...(found.length === 0 ? ["none"] : []),
    ...found.flatMap((finding) => [...oneFinding(finding, width, stream), ""]),
    ...clear.flatMap((one) => wrap(`not found: ${one.title}${notJudgedText(one)}`, width).map(stream.colors.dim)),
  ];
}

function oneFinding(finding: Finding, width: number, stream: Target): string[] {
  const { bold, dim, yellow } = stream.colors;
  const { title, why, action, count } = finding;
  const examples = finding.examples.slice(0, MOST_EXAMPLES);
  const head = `${title}: ${countText(count, "device")}${notJudgedText(finding)}`;
  const more = count > examples.length ? [dim(`… and ${groupThousands(count - examples.length)} more`)] : [];
  const below = [
    ...wrap(why, width - 2),
    ...wrap(`What to do: ${action}`, width - 2),
    ...examples.map(({ id, title: name, detail }) => {
      // Cut first: a cut must not lose the character that ends an isolation.
      const facts = [id, name, detail].flatMap((fact) => (fact ? [escapeText(fact)] : []));
      const cut = cutText(facts.join(SEPARATOR), width - 2).split(SEPARATOR);
      return cut.map((fact) => isolateText(fact, stream)).join(SEPARATOR);
    }),
    ...more,
  ];
  return [...wrap(head, width).map((line) => bold(yellow(line))), ...below.map((line) => `  ${line}`)];
}
