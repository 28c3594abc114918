// Stress test of logins that many machines share, with real processes and real engines, against an issuer that accepts
// every refresh token once: node scripts/fleet.mjs [--long] [--only <scenario>] [--each <n>] [--seed <n>] [--write]
// Exits with 1 at the first broken invariant. It starts redis-server and PostgreSQL of Debian by itself.
import { clocks } from "./stress/engines/clocks.mjs";
import { connections } from "./stress/engines/connections.mjs";
import { dump } from "./stress/engines/dump.mjs";
import { engineKills } from "./stress/engines/engine-kills.mjs";
import { failover } from "./stress/engines/failover.mjs";
import { contention } from "./stress/engines/faults/contention.mjs";
import { jumps } from "./stress/engines/faults/jumps.mjs";
import { forgotten, partitions, waits } from "./stress/engines/faults/partitions.mjs";
import { refusals } from "./stress/engines/faults/refusals.mjs";
import { rollbacks } from "./stress/engines/faults/rollbacks.mjs";
import { kills } from "./stress/engines/kills.mjs";
import { latency } from "./stress/engines/latency.mjs";
import { peers } from "./stress/engines/peers.mjs";
import { race } from "./stress/engines/race.mjs";
import { stops } from "./stress/engines/stops.mjs";
import { runScenarios } from "./stress/runner.mjs";

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
  mark: "fleet-",
  needsAll: process.env.CI === "true",
  writesShort: true,
});
