/** The widths of the columns of a table on a terminal. */

/** The blanks between two columns. */
export const GAP = 2;

/** The widths of a column: `natural` shows every cell whole, `minimum` is the least useful one. */
export interface ColumnWidths {
  natural: number;
  minimum: number;
}

/** The widths of the columns; `undefined` if they do not all fit. */
export function fitColumns(columnWidths: readonly ColumnWidths[], available: number): number[] | undefined {
  const least = columnWidths.map(({ minimum }) => minimum);
  if (total(least) > available) return undefined;
  return growColumns(
    least,
    columnWidths.map(({ natural }) => natural),
    available,
  );
}

/** Distributes the remaining space to the columns that need more, the narrowest first. */
export function growColumns(widths: readonly number[], natural: readonly number[], available: number): number[] {
  const wanted = widths.map((width, index) => Math.max(width, natural[index] ?? 0));
  if (total(wanted) <= available) return wanted;
  const grown = [...widths];
  for (let spare = available - total(widths); spare > 0; spare -= 1) {
    const needy = grown.reduce<number | undefined>((best, width, index) => {
      if (width >= (wanted[index] ?? 0)) return best;
      return best === undefined || width < (grown[best] ?? 0) ? index : best;
    }, undefined);
    if (needy === undefined) break;
    grown[needy] = (grown[needy] ?? 0) + 1;
  }
  return grown;
}

function total(widths: readonly number[]): number {
  return widths.reduce((sum, width) => sum + width, 0) + GAP * Math.max(0, widths.length - 1);
}
