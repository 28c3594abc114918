import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import { expect } from "vitest";
import { collect, startProcess, until } from "../../../helpers/cli.js";
import { ON_LINUX, ON_WINDOWS } from "../../../helpers/systems.js";
import { harnessTest } from "../harness.js";

const it = harnessTest();

/** Calls a tool through the broker, prints what it received, and ends with 42 on SIGTERM. */
const CLIENT = `
  process.on("SIGTERM", () => process.exit(42));
  setInterval(() => {}, 1000);
  const { AGENTAUTH_BROKER_SOCKET: socketPath } = process.env;
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "whoami" } });
  require("node:http").request({ socketPath, path: "/mcp", method: "POST", headers, host: "localhost" }, async (response) => {
    let received = JSON.stringify(response.rawHeaders);
    for await (const part of response) received += part;
    console.log(JSON.stringify({ status: response.statusCode, received, socketPath, pid: process.pid }));
  }).end(body);`;

it.skipIf(ON_WINDOWS)(
  "exec --broker ends with the command that a signal ends, and shows it no token",
  async ({ harness, me }) => {
    const args = ["exec", "--broker", `mcp=${harness.url}`, "--", process.execPath, "-e", CLIENT];
    const child = startProcess(args, { env: { AGENTAUTH_HOME: me.home } });
    const [out, err] = [collect(child.stdout), collect(child.stderr)];
    await until(() => out().endsWith("\n") || child.exitCode !== null);
    const { status, received, socketPath, pid } = JSON.parse(out());
    expect([status, received]).toEqual([200, expect.stringContaining("alice")]);
    const [grant] = await me.store.list();
    const token = grant?.tokens.accessToken.reveal() ?? "";
    expect(token.length).toBeGreaterThan(20);
    const environment = ON_LINUX ? readFileSync(`/proc/${pid}/environ`, "latin1") : "";
    for (const text of [received, environment]) expect(text).not.toContain(token);
    // The arguments of both are readable for every user.
    const ids = ON_LINUX ? [pid, child.pid] : [];
    for (const id of ids) expect(readFileSync(`/proc/${id}/cmdline`, "latin1")).not.toContain(socketPath);
    child.kill("SIGTERM");
    expect([await once(child, "close"), err()]).toEqual([[42, null], ""]);
    expect(existsSync(dirname(socketPath))).toBe(false);
  },
);
