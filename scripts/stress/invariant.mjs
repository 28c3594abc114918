// Invariants. The first broken one ends the run.

/** A broken invariant. */
export class Broken extends Error {
  name = "Broken";
}

/** @throws Broken unless the condition holds */
export function must(holds, text) {
  if (!holds) throw new Broken(typeof text === "function" ? text() : text);
}

/**
 * Waits for a condition.
 *
 * @param condition returns something truthy when it holds
 * @returns this value
 */
export async function until(condition, what, patience = 120_000) {
  const end = Date.now() + patience;
  for (;;) {
    const given = await condition();
    if (given) return given;
    must(Date.now() < end, () => `timed out after ${patience / 1000} s waiting for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
