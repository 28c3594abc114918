// The figures that have a goal: the rows of docs/performance.md.

/**
 * A figure that must be at most its goal.
 *
 * @param what what is measured, and `against` what it is compared with
 * @param options.start whether the start of the process is in the figure
 */
export function atMost(what, against, value, goal, { unit = "×", start = false } = {}) {
  return { what, against, value: Number(value.toFixed(3)), goal, unit, start, isMet: value <= goal };
}

/** A figure that must be at least its goal; the same options. */
export function atLeast(what, against, value, goal, { unit = "×", start = false } = {}) {
  return { ...atMost(what, against, value, goal, { unit, start }), least: true, isMet: value >= goal };
}

/** A goal as text, such as `≤ 1.5×`. */
export function goalText({ goal, unit, least = false }) {
  return `${least ? "≥" : "≤"} ${withUnit(goal, unit)}`;
}

/** A measured value as text, such as `1.47×`. */
export function valueText({ value, unit, goal }) {
  const digits = Number.isInteger(goal) && unit === "" ? 0 : 2;
  return withUnit(value.toFixed(digits), unit);
}

function withUnit(value, unit) {
  return unit === "×" || unit === "" ? `${value}${unit}` : `${value} ${unit}`;
}
