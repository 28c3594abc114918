import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { allIds, BIN, runProcess, startTestbed, type Testbed, temporaryFolder } from "../helpers/cli.js";

const DIST = fileURLToPath(new URL("../../dist/cli", import.meta.url));

let testbed: Testbed;
const home = temporaryFolder();
const log = join(home, "loaded.json");

const browser = join(home, "browser.mjs");

beforeAll(async () => {
  writeFileSync(browser, `#!${process.execPath}\nawait fetch(process.argv[2]);\n`, { mode: 0o700 });
  testbed = await startTestbed({ autoApprove: true });
});
afterAll(() => testbed.sandbox.close());

/** Runs the built program and returns whether Node loaded its own `fetch`, which is undici. */
async function loadsFetch(args: readonly string[]): Promise<boolean> {
  // The browser of the login inherits the options of Node.
  const script = `if (process.argv[1] === ${JSON.stringify(BIN)}) process.on("exit", () =>
    process.getBuiltinModule("node:fs").writeFileSync(${JSON.stringify(log)}, JSON.stringify(process.moduleLoadList)));`;
  const env = {
    ...testbed.env,
    AGENTAUTH_HOME: home,
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(script)}`,
  };
  const { code, stderr } = await runProcess(args, { env });
  expect({ code, stderr: code === 0 ? "" : stderr }).toEqual({ code: 0, stderr: "" });
  return (JSON.parse(readFileSync(log, "utf8")) as string[]).some((name) => /undici\/undici$/.test(name));
}

it("lists load no login and no engine that stores logins", () => {
  const [lists, tokens] = ["lists", "tokens"].map((name) => readFileSync(join(DIST, `${name}.cjs`), "utf8"));
  const marks = ["device_authorization_endpoint", "agentauth_record", "ZRANGEBYLEX"];
  expect(marks.filter((mark) => lists?.includes(mark))).toEqual([]);
  // That the marks are those of logins and engines is seen where they are used.
  expect(marks.filter((mark) => tokens?.includes(mark))).toEqual(marks);
});

describe("Node's own fetch, which takes longer to load than the rest of a start", () => {
  it("is loaded by no command but those that run a service", async () => {
    const { mcpUrl, ids } = testbed.sandbox;
    const [device = ""] = allIds(testbed.sandbox);
    const commands: string[][] = [
      ["login", mcpUrl, "--browser", browser],
      ["status", "--json"],
      ["token", mcpUrl],
      ["token", mcpUrl, "--force-refresh"],
      ["exec", mcpUrl, "--", "true"],
      ["request", mcpUrl, "--data", '{"jsonrpc":"2.0","id":1,"method":"ping"}'],
      ["mcp", "tools", mcpUrl],
      ["mcp", "call", mcpUrl, "whoami"],
      ["introspect", mcpUrl],
      ["discover", mcpUrl],
      ["doctor", mcpUrl, "--online"],
      [...testbed.devices, "--limit", "5"],
      ["devices", "get", device, "--pool", ids.pool],
      ["devices", "report", "--pool", ids.pool, "--html", join(home, "report.html")],
      ["api", "GET", "/api/v1/pool", "-f", `domain_id=${ids.domain}`],
      ["config", "list"],
      ["logout", mcpUrl],
    ];
    const loading: string[][] = [];
    for (const args of commands) if (await loadsFetch(args)) loading.push(args);
    expect(loading).toEqual([]);
    // That the list would name it is seen on a command that needs it.
    expect(await loadsFetch(["demo"])).toBe(true);
  });
});
