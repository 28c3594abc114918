import { defineConfig } from "vitest/config";

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // Without this a machine of two cores would use one.
    maxWorkers: "100%",
    // Nothing here is about speed: on a busy machine a process alone may take many seconds to start.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    reporters: ["default", ["json", { outputFile: "coverage/test-report.json" }]],
    coverage: {
      provider: "v8",
      include: ["src/**/*.ts"],
      exclude: ["src/**/*.gen.ts", "src/**/index.ts"],
      reporter: ["text-summary", "json-summary"],
      // A little below what is there. Of cli/ only io and output, less the pager: the rest runs in the end-to-end tests, in processes of
      // their own that coverage does not see.
      thresholds: {
        "src/{errors,redact}.ts": { lines: 99, statements: 99, functions: 99, branches: 95 },
        "src/api/**": { lines: 97, statements: 96, functions: 93, branches: 96 },
        "src/http/**": { lines: 98, statements: 97, functions: 96, branches: 96 },
        "src/sandbox/**": { lines: 97, statements: 95, functions: 95, branches: 87 },
        "src/oauth/**": { lines: 98, statements: 97, functions: 96, branches: 94 },
        "src/resource-server/**": { lines: 99, statements: 98, functions: 99, branches: 95 },
        "src/login/**": { lines: 97, statements: 95, functions: 93, branches: 89 },
        "src/store/**": { lines: 92, statements: 90, functions: 93, branches: 82 },
        "src/cli/{io,output}/!(pager*).ts": { lines: 98, statements: 97, functions: 97, branches: 87 },
      },
    },
  },
});
