import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { shellWord } from "../../src/redact.js";
import { BIN, cleanEnv, collect, linesOf, startProcesses, until } from "../helpers/cli.js";
import { type Desk, startDesk } from "./support.js";

startProcesses();

const PAGES = ["AGENTS.md", "skills/agentauth/SKILL.md"];

let desk: Desk;
beforeAll(async () => {
  desk = await startDesk({ devices: 30 });
});
afterAll(() => desk.close());

/** Every line of the pages' blocks for a shell, in order. */
function commandsOf(page: string): string[] {
  const blocks = [...readFileSync(page, "utf8").matchAll(/^ *```sh\n(.*?)^ *```$/gms)];
  return blocks.flatMap(([, block]) => linesOf(block ?? "").map((line) => line.trim()));
}

/** A line run by a shell, in which `agentauth` is the built program. */
function start(line: string, env: Record<string, string>) {
  const script = `agentauth() { ${shellWord(process.execPath)} ${shellWord(BIN)} "$@"; }\n${line}`;
  const child = spawn("bash", ["-c", script], { env: cleanEnv(env), stdio: ["ignore", "pipe", "pipe"] });
  const [out, err] = [collect(child.stdout), collect(child.stderr)];
  const ended = once(child, "close") as Promise<[number | null]>;
  return { out, err, ended };
}

describe.each(PAGES)("%s", (page) => {
  it("shows nothing but commands of this program", () => {
    const commands = commandsOf(page);
    expect(commands.length).toBeGreaterThan(15);
    expect(commands.filter((line) => !line.startsWith("agentauth "))).toEqual([]);
  });

  it("says of no command what is not true: each one runs and ends with 0", { timeout: 180_000 }, async () => {
    const { sandbox } = desk;
    const me = desk.newcomer();
    const { account, domain, pool } = sandbox.ids;
    const device = sandbox.data.device(pool, 0)?.id ?? "";
    const env = {
      AGENTAUTH_HOME: me.home,
      AGENTAUTH_BASE_URL: sandbox.baseUrl,
      AGENTAUTH_API_TOKEN: sandbox.apiToken,
      CLAUDECODE: "1",
    };
    // The profile of a sandbox has an address of its own.
    const onSandbox = { AGENTAUTH_HOME: me.home, CLAUDECODE: "1" };
    await me.signIn();
    const values: Record<string, string> = { account_id: account, domain_id: domain, pool_id: pool, device_id: device };
    let signInAt = "";
    for (const shown of commandsOf(page)) {
      const line = shown
        .replaceAll("https://mcp.example/mcp", me.url)
        .replace(/<(\w+)>/g, (_, name) => values[name] ?? "?");
      const command = start(line, line.includes("sandbox") ? onSandbox : env);
      if (line.includes("sandbox start")) {
        await until(() => command.out().includes("\n"));
        expect(JSON.parse(command.out())).toMatchObject({ ready: true });
        continue;
      }
      if (line.includes("--wait ")) {
        // A sign-in is received once somebody listens where it ends; until then the browser finds nobody.
        await until(() => command.err().includes("Waiting"));
        await (await fetch(signInAt)).text();
      }
      const [code] = await command.ended;
      expect(code, `${line}\n${command.err()}`).toBe(0);
      if (line.includes("--no-wait")) {
        const { login_id: id, url } = JSON.parse(command.out());
        values["login_id"] = id;
        signInAt = url;
      }
      if (line.includes("--json")) expect(() => JSON.parse(command.out()), line).not.toThrow();
      if (line.includes("printenv")) expect(command.out()).toBe("********\n");
    }
  });
});
