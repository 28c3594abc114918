import { isAgentAuthError } from "../../../errors.js";
import type { EngineReport } from "../../../profile/engine/health.js";
import type { EngineStore } from "../../../profile/engine/open-engine.js";
import type { StoreChoice } from "../../../profile/store-choice.js";
import { quote } from "../../../redact.js";
import { type Finding, failed, ok, skipped, warning } from "./check.js";
import { loginCount } from "./store-checks.js";

const CLOCK_SLACK_MS = 10_000;

/** Reads what the engine reports; it may throw. */
type ReadReport = () => Promise<EngineReport>;

/** The number of logins in an engine. */
export async function checkEngineStore(
  { store }: EngineStore,
  { value, source }: StoreChoice,
  profile: string,
): Promise<Finding> {
  return ok(`${value} (${source}): ${loginCount(await store.list(), profile)}, in ${store.location}`);
}

/** The facts that an engine reports, and what is wrong with them. */
export async function checkEngine(report: ReadReport): Promise<Finding> {
  const { facts, risks, errors } = await report();
  const shown = Object.entries(facts)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");
  if (errors.length > 0) return failed(`${errors.join("; ")} (${shown})`, "correct the settings of the engine");
  if (risks.length > 0) return warning(`${risks.join("; ")} (${shown})`, "agentauth store health");
  return ok(shown);
}

/** The difference between this machine's clock and the engine's. */
export async function checkEngineClock(report: ReadReport): Promise<Finding> {
  const { clock_ahead_ms: aheadMs } = await report();
  const found = `the clock of this machine is ${Math.abs(aheadMs)} ms ${aheadMs < 0 ? "behind" : "ahead of"} the engine's`;
  return Math.abs(aheadMs) < CLOCK_SLACK_MS ? ok(found) : warning(found, "synchronize both clocks");
}

/** Whether the key ring has the keys of all records. An engine that does not answer is no failure of the keys. */
export async function checkKeyRing(report: ReadReport): Promise<Finding> {
  const known = await report().catch((error) => {
    if (isAgentAuthError(error) && error.class === "unavailable") return undefined;
    throw error;
  });
  if (known === undefined) return skipped("the engine does not answer");
  const { current_key: current, keys, keys_in_use: used } = known;
  if (current === null) return warning("store_keys is none: logins are not sealed", "agentauth store keys <path>");
  const uses = used.map(({ key, records }) => `${records} with ${quote(key)}`).join(", ");
  const found = `seals with ${quote(current)}; records: ${uses === "" ? "none" : uses}`;
  if (used.some(({ key }) => !keys.includes(key))) return failed(found, "add the missing keys to store_keys");
  return used.some(({ key }) => key !== current) ? warning(found, "agentauth store reseal") : ok(found);
}
