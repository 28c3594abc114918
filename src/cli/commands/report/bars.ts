import { escapeText } from "../../../redact.js";
import { cutText, textWidth } from "../../io/width.js";
import type { Tally } from "./model.js";
import { countText, numberText, shareText } from "./numbers.js";
import type { TextStyle } from "./text-style.js";

/** A list of values with a bar for each. */
export interface BarList {
  title: string;
  tally: Tally;
  /** The total for the shares. */
  whole: number;
  /** Values to show at the most. */
  most: number;
  /** The label of a value; default: the value. */
  name?(value: string): string;
}

interface Row {
  label: string;
  count: number;
  isDim: boolean;
}

const SHORTEST_BAR = 4;

/** A heading, and one line per value: its name, bar, count and share. No line is wider than `width`. */
export function barLines({ title, tally, whole, most, name }: BarList, width: number, style: TextStyle): string[] {
  const rows = rowsOf(tally, most, name);
  const counts = rows.map(({ count }) => numberText(count));
  const shares = rows.map(({ count }) => shareText(count, whole));
  const countWidth = Math.max(...counts.map(textWidth));
  const shareWidth = 4;
  const fixed = countWidth + shareWidth + 3;
  const longest = Math.max(...rows.map(({ label }) => textWidth(label)));
  const labelWidth = Math.max(4, Math.min(longest, Math.floor(width * 0.42), width - fixed - SHORTEST_BAR));
  const barWidth = Math.max(0, width - labelWidth - fixed);
  // A row that sums up many values would make the other bars too short to compare.
  const greatest = Math.max(1, ...rows.filter(({ isDim }) => !isDim).map(({ count }) => count));
  const lines = rows.map(({ label, count, isDim }, index) => {
    const bar = isDim ? "" : style.bar(count / greatest, barWidth);
    const cut = cutText(label, labelWidth);
    return [
      isDim ? style.colors.dim(cut) : style.isolate(cut),
      " ".repeat(labelWidth - textWidth(cut) + 1),
      bar === "" ? "" : style.colors.cyan(bar),
      " ".repeat(barWidth - bar.length + 1 + countWidth - (counts[index] ?? "").length),
      counts[index],
      style.colors.dim((shares[index] ?? "").padStart(shareWidth + 1)),
    ].join("");
  });
  return [style.heading(title), ...lines];
}

function rowsOf(tally: Tally, most: number, name = (value: string) => value): Row[] {
  const { top, distinct, others, unknown, uncounted } = tally;
  const rows = top
    .slice(0, most)
    .map(({ value, count }): Row => ({ label: escapeText(name(value)), count, isDim: false }));
  const hidden = distinct - rows.length;
  const inHidden = top.slice(most).reduce((sum, { count }) => sum + count, others);
  if (hidden > 0) rows.push({ label: countText(hidden, "other"), count: inHidden, isDim: true });
  if (unknown > 0) rows.push({ label: "unknown", count: unknown, isDim: true });
  if (uncounted > 0) rows.push({ label: "not counted", count: uncounted, isDim: true });
  return rows.length > 0 ? rows : [{ label: "none", count: 0, isDim: true }];
}
