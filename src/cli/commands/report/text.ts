/** The report as text, for a terminal or a pipe. */

import type { Env } from "../../../platform/system.js";
import { escapeText } from "../../../redact.js";
import type { OutStream } from "../../io/stream.js";
import { isAscii } from "../../io/terminal.js";
import { cutText, textWidth, wrap } from "../../io/width.js";
import { isolate } from "../../output/layout.js";
import { countText, groupThousands } from "../../output/value.js";
import { type Chart, type ChartRow, chartsOf, restOf, shareText } from "./charts.js";
import { activeText, notJudgedText } from "./findings.js";
import type { Finding, Report } from "./model.js";

/** The stream that the text is for. */
export type Target = Pick<OutStream, "colors" | "columns" | "isTTY">;

const NARROWEST = 40;
const WIDEST = 100;
/** The columns of a count and of a share, with the blank before them. */
const COUNT_WIDTH = 9;
const SHARE_WIDTH = 5;
const SEPARATOR = " · ";
const INDENT = "  ";
/** The HTML page and the JSON have more. */
const MOST_ROWS = 10;
const MOST_EXAMPLES = 5;
/** Leaves room for what was found on a device, at 80 columns. */
const WIDEST_TITLE = 24;
const ASCII_SIGNS: Readonly<Record<string, string>> = { "→": "->", "…": "~", "·": "-", "█": "#" };

/** The text of a report, no line wider than the stream where that has at least 40 columns. */
export function reportText(report: Report, stream: Target, env: Env): string {
  const width = Math.max(NARROWEST, Math.min(WIDEST, stream.columns));
  const charts = chartsOf(report).flatMap(([, charts]) => charts);
  const sections = [
    headLines(report, width, stream),
    ...charts.map((chart) => chartLines(chart, report.devices.counted, width, stream)),
    findingLines(report.findings, width, stream),
  ];
  const text = sections.map((lines) => `${lines.join("\n").trimEnd()}\n`).join("\n");
  return isAscii(env) ? text.replace(/[→…·█]/g, (sign) => ASCII_SIGNS[sign] ?? sign) : text;
}

function headLines({ pool_id, pool_title, devices, ...report }: Report, width: number, stream: Target): string[] {
  const { bold, yellow, dim } = stream.colors;
  const facts = [
    countText(devices.counted, "device"),
    `${groupThousands(devices.seen_within_7_days)} seen within 7 days`,
    `${groupThousands(devices.seen_within_30_days)} within 30 days`,
    `read ${report.generated_at.slice(0, 16).replace("T", " ")} UTC`,
    ...(pool_title === null ? [] : [escapeText(pool_id)]),
  ];
  const heading = "Devices of pool ";
  return [
    bold(heading + isolateText(cutText(escapeText(pool_title ?? pool_id), width - heading.length), stream)),
    ...wrap(facts.join(SEPARATOR), width),
    ...(report.complete ? [] : [bold(yellow("INCOMPLETE: not all of the devices are in these numbers"))]),
    ...report.notes.flatMap((note) => wrap(`note: ${escapeText(note)}`, width).map(dim)),
  ];
}

/** Text from the service; on a terminal isolated so that its writing direction does not affect its neighbours. */
function isolateText(text: string, { isTTY }: Target): string {
  return isTTY ? isolate(text) : text;
}

/** A heading, and one line per value: its name, bar, count and share. */
function chartLines(chart: Chart, whole: number, width: number, stream: Target): string[] {
  const { bold, cyan, dim } = stream.colors;
  const rows = chart.top.slice(0, MOST_ROWS);
  const labelWidth = Math.floor(width * 0.45);
  const barWidth = width - labelWidth - COUNT_WIDTH - SHARE_WIDTH - 1;
  const greatest = Math.max(...rows.map(({ count }) => count));
  const line = ({ value, count }: ChartRow, bar: number) => {
    const cut = cutText(escapeText(value), labelWidth);
    const padding = " ".repeat(labelWidth - textWidth(cut) + 1);
    const name = bar === 0 ? dim(cut) : isolateText(cut, stream);
    const numbers = groupThousands(count).padStart(COUNT_WIDTH) + dim(shareText(count, whole).padStart(SHARE_WIDTH));
    return `${name}${padding}${cyan("█".repeat(bar))}${" ".repeat(barWidth - bar)}${numbers}`;
  };
  return [
    bold(chart.title.toUpperCase()),
    ...rows.map((row) => line(row, row.count === 0 ? 0 : Math.max(1, Math.round((row.count / greatest) * barWidth)))),
    ...restOf(chart, MOST_ROWS).map((row) => line(row, 0)),
  ];
}

function findingLines(findings: readonly Finding[], width: number, stream: Target): string[] {
  const { bold, dim } = stream.colors;
  const found = findings.filter(({ count }) => count > 0);
  const clear = findings.filter(({ count }) => count === 0);
  return [
    bold("FINDINGS"),
    ...(found.length === 0 ? ["none"] : []),
    ...found.flatMap((finding) => [...oneFinding(finding, width, stream), ""]),
    ...clear.flatMap((finding) => wrap(`not found: ${finding.title}${notJudgedText(finding)}`, width).map(dim)),
  ];
}

function oneFinding(finding: Finding, width: number, stream: Target): string[] {
  const { bold, dim, yellow } = stream.colors;
  const { title, why, action, count } = finding;
  const examples = finding.examples.slice(0, MOST_EXAMPLES);
  const room = width - INDENT.length;
  const idWidth = Math.min(Math.floor(room / 2), Math.max(0, ...examples.map(({ id }) => textWidth(escapeText(id)))));
  const more = count - examples.length;
  return [
    ...wrap(`${title}: ${countText(count, "device")}, ${activeText(finding)}${notJudgedText(finding)}`, width).map(
      (line) => bold(yellow(line)),
    ),
    ...[...wrap(why, room), ...wrap(`What to do: ${action}`, room)].map((line) => INDENT + line),
    ...examples.map((example) => exampleLine(example, idWidth, room, stream)),
    ...(more > 0 ? [`${INDENT}${dim(`… and ${groupThousands(more)} more`)}`] : []),
  ];
}

function exampleLine(example: Finding["examples"][number], idWidth: number, room: number, stream: Target): string {
  const { id, title, client, country, detail } = example;
  const cut = cutText(escapeText(id), idWidth);
  const facts = [cutText(escapeText(title ?? ""), WIDEST_TITLE), escapeText(client ?? ""), country, escapeText(detail)];
  // Cut first: a cut must not lose the character that ends an isolation.
  const rest = cutText(facts.filter(Boolean).join(SEPARATOR), room - idWidth - 2)
    .split(SEPARATOR)
    .map((fact) => isolateText(fact, stream))
    .join(SEPARATOR);
  const padding = " ".repeat(idWidth - textWidth(cut) + 2);
  return `${INDENT}${isolateText(cut, stream)}${padding}${stream.colors.dim(rest)}`.trimEnd();
}
