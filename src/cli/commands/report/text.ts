/** The report as text, for a terminal or a pipe. */

import { escapeText } from "../../../redact.js";
import { cutText, textWidth } from "../../io/width.js";
import { wrap } from "../../output/wrap.js";
import { type BarList, barLines } from "./bars.js";
import { sideBySide } from "./layout.js";
import type { Finding, Report } from "./model.js";
import { activeText, countryName, countText, numberText } from "./numbers.js";
import type { TextStyle } from "./text-style.js";
import { binName, timeBins } from "./time-bins.js";

const NARROWEST = 40;
const WIDEST = 140;
/** From this width on, two lists fit side by side. */
const TWO_COLUMNS = 100;
const GAP = 4;
const SEPARATOR = " · ";
/** Leaves room for what was found on a device, at 80 columns. */
const WIDEST_TITLE = 24;
/** The HTML page and the JSON have more. */
const MOST_EXAMPLES = 5;

/** The text of a report, no line wider than `columns` where that is at least 40. */
export function reportText(report: Report, columns: number, style: TextStyle): string {
  const width = Math.max(NARROWEST, Math.min(WIDEST, columns));
  const sections = [headLines(report, width, style), ...tallySections(report, width, style)];
  sections.push(timeLines(report, width, style), findingLines(report, width, style));
  const text = sections.map((lines) => lines.join("\n").trimEnd()).join("\n\n");
  return style.finish(`${text}\n`);
}

function headLines(report: Report, width: number, style: TextStyle) {
  const { pool_id, pool_title, generated_at, complete, notes, devices } = report;
  const { bold, yellow, dim } = style.colors;
  const when = `${generated_at.slice(0, 16).replace("T", " ")} UTC`;
  const facts = [
    countText(devices.counted, "device"),
    `${numberText(devices.seen_within_7_days)} seen within 7 days`,
    `${numberText(devices.seen_within_30_days)} within 30 days`,
    `read ${when}`,
    ...(pool_title === null ? [] : [escapeText(pool_id)]),
  ];
  const heading = "Devices of pool ";
  return [
    bold(heading + style.isolate(cutText(escapeText(pool_title ?? pool_id), width - heading.length))),
    ...wrap(facts.join(SEPARATOR), width),
    ...(complete ? [] : [bold(yellow("INCOMPLETE: not all of the devices are in these numbers"))]),
    ...notes.flatMap((note) => wrap(`note: ${escapeText(note)}`, width).map(dim)),
  ];
}

function tallySections(report: Report, width: number, style: TextStyle): string[][] {
  const whole = report.devices.counted;
  const named = (code: string) => `${code} ${countryName(code)}`;
  const lists: [BarList, BarList][] = [
    [
      { title: "Status", tally: report.status, whole, most: 5 },
      { title: "Session type", tally: report.session_type, whole, most: 5 },
    ],
    [
      { title: "Countries, last seen", tally: report.countries.last_seen, whole, most: 8, name: named },
      { title: "Countries, first seen", tally: report.countries.first_seen, whole, most: 8, name: named },
    ],
    [
      { title: "Networks, last seen", tally: report.networks, whole, most: 8 },
      { title: "Clients", tally: report.clients, whole, most: 8 },
    ],
  ];
  if (width < TWO_COLUMNS) return lists.flat().map((list) => barLines(list, width, style));
  const half = Math.floor((width - GAP) / 2);
  return lists.map(([left, right]) => sideBySide(barLines(left, half, style), barLines(right, half, style), half, GAP));
}

function timeLines({ first_seen, last_seen }: Report, width: number, style: TextStyle): string[] {
  const label = 12;
  const room = Math.max(10, width - label);
  const bins = timeBins(first_seen, last_seen, room);
  if (bins === undefined) return [style.heading("Seen over time"), "no device has a time when it was seen"];
  const { dim } = style.colors;
  const from = binName(bins.unit, bins.starts[0] ?? "");
  const to = binName(bins.unit, bins.starts.at(-1) ?? "");
  const line = (name: string, counts: readonly number[], unknown: number) => {
    const most = Math.max(...counts);
    const peak = bins.starts[counts.indexOf(most)] ?? "";
    const peakText = `most: ${numberText(most)} in ${binName(bins.unit, peak)}${unknown > 0 ? `; unknown: ${numberText(unknown)}` : ""}`;
    return [
      `${name.padEnd(label)}${style.colors.cyan(style.spark(counts, room))}`,
      ...wrap(peakText, room).map((part) => " ".repeat(label) + dim(part)),
    ];
  };
  return [
    style.heading("Seen over time"),
    dim(bins.starts.length === 1 ? `one ${bins.unit}: ${from}` : `by ${bins.unit}, ${from} to ${to}`),
    ...line("first seen", bins.first_seen, first_seen.unknown),
    ...line("last seen", bins.last_seen, last_seen.unknown),
  ];
}

function findingLines({ findings }: Report, width: number, style: TextStyle): string[] {
  const found = findings.filter(({ count }) => count > 0);
  const clear = findings.filter(({ count }) => count === 0);
  return [
    style.heading("Findings"),
    ...(found.length === 0 ? ["none"] : []),
    ...found.flatMap((finding) => [...oneFinding(finding, width, style), ""]),
    ...clear.flatMap((finding) =>
      wrap(`not found: ${finding.title}${notJudged(finding)}`, width).map(style.colors.dim),
    ),
  ];
}

function oneFinding(finding: Finding, width: number, { colors, isolate }: TextStyle): string[] {
  const { title, why, action, count } = finding;
  const examples = finding.examples.slice(0, MOST_EXAMPLES);
  const indent = "  ";
  const room = width - indent.length;
  const idWidth = Math.min(Math.floor(room / 2), Math.max(0, ...examples.map(({ id }) => textWidth(escapeText(id)))));
  const heading = `${title}: ${countText(count, "device")}, ${activeText(finding)}${notJudged(finding)}`;
  const shown = examples.map(({ id, title, client, country, detail }) => {
    const cut = cutText(escapeText(id), idWidth);
    const named = cutText(escapeText(title ?? ""), WIDEST_TITLE);
    const facts = [named, escapeText(client ?? ""), country ?? "", escapeText(detail)].filter((fact) => fact !== "");
    // Cut first: a cut must not lose the character that ends an isolation.
    const rest = cutText(facts.join(SEPARATOR), room - idWidth - 2)
      .split(SEPARATOR)
      .map(isolate)
      .join(SEPARATOR);
    return `${indent}${isolate(cut)}${" ".repeat(idWidth - textWidth(cut) + 2)}${colors.dim(rest)}`.trimEnd();
  });
  const more = count - examples.length;
  return [
    ...wrap(heading, width).map((line) => colors.bold(colors.yellow(line))),
    ...wrap(why, room).map((line) => indent + line),
    ...wrap(`What to do: ${action}`, room).map((line) => indent + line),
    ...shown,
    ...(more > 0 ? [`${indent}${colors.dim(`… and ${numberText(more)} more`)}`] : []),
  ];
}

function notJudged({ not_judged, judged }: Finding): string {
  if (not_judged === 0) return "";
  return ` (${numberText(not_judged)} of ${numberText(judged + not_judged)} lack the data to check)`;
}
