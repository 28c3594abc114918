import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { shellWord } from "../../src/redact.js";
import { BIN, cleanEnv, collect, temporaryFolder, until } from "../helpers/cli.js";
import { commandsOf, isOfSandbox, PAGES } from "./agent-pages-support.js";

/** A line run by a shell, in which `agentauth` is the built program. */
function start(line: string, env: Record<string, string>) {
  const script = `agentauth() { ${shellWord(process.execPath)} ${shellWord(BIN)} "$@"; }\n${line}`;
  const child = spawn("bash", ["-c", script], { env: cleanEnv(env), stdio: ["ignore", "pipe", "pipe"] });
  const [out, err] = [collect(child.stdout), collect(child.stderr)];
  const ended = once(child, "close") as Promise<[number | null]>;
  return { out, err, ended };
}

describe.each(PAGES)("%s", (page) => {
  it("shows commands of a sandbox that run in a shell and end with 0", async () => {
    const commands = commandsOf(page).filter(isOfSandbox);
    expect(commands.length).toBeGreaterThan(2);
    const env = { AGENTAUTH_HOME: temporaryFolder(), CLAUDECODE: "1" };
    for (const line of commands) {
      const command = start(line, env);
      if (line.includes("sandbox start")) {
        await until(() => command.out().includes("\n"));
        expect(JSON.parse(command.out())).toMatchObject({ ready: true });
        continue;
      }
      const [code] = await command.ended;
      expect(code, `${line}\n${command.err()}`).toBe(0);
      if (line.includes("--json")) expect(() => JSON.parse(command.out()), line).not.toThrow();
    }
  });
});
