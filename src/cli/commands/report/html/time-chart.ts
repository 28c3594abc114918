import { numberText } from "../numbers.js";
import { type BinUnit, binName } from "../time-bins.js";
import { html, type Markup } from "./markup.js";
import { drawPicture, rounded } from "./svg.js";

/** One series of counts over time. */
export interface TimeChart {
  id: string;
  title: string;
  unit: BinUnit;
  starts: readonly string[];
  counts: readonly number[];
  /** A colour of the page: the name of a custom property. */
  color: string;
}

/** The same chart for wide and for narrow screens, since text must not shrink; the page shows one of them. */
const SIZES = [
  { className: "chart wide", suffix: "wide", width: 500, height: 200, labels: 6 },
  { className: "chart narrow", suffix: "narrow", width: 330, height: 180, labels: 3 },
] as const;

/** Pixels around the bars, where the labels are. */
const MARGIN = { right: 8, top: 18, bottom: 28 };
const LABEL = { left: 3, digit: 6.72, comma: 3.36, gap: 8, below: 12, halfHeight: 6 };
const BAR = { share: 0.8, widest: 28, radius: 2 };
/** About how many lines there are above the axis. */
const LINES = 3;

/** Draws one bar for each stretch of time. */
export function timeChart(chart: TimeChart): Markup[] {
  return SIZES.map(({ suffix, labels, ...size }) => {
    const { id, title } = chart;
    const picture = { ...size, id: `${id}-${suffix}`, title, description: describe(chart) };
    const values = valuesOf(chart.counts);
    const plot = plotOf(size, values);
    return drawPicture(picture, [...axis(values, plot), ...names(chart, labels, plot), ...bars(chart, plot)]);
  });
}

function describe({ unit, starts, counts }: TimeChart): string {
  const most = Math.max(...counts);
  const [from, to, peak] = [starts[0], starts.at(-1), starts[counts.indexOf(most)]].map((start) =>
    binName(unit, start ?? ""),
  );
  return `Bars by ${unit} from ${from} to ${to}; the most, ${numberText(most)}, in ${peak}.`;
}

/** The values of the lines: none, and multiples of a round number up to the largest count or beyond. */
function valuesOf(counts: readonly number[]): number[] {
  const most = Math.max(1, ...counts);
  const exact = most / LINES;
  const power = 10 ** Math.floor(Math.log10(exact));
  const digit = exact / power;
  const round = digit < 1.5 ? 1 : digit < 2.5 ? 2 : digit < 4 ? 3 : digit < 7 ? 5 : 10;
  const step = Math.max(1, round * power);
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, index) => index * step);
}

/** The area of the bars. */
interface Plot {
  left: number;
  right: number;
  bottom: number;
  /** The height of a value. */
  y(value: number): number;
}

function plotOf({ width, height }: { width: number; height: number }, values: readonly number[]): Plot {
  const left = 4 + LABEL.left + Math.max(...values.map((value) => widthOf(numberText(value)))) + LABEL.gap;
  const bottom = height - MARGIN.bottom;
  const most = values.at(-1) ?? 1;
  return { left, right: width - MARGIN.right, bottom, y: (value) => bottom - (value / most) * (bottom - MARGIN.top) };
}

/** The width of a number in the font of the page, about. */
function widthOf(number: string): number {
  return [...number].reduce((sum, character) => sum + (character === "," ? LABEL.comma : LABEL.digit), 0);
}

function axis(values: readonly number[], { left, right, bottom, y }: Plot): Markup[] {
  // On half a pixel, where a line is sharp.
  const line = (at: number) => `M${rounded(left)} ${Math.floor(at) + 0.5}L${right} ${Math.floor(at) + 0.5}`;
  const edge = html`<path d="${line(bottom)}" fill="none" stroke="var(--edge)" stroke-linecap="round"/>`;
  const x = rounded(left - LABEL.gap);
  return [
    ...values.map((value) => html`<path d="${line(y(value))}" fill="none" stroke="var(--line)"/>`),
    edge,
    ...values.map((value) => label("end", x, rounded(y(value)), numberText(value))),
  ];
}

function names({ unit, starts }: TimeChart, labels: number, { left, right, bottom }: Plot): Markup[] {
  const step = Math.max(1, Math.ceil(starts.length / labels));
  const band = (right - left) / starts.length;
  const y = bottom + LABEL.below + LABEL.halfHeight;
  return starts.flatMap((start, index) => {
    if (index % step !== 0 || index > starts.length - step / 2) return [];
    return [label("middle", rounded(left + (index + 0.5) * band), y, labelOf(unit, start))];
  });
}

function label(anchor: "end" | "middle", x: number, y: number, text: string): Markup {
  return html`<text dominant-baseline="central" text-anchor="${anchor}" x="${x}" y="${y}" fill="var(--dim)">${text}</text>`;
}

function bars({ counts, color }: TimeChart, { left, right, bottom, y }: Plot): Markup[] {
  const band = (right - left) / counts.length;
  const width = Math.min(BAR.widest, band * BAR.share);
  return counts.flatMap((count, index) => {
    if (count === 0) return [];
    const x = left + (index + 0.5) * band - width / 2;
    const top = y(count);
    const radius = Math.min(BAR.radius, bottom - top, width / 2);
    const [x0, x1, y0, y1, r] = [x, x + width, top, top + radius, radius].map(rounded);
    const [from, to] = [x + radius, x + width - radius].map(rounded);
    const path = `M${from} ${y0}L${to} ${y0}A${r} ${r} 0 0 1 ${x1} ${y1}L${x1} ${bottom}L${x0} ${bottom}L${x0} ${y1}A${r} ${r} 0 0 1 ${from} ${y0}Z`;
    return [html`<path d="${path}" fill="var(${color})"/>`];
  });
}

const monthAndYear = new Intl.DateTimeFormat("en", { month: "short", year: "numeric", timeZone: "UTC" });
const dayAndMonth = new Intl.DateTimeFormat("en", { month: "short", day: "numeric", timeZone: "UTC" });

function labelOf(unit: BinUnit, start: string): string {
  if (unit === "month") return monthAndYear.format(new Date(start));
  if (unit === "day" || unit === "week") return dayAndMonth.format(new Date(start));
  return binName(unit, start);
}
