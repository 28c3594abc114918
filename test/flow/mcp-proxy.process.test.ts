import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { describe, expect } from "vitest";
import { fileStore } from "../../src/store/file/file.js";
import { BIN, cleanEnv, collect, linesOf, startProcess } from "../helpers/cli.js";
import { madeGrant } from "../helpers/grant.js";
import { until } from "../helpers/server.js";
import { ON_LINUX } from "../helpers/systems.js";
import { startPlainServer } from "../mcp/plain-server.js";
import { startSessionServer } from "../mcp/session-server.js";
import { flowTest, type User } from "./support.js";

const it = flowTest({ autoApprove: "bob" });

const textOf = (result: unknown) => (result as { content: { text: string }[] }).content[0]?.text;

describe("what agentauth mcp config prints", () => {
  const entryOf = async (me: User, ...flags: string[]) => {
    const { stdout } = await me.run([
      "mcp",
      "config",
      "claude-code",
      me.url,
      "--command",
      BIN,
      "--name",
      "it",
      ...flags,
    ]);
    return (JSON.parse(stdout) as { mcpServers: { it: Record<string, unknown> } }).mcpServers.it;
  };

  it("starts a proxy that works", async ({ me, onTestFinished }) => {
    await me.logIn();
    const { command, args, env } = (await entryOf(me)) as {
      command: string;
      args: string[];
      env: Record<string, string>;
    };
    const client = new Client({ name: "host", version: "1" });
    onTestFinished(() => client.close());
    await client.connect(new StdioClientTransport({ command, args, env: { ...cleanEnv(), ...env } }));
    expect(JSON.parse(textOf(await client.callTool({ name: "whoami" })) ?? "")).toMatchObject({ subject: "bob" });
  });
});

/** Stores a login at a server that checks no token. */
async function storeGrant(me: User, server: string): Promise<void> {
  const grant = madeGrant({ server, resource: server });
  const tokens = { ...grant.tokens, expiresAt: Date.now() + 3_600_000 };
  await fileStore(me.home).save({ ...grant, tokens }, undefined);
}

describe("agentauth mcp proxy to a server with sessions", () => {
  it.for([
    ["SIGTERM", 143],
    ["SIGINT", 130],
  ] as const)(
    "answers what waits and ends the session after %s, then ends with %i",
    async ([signal, exitCode], { me, onTestFinished }) => {
      const server = await startSessionServer();
      onTestFinished(() => server.close());
      await storeGrant(me, server.url);
      const child = startProcess(["mcp", "proxy", server.url], { env: { AGENTAUTH_HOME: me.home } });
      const out = collect(child.stdout);
      say(child, HELLO);
      say(child, { method: "notifications/initialized" });
      say(child, { id: 2, method: "tools/call", params: { name: "hold" } });
      await until(() => server.held.length === 1);
      const ended = once(child, "close");
      child.kill(signal);
      expect(await ended).toEqual([exitCode, null]);
      expect(JSON.parse(linesOf(out()).at(-1) ?? "")).toMatchObject({ id: 2, error: { data: { code: "aborted" } } });
      expect(server.sessions.size).toBe(0);
    },
  );
});

describe("the memory of agentauth mcp proxy", () => {
  const COUNT = 160;
  const TEXT = "x".repeat(1_000_000);

  it.skipIf(!ON_LINUX).for(["application/json", "text/event-stream"])(
    "is at most twice what waited while the host did not read: %s",
    async (type, { me, onTestFinished }) => {
      const responses: ServerResponse[] = [];
      const server = await startPlainServer(({ id }, response) => {
        responses.push(response);
        const answer = JSON.stringify({ jsonrpc: "2.0", id, result: { content: [{ type: "text", text: TEXT }] } });
        response.setHeader("content-type", type);
        response.end(type === "application/json" ? answer : `data: ${answer}\n\n`);
      });
      onTestFinished(() => server.close());
      await storeGrant(me, server.url);
      const child = startProcess(["mcp", "proxy", server.url], { env: { AGENTAUTH_HOME: me.home } });
      const out = { lines: 0 };
      child.stdout?.on("data", (part: Buffer) => {
        for (let at = part.indexOf(10); at >= 0; at = part.indexOf(10, at + 1)) out.lines++;
      });
      say(child, HELLO);
      await until(() => out.lines === 1);
      const status = () => readFileSync(`/proc/${child.pid}/status`, "utf8");
      const before = Number(/VmRSS:\s+(\d+)/.exec(status())?.[1]);
      child.stdout?.pause();
      for (let nth = 0; nth < COUNT; nth++) say(child, { id: 2 + nth, method: "tools/call", params: { name: "long" } });
      const taken = () =>
        responses.reduce((sum, { socket }) => sum + (socket?.bytesWritten ?? 0) - (socket?.writableLength ?? 0), 0);
      await until(() => responses.length === COUNT);
      // As much as it takes without a host that reads.
      for (let before = -1; before < taken(); await sleep(500)) before = taken();
      child.stdout?.resume();
      await until(() => out.lines === COUNT + 1);
      const peak = Number(/VmHWM:\s+(\d+)/.exec(status())?.[1]);
      child.stdin?.end();
      await once(child, "close");
      expect((peak - before) * 1024).toBeLessThan(2 * COUNT * TEXT.length);
    },
  );
});

function say(child: Pick<ChildProcess, "stdin">, message: object): void {
  child.stdin?.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
}

const HELLO = {
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "host", version: "1" } },
};
