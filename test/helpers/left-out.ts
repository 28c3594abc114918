import type { Reporter, Vitest } from "vitest/node";
import { projectFiles } from "./project-files.js";

let vitest: Vitest | undefined;

/** Prints at the end of `npm test` how many test files it left out, and the command that runs them. */
export const leftOut: Reporter = {
  onInit(started) {
    vitest = started;
  },
  onTestRunEnd() {
    const isPart = process.argv.slice(2).some((word) => word.includes("test/"));
    if (isPart || vitest?.projects.some(({ name }) => name === "processes")) return;
    const files = projectFiles("test").filter((path) => path.endsWith(".process.test.ts"));
    const summary = `${files.length} test files (*.process.test.ts: separate processes, a browser, a keychain)`;
    vitest?.logger.log(`Left out: ${summary}. They run with: npm run test:processes\n`);
  },
};
