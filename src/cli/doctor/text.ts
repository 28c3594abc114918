import { escapeText } from "../../redact.js";
import type { OutStream } from "../io.js";
import { shownCell } from "../output/table.js";
import { textWidth } from "../output/width.js";
import type { CheckResult, CheckState } from "./check.js";
import type { Report } from "./report.js";
import type { SettingRow } from "./rows.js";

/** The report for a person: one line a check with its hint below, then the settings. Everything in it is escaped. */
export function reportText(report: Report, colors: OutStream["colors"]): string {
  const head = `agentauth ${report.version}, Node ${report.node}, ${report.platform}`;
  return `${head}\n\n${checkLines(report.checks, colors)}\n${settingLines(report.settings, colors)}`;
}

const STATE_WIDTH = "warning".length;

function checkLines(checks: readonly CheckResult[], colors: OutStream["colors"]): string {
  const paint: Record<CheckState, (text: string) => string> = {
    ok: colors.green,
    warning: colors.yellow,
    failed: colors.red,
    skipped: colors.dim,
  };
  const width = widest(checks.map(({ name }) => name));
  const indent = " ".repeat(STATE_WIDTH + 2 + width + 2);
  return checks
    .map(({ name, state, found, hint }) => {
      const line = `${paint[state](state.padEnd(STATE_WIDTH))}  ${pad(name, width)}  ${escapeText(found)}\n`;
      return hint === undefined ? line : `${line}${indent}${colors.cyan("hint:")} ${escapeText(hint)}\n`;
    })
    .join("");
}

function settingLines(settings: readonly SettingRow[], colors: OutStream["colors"]): string {
  const rows = settings.map(({ name, value, source }) => [name, shownCell(value ?? ""), shownCell(source)] as const);
  const names = widest(["SETTING", ...rows.map(([name]) => name)]);
  const values = widest(["VALUE", ...rows.map(([, value]) => value)]);
  const line = ([name, value, source]: readonly [string, string, string]) =>
    `${pad(name, names)}  ${pad(value, values)}  ${source}\n`;
  return `${colors.bold(line(["SETTING", "VALUE", "FROM"]).trimEnd())}\n${rows.map(line).join("")}`;
}

function widest(texts: readonly string[]): number {
  return Math.max(0, ...texts.map(textWidth));
}

function pad(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - textWidth(text)));
}
