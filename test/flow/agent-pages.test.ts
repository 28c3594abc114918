import { once } from "node:events";
import { describe, expect } from "vitest";
import { commandWords } from "../../src/login/command-words.js";
import { until } from "../helpers/cli.js";
import { commandsOf, isOfSandbox, PAGES } from "./agent-pages-support.js";
import { flowTest } from "./support.js";

const it = flowTest({ devices: 30 });

describe.each(PAGES)("%s", (page) => {
  it("shows only commands of this program", () => {
    const commands = commandsOf(page);
    expect(commands.length).toBeGreaterThan(15);
    expect(commands.filter((line) => !line.startsWith("agentauth "))).toEqual([]);
  });

  // The skill has a test that follows it step by step: skill.process.test.ts.
  it.skipIf(page.startsWith("skills"))("shows commands that run and end with 0", async ({ harness, me, url }) => {
    const { sandbox } = harness;
    const { account, domain, pool } = sandbox.ids;
    const device = sandbox.data.device(pool, 0)?.id ?? "";
    await me.logIn();
    const values: Record<string, string> = { account_id: account, domain_id: domain, pool_id: pool, device_id: device };
    let loginUrl = "";
    for (const shown of commandsOf(page).filter((line) => !isOfSandbox(line))) {
      const line = shown
        .replaceAll("https://mcp.example/mcp", url)
        .replace(/<(\w+)>/g, (_, name) => values[name] ?? "?");
      // What another program gets on stdin is printed here.
      const [own = ""] = line.split(" | ");
      const command = me.start(commandWords(own).slice(1), { CLAUDECODE: "1" });
      const ended = once(command.child, "close") as Promise<[number | null]>;
      if (line.includes("--wait ")) {
        // A login is finished once the program listens at its redirect address; before that the browser is refused.
        await until(() => command.err().includes("Waiting"));
        await (await fetch(loginUrl)).text();
      }
      const [code] = await ended;
      expect(code, `${line}\n${command.err()}`).toBe(0);
      if (line.includes("--no-wait")) {
        const { login_id: id, url: address } = JSON.parse(command.out());
        values["login_id"] = id;
        loginUrl = address;
      }
      if (line.includes("--json")) expect(() => JSON.parse(command.out()), line).not.toThrow();
      if (line.includes("printenv")) expect(command.out()).toBe("********\n");
    }
  });
});
