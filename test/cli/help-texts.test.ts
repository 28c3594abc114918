import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { describeProgram } from "../../src/cli/commands/commands/run.js";
import { declaredProgram } from "../helpers/program.js";

describe("every text of the help", () => {
  it.each(["cli-page", "man-page"])("is in the pages that npm run generate writes (%s)", async (module) => {
    const { cliPages, manPage } = await import(`../../scripts/generate/${module}.mjs`);
    const tree = describeProgram(declaredProgram());
    const pages: Record<string, string> = cliPages?.(tree) ?? { "docs/man/agentauth.1": manPage(tree) };
    for (const [path, text] of Object.entries(pages)) expect(text, path).toBe(readFileSync(path, "utf8"));
  });
});
