// Lists the ten test files that took longest in the last runs of both layers, with seconds, tests and why each is slow.
// Reads the reports that `npm test` and `npm run test:processes` write into coverage/;
// `node scripts/slow-tests.mjs <report> …` reads others.
import { existsSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

const SHOWN = 10;
/** Why files or folders are slow: the longest path that a file begins with applies. */
const REASONS = {
  "test/import-rules.test.ts": "runs dependency-cruiser on a tree for each rule",
  "test/hostile/tables.process.test.ts": "starts the program, with inputs of up to 600 MB",
  "test/api/contract.process.test.ts": "runs the code generators",
  "test/api/drift-tracker.test.ts": "reads hundreds of random lists that change",
  "test/api/listing-faults.test.ts": "reads hundreds of lists over real sockets, under random faults",
  "test/api/listing.test.ts": "reads hundreds of random lists",
  "test/broker/broker.process.test.ts": "refreshes a login 6,000 times at the sandbox",
  "test/cli/output": "prints every code point of Unicode in every format",
  "test/docs": "runs the commands of the documentation",
  "test/e2e/": "starts the program, often several times a test",
  "test/examples.process.test.ts": "runs every example as a process",
  "test/flow/": "runs the program, often several times a test, with a user who logs in",
  "test/flow/mcp-failures.test.ts": "waits 11 s for time limits of the MCP SDK, whose timers take no clock",
  "test/fuzz/": "tries thousands of random inputs",
  "test/generated-pages.test.ts": "runs the generators of the documentation",
  "test/hostile/": "runs the program against a hostile server once a row; rows wait for time limits of up to 4 s",
  "test/login/browser.process.test.ts": "starts browsers, and waits 3 s for one that does not exit",
  "test/oauth/flow/refresh-lease.process.test.ts": "starts processes that compete for one refresh",
  "test/oauth/login/shared-login.process.test.ts": "starts processes that wait for one login",
  "test/oauth/": "speaks to real loopback servers",
  "test/redact.test.ts": "escapes every code point of Unicode",
  "test/resource-server/dpop-proof.test.ts": "generates RSA keys of up to 4,097 bits",
  "test/resource-server/examples.process.test.ts": "runs every example as a process",
  "test/resource-server/": "generates keys and speaks to real loopback servers",
  "test/sandbox/management/management-api.test.ts": "lists a hundred thousand devices in every order",
  "test/sandbox/": "starts a sandbox with an authorization server for each test",
  "test/store/": "writes files with fsync, from several processes",
};

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const written = ["test-report.json", "process-report.json"]
  .map((name) => join(root, "coverage", name))
  .filter(existsSync);
const reports = process.argv.length > 2 ? process.argv.slice(2) : written;
const files = reports
  .flatMap((path) => JSON.parse(readFileSync(path, "utf8")).testResults)
  .map(({ name, startTime, endTime, assertionResults }) => ({
    path: relative(root, name),
    seconds: (endTime - startTime) / 1000,
    tests: assertionResults.length,
  }))
  .sort((a, b) => b.seconds - a.seconds);

for (const { path, seconds, tests } of files.slice(0, SHOWN)) {
  const [, reason = "no reason is listed in scripts/slow-tests.mjs"] =
    Object.entries(REASONS)
      .filter(([begin]) => path.startsWith(begin))
      .sort(([a], [b]) => b.length - a.length)[0] ?? [];
  console.log(`${seconds.toFixed(1).padStart(6)} s ${String(tests).padStart(4)} tests  ${path}: ${reason}`);
}
