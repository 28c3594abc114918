import { isAgentAuthError } from "../../../errors.js";
import { type EngineReport, engineReport } from "../../../profile/engine/health.js";
import { type EngineHost, type EngineStore, openEngine } from "../../../profile/engine/open-engine.js";
import { isEngine, type StoreChoice } from "../../../profile/store-choice.js";
import { quote } from "../../../redact.js";
import { type Check, type Finding, failed, ok, skipped, warning } from "./check.js";

const CLOCK_SLACK_MS = 10_000;

/** The checks of a store in an engine, in the place of those of files; undefined for another store. */
export function engineChecks(
  choice: StoreChoice | undefined,
  profile: string,
  host: EngineHost,
  signal: AbortSignal,
): Check[] | undefined {
  if (choice === undefined || !isEngine(choice.value)) return undefined;
  const { value, source, engine: settings } = choice;
  let opened: EngineStore | undefined;
  const engine = () => {
    opened ??= openEngine(value, settings, host);
    return opened;
  };
  let report: Promise<EngineReport> | undefined;
  const look = () => {
    report ??= (async () => engineReport(engine(), signal))();
    return report;
  };
  const check = (name: string, run: Check["run"]): Check => ({ name, area: "store", run });
  return [
    check("store", async () => {
      const { store } = engine();
      const all = await store.list();
      const own = all.filter((login) => login.profile === profile).length;
      const other = all.length === own ? "" : `, ${all.length - own} of other profiles`;
      return ok(
        `${value} (${source}): ${own} login${own === 1 ? "" : "s"} of profile ${quote(profile)}${other}, in ${store.location}`,
      );
    }),
    check("engine", async () => engineFinding(await look())),
    check("engine clock", async () => clockFinding((await look()).clock_ahead_ms)),
    check("key ring", async () => keyFinding(await afterEngine(look))),
  ];
}

/** An engine that does not answer is one failure, not two. */
async function afterEngine(look: () => Promise<EngineReport>): Promise<EngineReport | undefined> {
  return look().catch((error) => {
    if (isAgentAuthError(error) && error.class === "unavailable") return undefined;
    throw error;
  });
}

function engineFinding({ facts, risks, errors }: EngineReport): Finding {
  const shown = Object.entries(facts)
    .map(([name, value]) => `${name} ${value}`)
    .join(", ");
  if (errors.length > 0) return failed(`${errors.join("; ")} (${shown})`, "correct the settings of the engine");
  if (risks.length > 0) return warning(`${risks.join("; ")} (${shown})`, "agentauth store health");
  return ok(shown);
}

function clockFinding(aheadMs: number): Finding {
  const found = `the clock of this machine is ${Math.abs(aheadMs)} ms ${aheadMs < 0 ? "behind" : "ahead of"} the engine's`;
  return Math.abs(aheadMs) < CLOCK_SLACK_MS ? ok(found) : warning(found, "synchronize both clocks");
}

function keyFinding(report: EngineReport | undefined): Finding {
  if (report === undefined) return skipped("the engine does not answer");
  const { current_key: current, keys, keys_in_use: used } = report;
  if (current === null) return warning("store_keys is none: logins are not sealed", "agentauth store keys <path>");
  const uses = used.map(({ key, records }) => `${records} with ${quote(key)}`).join(", ");
  const found = `seals with ${quote(current)}; records: ${uses === "" ? "none" : uses}`;
  if (used.some(({ key }) => !keys.includes(key))) return failed(found, "add the missing keys to store_keys");
  return used.some(({ key }) => key !== current) ? warning(found, "agentauth store reseal") : ok(found);
}
