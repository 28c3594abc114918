// Stress test of logins that many machines share, with real processes and real engines, against an issuer that accepts
// every refresh token once: node scripts/fleet.mjs [--long] [--only <scenario>] [--each <n>] [--seed <n>] [--write]
// Exits with 1 at the first broken invariant. It starts redis-server and PostgreSQL of Debian by itself.
import { fileURLToPath } from "node:url";
import { clocks } from "./fleet/clocks.mjs";
import { connections } from "./fleet/connections.mjs";
import { dump } from "./fleet/dump.mjs";
import { engineKills } from "./fleet/engine-kills.mjs";
import { failover } from "./fleet/failover.mjs";
import { contention } from "./fleet/faults/contention.mjs";
import { jumps } from "./fleet/faults/jumps.mjs";
import { forgotten, partitions, waits } from "./fleet/faults/partitions.mjs";
import { refusals } from "./fleet/faults/refusals.mjs";
import { rollbacks } from "./fleet/faults/rollbacks.mjs";
import { kills } from "./fleet/kills.mjs";
import { latency } from "./fleet/latency.mjs";
import { peers } from "./fleet/peers.mjs";
import { race } from "./fleet/race.mjs";
import { stops } from "./fleet/stops.mjs";
import { runScenarios } from "./soak/runner.mjs";

await runScenarios({
  script: "fleet",
  // Scenarios that need the whole machine run alone; those that mostly wait run concurrently.
  groups: [
    { race },
    { latency },
    { connections },
    { kills, clocks, dump },
    { "engine-kills": engineKills, failover, stops },
    { partitions, forgotten, contention, jumps, refusals, rollbacks },
    { waits },
    { peers },
  ],
  // The first are installed first, over the network; in the other, processes wait for two minutes.
  optional: ["peers", "waits"],
  page: fileURLToPath(new URL("../docs/reliability-measurements.md", import.meta.url)),
  mark: "fleet-",
  needsAll: process.env.CI === "true",
  writesShort: true,
});
