import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect } from "vitest";
import { shellWord } from "../../src/redact.js";
import { BIN, cleanEnv, collect } from "../helpers/cli.js";
import { flowTest } from "./support.js";

const LIST = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });

const it = flowTest();

describe("agentauth request", () => {
  it("ends with 0 where its reader leaves early", async ({ faults, me, url }) => {
    await me.logIn();
    faults.add({ kind: "slow-body", bytes: 8, ms: 20, path: "mcp", times: 0 });
    const words = [process.execPath, BIN, "request", url, "-d", LIST].map(shellWord).join(" ");
    const script = `{ ${words}; echo "code $?" >&2; } | head -c 1`;
    const child = spawn("bash", ["-c", script], { env: cleanEnv({ AGENTAUTH_HOME: me.home }), stdio: "pipe" });
    const [out, err] = [collect(child.stdout), collect(child.stderr)];
    await once(child, "close");
    expect([out().length, err()]).toEqual([1, "code 0\n"]);
  });
});
