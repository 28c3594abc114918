// Stress test of refreshes with real processes, files and sockets, against an issuer that accepts every refresh token
// once: node lab/stress/soak.mjs [--long] [--only <scenario>] [--seed <n>] [--write]
// Exits with 1 at the first broken invariant.
import { claims } from "./files/claims.mjs";
import { faults } from "./files/faults.mjs";
import { kills } from "./files/kills.mjs";
import { namespaces } from "./files/namespaces.mjs";
import { race } from "./files/race.mjs";
import { stops } from "./files/stops.mjs";
import { runScenarios } from "./runner.mjs";

await runScenarios({
  script: "soak",
  // Scenarios that need the whole machine run alone; those that mostly wait run concurrently.
  groups: [{ race }, { faults }, { kills }, { stops, claims, namespaces }],
});
