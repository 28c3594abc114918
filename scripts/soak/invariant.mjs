// What must hold. The first thing that does not ends the run.

/** What broke. */
export class Broken extends Error {
  name = "Broken";
}

/** @throws Broken unless it holds */
export function must(holds, text) {
  if (!holds) throw new Broken(typeof text === "function" ? text() : text);
}

/**
 * Waits for a condition, however long the machine takes within reason.
 *
 * @param condition returns something truthy when it holds
 * @returns this value
 */
export async function until(condition, what, patience = 120_000) {
  const end = Date.now() + patience;
  for (;;) {
    const given = await condition();
    if (given) return given;
    must(Date.now() < end, () => `waited ${patience / 1000} s in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
}
