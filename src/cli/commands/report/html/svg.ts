import { BarChart, LinesChart, ScatterChart } from "echarts/charts";
import { GeoComponent, GridComponent } from "echarts/components";
import { type EChartsCoreOption, init, use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import { html, type Markup, trusted } from "./markup.js";

use([BarChart, LinesChart, ScatterChart, GeoComponent, GridComponent, SVGRenderer]);

/** A picture and what it says in words. */
export interface Picture {
  /** Of all pictures of a page, only this one has it. */
  id: string;
  title: string;
  description: string;
  width: number;
  height: number;
  className: string;
}

/**
 * Draws a chart as SVG that a page without scripts and inline styles can hold.
 *
 * @param option nothing of it may be text of the service's; colours are the page's custom properties
 */
export function drawChart(
  { id, title, description, width, height, className }: Picture,
  option: EChartsCoreOption,
): Markup {
  const chart = init(null, null, { renderer: "svg", ssr: true, width, height });
  try {
    chart.setOption({ animation: false, ...option });
    const drawn = chart.renderToSVGString({ useViewBox: true });
    const content = drawn.slice(drawn.indexOf(">") + 1, drawn.lastIndexOf("</svg>"));
    return html`<svg class="${className}" viewBox="0 0 ${width} ${height}" role="img" aria-labelledby="${id}-title ${id}-text"><title id="${id}-title">${title}</title><desc id="${id}-text">${description}</desc>${trusted(clean(content))}</svg>`;
  } finally {
    // It keeps a timer, which would keep the process.
    chart.dispose();
  }
}

/** Without what only a script would read, and without style attributes, which the page's policy forbids. */
function clean(svg: string): string {
  return (
    svg
      .replace(/<style.*?<\/style>/gs, "")
      .replace(/ (?:class|style|pointer-events|ecmeta_\w+|xml:space|paint-order)="[^"]*"/g, "")
      // Circles are drawn as arcs of radius 1, which rounding would spoil.
      .replace(/ d="([^"A]*)"/g, (_, path: string) => ` d="${path.replace(/\d+\.\d+/g, roundedText)}"`)
      .replaceAll("></path>", "/>")
      .replace(/\n+/g, "\n")
  );
}

function roundedText(number: string): string {
  return String(Math.round(Number(number) * 10) / 10);
}
