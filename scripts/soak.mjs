// Stress test of refreshes with real processes, files and sockets, against an issuer that accepts every refresh token
// once: node scripts/soak.mjs [--long] [--only <scenario>] [--seed <n>] [--write]
// Exits with 1 at the first broken invariant.
import { claims } from "./stress/files/claims.mjs";
import { faults } from "./stress/files/faults.mjs";
import { kills } from "./stress/files/kills.mjs";
import { namespaces } from "./stress/files/namespaces.mjs";
import { race } from "./stress/files/race.mjs";
import { stops } from "./stress/files/stops.mjs";
import { runScenarios } from "./stress/runner.mjs";

await runScenarios({
  script: "soak",
  // Scenarios that need the whole machine run alone; those that mostly wait run concurrently.
  groups: [{ race }, { faults }, { kills }, { stops, claims, namespaces }],
});
