import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { fileStore } from "../../../dist/node.js";
import { atMost, goalText } from "../lib/claims.mjs";
import { CLI, missingCli, withHome } from "../lib/cli.mjs";
import { compare, median } from "../lib/compare.mjs";
import { program } from "../lib/listing-sides.mjs";
import { startChild } from "../lib/process.mjs";
import { logIn } from "../lib/stored-login.mjs";
import { times } from "../lib/table.mjs";

export const title = "A call through the proxy";
export const start = "not in the figures";
export const shows =
  "CPU and median time of one `tools/call`, one after another, from a host over stdio to an MCP server on loopback that " +
  "answers with 1 KB of JSON. The host and the server are other processes. The pipe is the least that a proxy can do over " +
  "node:http: it checks, refreshes and limits nothing. It does not show event streams, nor the time that a network takes.";

const MCP_REMOTE = fileURLToPath(new URL("../../node_modules/mcp-remote/dist/proxy.js", import.meta.url));
const WARM_UP = 1000;

export function unavailable() {
  return existsSync("/proc/self/stat") ? missingCli() : "it reads the CPU of another process from /proc";
}

export async function measure({ quick }) {
  const [calls, rounds] = quick ? [300, 1] : [2000, 5];
  const [sandbox, server] = [await startChild("sandbox.mjs"), await startChild("mcp-server.mjs")];
  try {
    return await withHome(async (home) => {
      const token = await loginAt(home.AGENTAUTH_HOME, JSON.parse(sandbox.line).mcpUrl, server.line);
      const env = { ...home, MCP_REMOTE_CONFIG_DIR: home.AGENTAUTH_HOME };
      const side = (name, ...args) => ({ name, measure: () => measureHost(args, env, calls) });
      const sides = [
        side("pipe", program("pipe"), server.line, token),
        side("agentauth mcp proxy", CLI, "mcp", "proxy", server.line),
        side("mcp-remote", MCP_REMOTE, server.line, "--header", `Authorization: Bearer ${token}`),
      ];
      const results = await compare(sides, rounds);
      const [, ours, remote] = results;
      const cpu = atMost(
        "`mcp proxy`, CPU of a call",
        "mcp-remote",
        ours.median("cpuMs") / remote.median("cpuMs"),
        0.7,
      );
      const wall = atMost("`mcp proxy`, median time of a call", "a bare pipe", ours.ratio("wallMs"), 1.6);
      return [
        {
          caption: `${calls.toLocaleString("en")} calls, ${rounds} rounds`,
          header: ["side", "CPU per call", "goal", "median time", "vs. pipe", "goal"],
          rows: results.map((one, at) => [
            one.name,
            `${one.median("cpuMs").toFixed(2)} ms`,
            at === 1 ? goalText(cpu) : "",
            `${one.median("wallMs").toFixed(2)} ms`,
            times(one.ratio("wallMs")),
            at === 1 ? goalText(wall) : "",
          ]),
          claims: [cpu, wall],
        },
      ];
    });
  } finally {
    await Promise.all([sandbox.stop(), server.stop()]);
  }
}

/** Stores the login at the sandbox as one at another server, and returns its token. */
async function loginAt(home, mcpUrl, url) {
  await logIn(home, mcpUrl);
  const store = fileStore(home);
  const [grant] = await store.list();
  await store.save({ ...grant, server: url }, undefined);
  return grant.tokens.accessToken.reveal();
}

/** The CPU of the process for one call, and the median time of a call, in milliseconds. */
async function measureHost(args, env, calls) {
  const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "ignore"], env: { ...process.env, ...env } });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const send = (message) => child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`);
  const ask = async (id, method, params) => {
    send({ id, method, params });
    const { value } = await lines.next();
    const answer = JSON.parse(value);
    if (answer.id !== id || answer.error) throw new Error(`${args}: ${value}`);
  };
  const clientInfo = { name: "bench", version: "1" };
  await ask("begin", "initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo });
  send({ method: "notifications/initialized" });
  const took = [];
  let before = 0;
  for (let id = 0; id < WARM_UP + calls; id++) {
    if (id === WARM_UP) before = cpuOf(child.pid);
    const startedAt = performance.now();
    await ask(id, "tools/call", { name: "echo", arguments: { text: "hello" } });
    if (id >= WARM_UP) took.push(performance.now() - startedAt);
  }
  const cpuMs = (cpuOf(child.pid) - before) / calls;
  child.stdin.end();
  if (child.exitCode === null) await once(child, "exit");
  return { cpuMs, wallMs: median(took) };
}

/** The CPU that a process has used, in milliseconds: the kernel counts it in hundredths of a second. */
function cpuOf(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "latin1")
    .replace(/^.*\) /, "")
    .split(" ");
  return (Number(fields[11]) + Number(fields[12])) * 10;
}
