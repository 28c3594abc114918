import { once } from "node:events";
import { existsSync, mkdtempSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { collect, startProcess, until } from "../../../helpers/cli.js";
import { ON_WINDOWS } from "../../../helpers/systems.js";
import { harnessTest } from "../harness.js";

const it = harnessTest();

it.skipIf(ON_WINDOWS)(
  "at SIGTERM broker takes no new request, and ends what is under way",
  async ({ harness, me, faults }) => {
    faults.add({ kind: "slow-body", bytes: 20, ms: 50 });
    const socketPath = join(mkdtempSync(join(tmpdir(), "b-")), "run", "a.sock");
    const broker = startProcess(["broker", "--listen", `unix:${socketPath}`, "--grant", `mcp=${harness.url}`], {
      env: { AGENTAUTH_HOME: me.home },
    });
    const [stderr, ended] = [collect(broker.stderr), once(broker, "close")];
    await until(() => stderr().includes("broker ready") || broker.exitCode !== null);
    const options = {
      socketPath,
      path: "/mcp",
      method: "POST",
      headers: { host: "localhost", "content-type": "application/json", accept: "application/json, text/event-stream" },
      agent: new Agent({ keepAlive: true }),
    };
    const sent = request(options);
    sent.end(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }));
    const [response] = await once(sent, "response");
    broker.kill("SIGTERM");
    await until(() => !existsSync(socketPath));
    const [error] = await once(request({ ...options, agent: false }), "error");
    expect(error.code).toBe("ENOENT");
    let text = "";
    for await (const part of response) text += part;
    expect(text).toContain('"name":"whoami"');
    expect(await ended).toEqual([0, null]);
  },
);
