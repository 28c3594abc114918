// Draws lines of a terminal as SVG: text that can be selected and read aloud, without any script.

const CELL = { width: 8.4, height: 19 };
const PADDING = 16;
const TITLE_BAR = 30;

export const THEMES = {
  light: {
    background: "#ffffff",
    frame: "#d0d7de",
    text: "#1f2328",
    dim: "#59636e",
    colors: ["#1f2328", "#cf222e", "#116329", "#7d4e00", "#0550ae", "#8250df", "#1b7c83", "#59636e"],
  },
  dark: {
    background: "#0d1117",
    frame: "#3d444d",
    text: "#f0f6fc",
    dim: "#9198a1",
    colors: ["#656c76", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#f0f6fc"],
  },
};

/** The picture of lines that are runs of one style. */
export function svgOf(lines, columns, title, theme) {
  const width = Math.ceil(columns * CELL.width + 2 * PADDING);
  const height = lines.length * CELL.height + 2 * PADDING + TITLE_BAR;
  const rows = lines.map((runs, row) => {
    const y = TITLE_BAR + PADDING + (row + 0.75) * CELL.height;
    return `<text y="${y}">${runs.flatMap((run) => spanOf(run, theme)).join("")}</text>`;
  });
  const dots = [0, 1, 2].map((nth) => `<circle cx="${20 + nth * 18}" cy="16" r="5" fill="${theme.frame}"/>`);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<rect x="0.5" y="0.5" width="${width - 1}" height="${height - 1}" rx="8" fill="${theme.background}" stroke="${theme.frame}"/>`,
    ...dots,
    `<g font-family="ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace" font-size="14" fill="${theme.text}">`,
    ...rows,
    "</g>",
    "</svg>",
    "",
  ].join("\n");
}

/** The lines of text of a picture, without styles and places. */
export function textOf(svg) {
  const rows = [...svg.matchAll(/^<text y="[\d.]+">(.*)<\/text>$/gm)];
  return rows.map(([, row]) => {
    let line = "";
    for (const [, x, text] of row.matchAll(/<tspan x="([\d.]+)"[^>]*>([^<]*)<\/tspan>/g)) {
      const column = Math.round((Number(x) - PADDING) / CELL.width);
      line = line.padEnd(column) + text.replace(/&(lt|gt|amp);/g, (_, name) => ({ lt: "<", gt: ">", amp: "&" })[name]);
    }
    return line.trimEnd();
  });
}

/** A run's words, each in its columns: SVG collapses spaces. */
function spanOf({ text, column, width, color, isBold, isDim }, theme) {
  const fill = color === undefined ? (isDim ? theme.dim : undefined) : theme.colors[color % 8];
  const style = `${fill === undefined ? "" : ` fill="${fill}"`}${isBold ? ' font-weight="bold"' : ""}`;
  const words = [...text.matchAll(/\S+(?: \S+)*/g)];
  return words.map(({ 0: word, index }) => {
    const x = (PADDING + (column + index) * CELL.width).toFixed(1);
    const length = ((text.length === word.length ? width : word.length) * CELL.width).toFixed(1);
    return `<tspan x="${x}" textLength="${length}" lengthAdjust="spacingAndGlyphs"${style}>${escaped(word)}</tspan>`;
  });
}

function escaped(text) {
  return text.replace(/[<>&]/g, (one) => ({ "<": "&lt;", ">": "&gt;", "&": "&amp;" })[one]);
}
