// Stress test of refreshes with real processes, files and sockets, against an issuer that accepts every refresh token
// once: node scripts/soak.mjs [--long] [--only <scenario>] [--seed <n>] [--write]
// Exits with 1 at the first broken invariant.
import { fileURLToPath } from "node:url";
import { claims } from "./soak/claims.mjs";
import { faults } from "./soak/faults.mjs";
import { kills } from "./soak/kills.mjs";
import { namespaces } from "./soak/namespaces.mjs";
import { race } from "./soak/race.mjs";
import { runScenarios } from "./soak/runner.mjs";
import { stops } from "./soak/stops.mjs";

await runScenarios({
  script: "soak",
  // Scenarios that need the whole machine run alone; those that mostly wait run concurrently.
  groups: [{ race }, { faults }, { kills }, { stops, claims, namespaces }],
  page: fileURLToPath(new URL("../docs/reliability-measurements.md", import.meta.url)),
});
