import { BarChart, LinesChart, ScatterChart } from "echarts/charts";
import { GeoComponent, GridComponent } from "echarts/components";
import { type EChartsCoreOption, init, use } from "echarts/core";
import { SVGRenderer } from "echarts/renderers";
import { html, type Markup, trusted } from "./markup.js";

use([BarChart, LinesChart, ScatterChart, GeoComponent, GridComponent, SVGRenderer]);

/** A picture with its text alternative. */
export interface Picture {
  /** Unique within the page. */
  id: string;
  title: string;
  description: string;
  width: number;
  height: number;
  className: string;
}

/**
 * Draws a chart as SVG for a page without scripts and inline styles.
 *
 * @param option must contain no text from the service; colours are the page's custom properties
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
    // Its timer would keep the process alive.
    chart.dispose();
  }
}

/** Removes attributes for scripts, and style attributes, which the page's policy forbids. */
function clean(svg: string): string {
  return (
    svg
      .replace(/<style.*?<\/style>/gs, "")
      .replace(/ (?:class|style|pointer-events|ecmeta_\w+|xml:space|paint-order)="[^"]*"/g, "")
      // Circles are arcs of radius 1, which rounding would distort.
      .replace(/ d="([^"A]*)"/g, (_, path: string) => ` d="${path.replace(/\d+\.\d+/g, roundedText)}"`)
      .replaceAll("></path>", "/>")
      .replace(/\n+/g, "\n")
  );
}

function roundedText(number: string): string {
  return String(Math.round(Number(number) * 10) / 10);
}
