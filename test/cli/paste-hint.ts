import { spawnSync } from "node:child_process";
import { type CliResult, runCli } from "../helpers/cli.js";

/**
 * Runs the command of a hint: a shell splits the text into words as where it is pasted, and the program runs with these
 * words in this process.
 */
export async function pasteHint(stderr: string, env: Record<string, string>): Promise<CliResult> {
  const text = stderr.startsWith("{") ? `hint: ${JSON.parse(stderr).error.hint}` : stderr;
  const command = /^hint: continue with: (.*)$/m.exec(text)?.[1];
  if (command === undefined) throw new Error(`no hint in ${stderr}`);
  const script = `agentauth() { printf '%s\\0' "$@"; }\n${command}`;
  const { stdout, stderr: complaint } = spawnSync("sh", ["-c", script], { encoding: "utf8" });
  if (complaint !== "") throw new Error(`the shell: ${complaint}`);
  return runCli(stdout.split("\0").slice(0, -1), { env });
}
