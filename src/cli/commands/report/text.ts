/** The report as text, for a terminal or a pipe. */

import type { Env } from "../../../platform/system.js";
import { escapeText } from "../../../redact.js";
import type { OutStream } from "../../io/stream.js";
import { isAscii } from "../../io/terminal.js";
import { cutText, textWidth, wrap } from "../../io/width.js";
import { isolate } from "../../output/layout.js";
import { countText, groupThousands } from "../../output/value.js";
import { type Chart, chartsOf, factsOf, restOf, shareText } from "./charts.js";
import { notJudgedText } from "./findings.js";
import type { Finding, Report } from "./model.js";

/** The stream that the text is for. */
export type Target = Pick<OutStream, "colors" | "columns" | "isTTY">;

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
    ...chartsOf(report).map((chart) => chartLines(chart, report.devices.counted, width, stream)),
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
    ...wrap(factsOf(report).join(SEPARATOR), width),
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
  const rows = [...chart.top.slice(0, MOST_ROWS), ...restOf(chart, MOST_ROWS)].map(({ value, count }) => {
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
