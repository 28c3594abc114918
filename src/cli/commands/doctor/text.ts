import { escapeText, MASK, type Redactor } from "../../../redact.js";
import type { OutStream } from "../../io/io.js";
import { textWidth, wrap } from "../../io/width.js";
import { rowText, tableText } from "../../output/layout.js";
import { shownCell } from "../../output/table.js";
import type { CheckResult, CheckState } from "./check.js";
import type { SettingRow } from "./rows.js";

/** The report of `doctor`, as `-o json` prints it. It contains no secret. */
export interface DoctorReport {
  /** The version of this package. */
  version: string;
  /** The version of Node. */
  node: string;
  /** The system, its architecture and its release. */
  platform: string;
  /** In the order in which they were made. */
  checks: CheckResult[];
  /** The settings that a flag, a variable or a profile sets; with `--all` those by default too. */
  settings: SettingRow[];
}

// Error messages quote an invalid URL such as "user:pass@host", whose password has no known position.
const QUOTED_CREDENTIALS = /"[^"]*@[^"]*"/g;

/** The report with every known and every recognized secret masked. */
export function redactReport(report: DoctorReport, redactor: Pick<Redactor, "redact">): DoctorReport {
  const clean = (text: string) => redactor.redact(text).replace(QUOTED_CREDENTIALS, `"${MASK}"`);
  return JSON.parse(JSON.stringify(report), (_key, value) => (typeof value === "string" ? clean(value) : value));
}

/**
 * The report as text: the checks without a problem, the settings, and last what it warns of and what failed, which then is
 * what a terminal still shows. Each check is a line with its hint below. Everything in it is escaped.
 *
 * @param columns the width of the terminal; without it lines are not wrapped
 */
export async function doctorText(
  report: DoctorReport,
  colors: OutStream["colors"],
  columns = Number.POSITIVE_INFINITY,
): Promise<string> {
  const head = `agentauth ${report.version}, Node ${report.node}, ${report.platform}`;
  const lines = (...states: CheckState[]) => {
    const found = report.checks.filter(({ state }) => states.includes(state));
    return checkLines(found, longestWidth(report.checks.map(({ name }) => name)), colors, columns);
  };
  const settings = report.settings.length === 0 ? "" : await settingLines(report.settings, colors, columns);
  const parts = [
    `${wrap(head, columns).join("\n")}\n`,
    lines("ok", "skipped"),
    settings,
    lines("warning"),
    lines("failed"),
  ];
  return parts.filter((part) => part !== "").join("\n");
}

/** With less room than this beside the name, the finding goes below it. */
const LEAST_ROOM = 30;

const STATE_WIDTH = "warning".length;

function checkLines(
  checks: readonly CheckResult[],
  width: number,
  colors: OutStream["colors"],
  columns: number,
): string {
  const paint: Record<CheckState, (text: string) => string> = {
    ok: colors.green,
    warning: colors.yellow,
    failed: colors.red,
    skipped: colors.dim,
  };
  const beside = STATE_WIDTH + 2 + width + 2;
  const isBeside = columns - beside >= LEAST_ROOM;
  const indent = " ".repeat(isBeside ? beside : 2);
  const broken = (text: string) => wrap(escapeText(text), columns - indent.length).join(`\n${indent}`);
  return checks
    .map(({ name, state, found, hint }) => {
      const start = [paint[state](state.padEnd(STATE_WIDTH)), name];
      const line = isBeside
        ? rowText([...start, broken(found)], [STATE_WIDTH, width])
        : `${rowText(start, [])}\n${indent}${broken(found)}`;
      if (hint === undefined) return `${line}\n`;
      return `${line}\n${indent}${colors.cyan("hint:")}${broken(`hint: ${hint}`).slice("hint:".length)}\n`;
    })
    .join("");
}

async function settingLines(
  settings: readonly SettingRow[],
  colors: OutStream["colors"],
  columns: number,
): Promise<string> {
  const rows = settings.map(({ name, value, source }) => [name, shownCell(value ?? ""), shownCell(source)] as const);
  const table = await tableText([["SETTING", "VALUE", "SOURCE"], ...rows]);
  if (longestWidth(table.split("\n")) <= columns) return `${table.replace(/^.*/, colors.bold)}\n`;
  return rows
    .map(([name, value, source]) => `${wrap(`${name}: ${value} (${source})`, columns).join("\n  ")}\n`)
    .join("");
}

function longestWidth(texts: readonly string[]): number {
  return Math.max(0, ...texts.map(textWidth));
}
