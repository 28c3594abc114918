import { availableParallelism } from "node:os";
import { defaultServerConditions } from "vite";
import { configDefaults, defineConfig } from "vitest/config";
import { leftOut } from "./test/helpers/left-out.js";
import { watchdog } from "./test/helpers/watchdog.js";

/** Those of Node, which does not know "module". */
const CONDITIONS = ["agentauth-source", ...defaultServerConditions.filter((name) => name !== "module")];
const PROCESSES = "test/**/*.process.test.ts";
/** Test files that replace modules, or patch those of Node. */
const ISOLATED = [
  "test/cli/commands/doctor/writing.test.ts",
  "test/cli/commands/report/html-file.test.ts",
  "test/cli/main.test.ts",
  "test/http/node/interceptors.test.ts",
  "test/store/file/file-grants.test.ts",
  "test/store/private/platform-faults.test.ts",
  "test/store/file/system-calls.test.ts",
];

export default defineConfig({
  // The packages that are bundled, from src/packages/ and not from a build.
  resolve: { conditions: CONDITIONS },
  ssr: { resolve: { conditions: CONDITIONS } },
  test: {
    // Half of the time of a worker is waiting: for a time limit, a process, a file that is written.
    maxWorkers: availableParallelism() * 2,
    // No test is about speed: on a busy machine the start of a process may take many seconds.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
    // Most of the time of a short test file is the transform of its imports.
    experimental: { fsModuleCache: true, fsModuleCachePath: ".vitest-cache" },
    setupFiles: ["test/helpers/each-file.ts"],
    snapshotEnvironment: "test/helpers/golden.ts",
    snapshotSerializers: ["test/helpers/compact-snapshot.ts"],
    globalSetup: ["test/helpers/folder-of-run.ts"],
    reporters: ["default", "json", leftOut, watchdog()],
    outputFile: { json: "coverage/test-report.json" },
    projects: [
      {
        extends: true,
        test: {
          name: "in-process",
          include: ["test/**/*.test.ts"],
          exclude: [...configDefaults.exclude, PROCESSES, ...ISOLATED],
          setupFiles: ["test/helpers/each-in-process-file.ts"],
          // The files of a worker share their modules: each would load the whole program again.
          isolate: false,
          // Many rows of the hostile tables only wait for a time limit.
          maxConcurrency: 20,
        },
      },
      { extends: true, test: { name: "in-process-isolated", include: ISOLATED } },
      {
        extends: true,
        test: {
          name: "processes",
          include: [PROCESSES],
          globalSetup: "test/helpers/build.ts",
          isolate: false,
        },
      },
    ],
    coverage: {
      provider: "v8",
      include: ["src/**/*.ts"],
      // The last three talk to real engines, in tests of separate processes.
      exclude: [
        "src/**/*.gen.ts",
        "src/**/index.ts",
        "src/store/redis/{connection,engine,redis-driver,scripts}.ts",
        "src/store/postgres/client.ts",
        "src/profile/engine/**",
      ],
      reporter: ["text-summary", "json-summary"],
      // A little below what the tests in this process cover.
      thresholds: {
        "src/{errors,redact}.ts": { lines: 99, statements: 99, functions: 99, branches: 95 },
        "src/api/**": { lines: 97, statements: 96, functions: 93, branches: 96 },
        "src/http/**": { lines: 98, statements: 97, functions: 96, branches: 96 },
        "src/sandbox/**": { lines: 97, statements: 95, functions: 95, branches: 87 },
        "src/oauth/**": { lines: 98, statements: 97, functions: 96, branches: 94 },
        "src/resource-server/**": { lines: 99, statements: 98, functions: 99, branches: 95 },
        "src/login/**": { lines: 97, statements: 95, functions: 93, branches: 89 },
        "src/store/**": { lines: 92, statements: 90, functions: 93, branches: 82 },
        "src/{profile,mcp}/**": { lines: 98, statements: 97, functions: 96, branches: 90 },
        "src/cli/**": { lines: 95, statements: 95, functions: 95, branches: 85 },
      },
    },
  },
});
