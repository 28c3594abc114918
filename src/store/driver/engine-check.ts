import { AgentAuthError } from "../../errors.js";
import type { StoreDriver } from "./driver.js";

/**
 * A check of the engine before the first save: what an engine evicts when its memory is full must not be a login. An
 * engine that does not report its health is used: a managed one may forbid that.
 *
 * @returns a function that throws `AgentAuthError` `store_unsafe` while the engine must not be used
 */
export function engineCheck(driver: StoreDriver): () => Promise<void> {
  let isSafe = driver.health === undefined;
  return async () => {
    if (isSafe) return;
    const health = await driver.health?.().catch(() => undefined);
    const errors = health?.errors ?? [];
    if (errors.length > 0) {
      const message = `the engine ${driver.location} must not hold logins: ${errors.join("; ")}`;
      throw new AgentAuthError("store_unsafe", message, { class: "store" });
    }
    isSafe = true;
  };
}
