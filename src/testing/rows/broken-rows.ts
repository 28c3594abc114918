import type { StoreDriver } from "../../store/driver/driver.js";
import { type Row, SOON_MS } from "../bench.js";
import { checkRejected, within } from "../check.js";
import { everyOperation } from "./call-rows.js";

/** How every operation fails if the engine does not answer. */
export const UNAVAILABLE = { code: "store_unavailable", class: "unavailable", retryable: true };

type OpenBroken = () => StoreDriver | Promise<StoreDriver>;

/** A row for each way in which an engine is broken. */
export function brokenRows(broken: Readonly<Record<string, OpenBroken>> = {}, timeoutMs: number): readonly Row[] {
  const rows = Object.entries(broken).map(([how, openBroken]) => ({
    name: `an engine that ${how} is store_unavailable`,
    run: async () => checkUnavailable(await openBroken(), timeoutMs),
  }));
  // It shows that the row is left out.
  const missing: Row = { name: "a broken engine is store_unavailable", needs: ["broken"], run: async () => {} };
  return rows.length > 0 ? rows : [missing];
}

/** Fails unless every operation fails with `store_unavailable` instead of waiting for ever. */
export async function checkUnavailable(driver: StoreDriver, timeoutMs: number): Promise<void> {
  const rule = (name: string) =>
    `${name} fails with store_unavailable within the timeout if the engine does not answer`;
  // All at once: they wait for the same timeout. The rest of the limit is for a busy machine.
  const operations = Object.entries(everyOperation(driver)).map(([name, operation]) =>
    within(timeoutMs + SOON_MS, rule(name), checkRejected(rule(name), operation(), UNAVAILABLE)),
  );
  await Promise.all(operations);
}
