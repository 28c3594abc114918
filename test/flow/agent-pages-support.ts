import { readFileSync } from "node:fs";
import { linesOf } from "../helpers/cli.js";

/** The pages that an AI agent reads. */
export const PAGES = ["AGENTS.md", "skills/agentauth/SKILL.md"];

/** Every line of the blocks for a shell of a page, in order. */
export function commandsOf(page: string): string[] {
  const blocks = [...readFileSync(page, "utf8").matchAll(/^ *```sh\n(.*?)^ *```$/gms)];
  return blocks.flatMap(([, block]) => linesOf(block ?? "").map((line) => line.trim()));
}

/** The commands of a sandbox and of its profile, which end a process or need one. */
export const isOfSandbox = (line: string): boolean => line.includes("sandbox");
