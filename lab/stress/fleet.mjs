// Stress test of logins that many machines share, with real processes and real engines, against an issuer that accepts
// every refresh token once: node lab/stress/fleet.mjs [--long] [--only <scenario>] [--each <n>] [--seed <n>] [--write]
// Exits with 1 at the first broken invariant. It starts redis-server and PostgreSQL of Debian by itself.
import { clocks } from "./engines/clocks.mjs";
import { connections } from "./engines/connections.mjs";
import { dump } from "./engines/dump.mjs";
import { engineKills } from "./engines/engine-kills.mjs";
import { failover } from "./engines/failover.mjs";
import { contention } from "./engines/faults/contention.mjs";
import { jumps } from "./engines/faults/jumps.mjs";
import { forgotten, partitions, waits } from "./engines/faults/partitions.mjs";
import { refusals } from "./engines/faults/refusals.mjs";
import { rollbacks } from "./engines/faults/rollbacks.mjs";
import { kills } from "./engines/kills.mjs";
import { latency } from "./engines/latency.mjs";
import { peers } from "./engines/peers.mjs";
import { race } from "./engines/race.mjs";
import { stops } from "./engines/stops.mjs";
import { runScenarios } from "./runner.mjs";

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
