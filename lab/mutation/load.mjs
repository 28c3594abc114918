// Loads what is mutated before any test. Test files share their modules: what runs once, when a module is loaded, would
// count as covered by the one test that was the first to need it.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const { chosen } = JSON.parse(readFileSync(process.env.AGENTAUTH_MUTATION, "utf8"));
for (const source of new Set(chosen.map((key) => key.split(":")[0]))) {
  // It would run the program.
  if (source !== "src/cli/main.ts") await import(/* @vite-ignore */ join(process.cwd(), source));
}
