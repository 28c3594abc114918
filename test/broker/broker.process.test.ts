import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, mkdtempSync, openSync, readFileSync, readSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { type BrokerEvent, createBroker } from "../../src/broker/broker.js";
import { systemClock } from "../../src/http/deadline.js";
import { HttpRequest } from "../../src/http/http-message.js";
import { AgentClient } from "../../src/oauth/agent.js";
import { startSandbox } from "../../src/sandbox/index.js";
import { memoryStore } from "../../src/store/memory.js";
import { startHarness } from "../cli/commands/harness.js";
import { collect, startProcess, until } from "../helpers/cli.js";
import { TestLogin } from "../helpers/login.js";
import { ON_LINUX } from "../helpers/systems.js";
import { HOSTILE_REQUESTS } from "./hostile-requests.js";

const MINUTE = 60_000;
const REQUESTS = 100 * 60;

it("a login whose tokens are valid for a minute serves a request a minute for 100 hours", {
  timeout: 300_000,
}, async () => {
  const sandbox = await startSandbox({ accessTokenTtlSeconds: 60, autoApprove: true, devices: 1 });
  onTestFinished(() => sandbox.close());
  const now = () => sandbox.clock.now();
  const client = { store: memoryStore(), clock: { ...systemClock, now, epoch: now } };
  await new AgentClient({ ...client, login: new TestLogin() }).login(sandbox.mcpUrl);
  const events: BrokerEvent[] = [];
  const policy = {
    grants: { mcp: { server: sandbox.mcpUrl, tools: ["who*"] } },
    clients: { job: { listen: "127.0.0.1:0" } },
  };
  const broker = createBroker(new AgentClient(client), policy, { onRequest: (event) => events.push(event) });
  const begun = now();
  const body = Buffer.from(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }));
  const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
  const statuses = new Map<number, number>();
  for (let nth = 0; nth < REQUESTS; nth++) {
    sandbox.clock.advance(MINUTE);
    const response = await broker.fetch(new HttpRequest("http://broker/mcp", { method: "POST", headers, body }), "job");
    await response.text();
    statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
  }
  expect(statuses).toEqual(new Map([[200, REQUESTS]]));
  expect(events.filter(({ refused }) => refused !== undefined)).toEqual([]);
  expect([events.length, now() - begun >= 100 * 60 * MINUTE]).toEqual([REQUESTS, true]);
});

const unshare = ON_LINUX && spawnSync("unshare", ["--net", "true"]).status === 0;
if (!unshare) process.stderr.write("SKIPPED: the broker's client without a network needs unshare --net\n");

/** Those of the texts that the memory of a process has, in the encodings of JavaScript. */
function foundIn(pid: number | undefined, texts: readonly string[]): string[] {
  const needles = texts.map((text) => [Buffer.from(text, "latin1"), Buffer.from(text, "utf16le")]);
  const memory = openSync(`/proc/${pid}/mem`, "r");
  const found = new Set<string>();
  for (const [, begin = "", end = ""] of readFileSync(`/proc/${pid}/maps`, "latin1").matchAll(/^(\w+)-(\w+) rw.*$/gm)) {
    const [from, to] = [BigInt(`0x${begin}`), BigInt(`0x${end}`)];
    const bytes = Buffer.alloc(Number(to - from));
    try {
      readSync(memory, bytes, 0, bytes.length, from);
    } catch {
      // A region of the kernel.
      continue;
    }
    for (const [nth, forms] of needles.entries())
      if (forms.some((form) => bytes.includes(form))) found.add(texts[nth] ?? "");
  }
  closeSync(memory);
  return [...found];
}

it.skipIf(!unshare)("a program without a network calls a tool through the broker, and has no token", async () => {
  const harness = await startHarness();
  const folder = mkdtempSync(join(tmpdir(), "b-"));
  onTestFinished(async () => {
    rmSync(folder, { recursive: true, force: true });
    await harness.close();
  });
  const user = harness.user();
  await user.logIn();
  const [grant] = await user.store.list();
  const socket = join(folder, "run", "a.sock");
  const broker = startProcess(["broker", "--listen", `unix:${socket}`, "--grant", `mcp=${harness.url}`], {
    env: { AGENTAUTH_HOME: user.home },
  });
  const stderr = collect(broker.stderr);
  await until(() => stderr().includes("broker ready") || broker.exitCode !== null);
  const client = fileURLToPath(new URL("./client-without-network.mjs", import.meta.url));
  const hostile = join(folder, "hostile.json");
  writeFileSync(hostile, JSON.stringify(HOSTILE_REQUESTS.map(([, text]) => text)));
  const before = harness.sandbox.requests.length;
  const run = spawn("unshare", ["--net", process.execPath, client, socket, harness.url, hostile], {
    env: { PATH: process.env["PATH"] },
  });
  const [out, err, ended] = [collect(run.stdout), collect(run.stderr), once(run, "close")];
  await until(() => out().endsWith("\n") || run.exitCode !== null);
  expect(err()).toBe("");
  const { direct, received, answers } = JSON.parse(out());
  expect(direct).toBe("ENETUNREACH");
  expect(received).toContain('\\"subject\\":\\"alice\\"');
  const tokens = [grant?.tokens.accessToken.reveal() ?? "", grant?.tokens.refreshToken?.reveal() ?? ""];
  expect(tokens.every(({ length }) => length > 20)).toBe(true);
  // All that the client has: its memory, its environment, and what it received.
  expect(foundIn(run.pid, ["ENETUNREACH"])).toEqual(["ENETUNREACH"]);
  expect(foundIn(run.pid, tokens)).toEqual([]);
  const all = `${readFileSync(`/proc/${run.pid}/environ`, "latin1")}${out()}`;
  for (const token of tokens) expect(all).not.toContain(token);
  run.stdin.end();
  expect(await ended).toEqual([0, null]);
  // Its one call is all that has come to the server.
  const calls = harness.sandbox.requests.slice(before).filter(({ path }) => path === new URL(harness.url).pathname);
  expect([answers.length, calls.length]).toEqual([HOSTILE_REQUESTS.length, 1]);
  broker.kill("SIGTERM");
  expect(await once(broker, "exit")).toEqual([0, null]);
});
