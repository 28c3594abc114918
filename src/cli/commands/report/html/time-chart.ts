import type { EChartsCoreOption } from "echarts/core";
import { numberText } from "../numbers.js";
import { type BinUnit, binName } from "../time-bins.js";
import type { Markup } from "./markup.js";
import { drawChart } from "./svg.js";

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

/** Draws one bar for each stretch of time. */
export function timeChart(chart: TimeChart): Markup[] {
  return SIZES.map(({ suffix, labels, ...size }) => {
    const { id, title } = chart;
    const picture = { ...size, id: `${id}-${suffix}`, title, description: describe(chart) };
    return drawChart(picture, chartOption(chart, labels));
  });
}

function describe({ unit, starts, counts }: TimeChart): string {
  const most = Math.max(...counts);
  const [from, to, peak] = [starts[0], starts.at(-1), starts[counts.indexOf(most)]].map((start) =>
    binName(unit, start ?? ""),
  );
  return `Bars by ${unit} from ${from} to ${to}; the most, ${numberText(most)}, in ${peak}.`;
}

function chartOption({ unit, starts, counts, color }: TimeChart, labels: number): EChartsCoreOption {
  const step = Math.max(1, Math.ceil(starts.length / labels));
  const text = { color: "var(--dim)", fontSize: 12 };
  return {
    grid: { left: 4, right: 8, top: 12, bottom: 4, outerBoundsMode: "same", outerBoundsContain: "axisLabel" },
    xAxis: {
      type: "category",
      data: starts.map((start) => labelOf(unit, start)),
      axisTick: { show: false },
      axisLine: { lineStyle: { color: "var(--edge)" } },
      axisLabel: {
        ...text,
        margin: 12,
        interval: (index: number) => index % step === 0 && index <= starts.length - step / 2,
      },
    },
    yAxis: {
      type: "value",
      minInterval: 1,
      splitNumber: 3,
      axisLabel: { ...text, formatter: numberText },
      splitLine: { lineStyle: { color: "var(--line)" } },
    },
    series: [
      {
        type: "bar",
        data: [...counts],
        barCategoryGap: "20%",
        barMaxWidth: 28,
        itemStyle: { color: `var(${color})`, borderRadius: [2, 2, 0, 0] },
        silent: true,
      },
    ],
  };
}

const monthAndYear = new Intl.DateTimeFormat("en", { month: "short", year: "numeric", timeZone: "UTC" });
const dayAndMonth = new Intl.DateTimeFormat("en", { month: "short", day: "numeric", timeZone: "UTC" });

function labelOf(unit: BinUnit, start: string): string {
  if (unit === "month") return monthAndYear.format(new Date(start));
  if (unit === "day" || unit === "week") return dayAndMonth.format(new Date(start));
  return binName(unit, start);
}
