// Two workers that share the login of a user in a Redis. Its token has expired, both request it at the same moment, and the
// issuer gets one token request. The Redis, the issuer and the MCP server are started here, and end with the program.
//
//   node examples/fleet/fleet.ts        (before Node 22.18: npx tsx examples/fleet/fleet.ts)
import { spawn, spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AgentClient, type AgentClientOptions } from "agentauth";
import { redisDriver } from "agentauth/redis";
import { startSandbox } from "agentauth/sandbox";
import { grantStore, keyRing } from "agentauth/store";
import { createClient } from "redis";

const TWO_HOURS = 2 * 3_600_000;

/** Opens the store that all machines share, for one user. Keys come from the environment, never from arguments. */
async function openAgent(options: Omit<AgentClientOptions, "store"> = {}) {
  const { FLEET_REDIS = "", FLEET_KEY = "", FLEET_NAME_KEY = "" } = process.env;
  const socket = { path: FLEET_REDIS, tls: false as const, reconnectStrategy: () => 50 };
  const client = createClient({ socket, disableOfflineQueue: true });
  // The store reports what fails; the client connects again by itself.
  client.on("error", () => {});
  await client.connect();
  const seal = keyRing({ current: "k1", keys: { k1: FLEET_KEY }, nameKey: FLEET_NAME_KEY });
  const store = grantStore(redisDriver({ client }), { seal, tenant: "acme" });
  return { agent: new AgentClient({ store, profile: "user-17", ...options }), close: () => client.destroy() };
}

/** A worker: in production a pod, or a function. Its clock is ahead, so that the stored token has expired. */
async function work(server: string): Promise<void> {
  const clock = {
    now: () => performance.now(),
    epoch: () => Date.now() + TWO_HOURS,
    sleep: (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms)),
  };
  const { agent, close } = await openAgent({ clock });
  const { value } = await agent.token(server);
  console.log(createHash("sha256").update(value).digest("hex"));
  close();
}

async function main(): Promise<void> {
  if (spawnSync("redis-server", ["--version"]).status !== 0) {
    console.error("redis-server is not installed: apt-get install redis-server, or brew install redis");
    process.exitCode = 1;
    return;
  }
  const folder = await mkdtemp(join(tmpdir(), "fleet-"));
  const socket = join(folder, "redis.sock");
  // Each write is on the disk before it is acknowledged.
  const durable = ["--dir", folder, "--appendonly", "yes", "--appendfsync", "always"];
  const redis = spawn("redis-server", ["--port", "0", "--unixsocket", socket, ...durable], { stdio: "ignore" });
  const sandbox = await startSandbox({ autoApprove: true, devices: 0 });
  try {
    process.env["FLEET_REDIS"] = socket;
    process.env["FLEET_KEY"] = randomBytes(32).toString("hex");
    process.env["FLEET_NAME_KEY"] = randomBytes(32).toString("hex");
    await logIn(sandbox.mcpUrl);
    const tokens = await Promise.all([startWorker(sandbox.mcpUrl), startWorker(sandbox.mcpUrl)]);
    const refreshes = sandbox.requests.filter(({ operation }) => operation === "refresh_token").length;
    console.log(`tokens: ${tokens.length} workers, ${new Set(tokens).size} distinct`);
    console.log(`refreshes at the issuer: ${refreshes}`);
  } finally {
    await sandbox.close();
    redis.kill();
    await once(redis, "exit");
    await rm(folder, { recursive: true, force: true });
  }
}

/** Logs the user in. This issuer approves at once; a real one needs a browser, or a web login (docs/web-login.md). */
async function logIn(server: string): Promise<void> {
  const redirectUri = "http://127.0.0.1:49152/callback";
  const { agent, close } = await openAgent({
    login: {
      open: async () => ({
        redirectUri,
        async authorize({ url, signal }) {
          const { headers } = await fetch(url, { redirect: "manual", signal });
          return new URL(headers.get("location") ?? redirectUri).searchParams;
        },
        close: async () => {},
      }),
    },
  });
  await agent.login(server);
  close();
}

/** Starts this program as a worker; resolves with what it prints, the hash of its token. */
async function startWorker(server: string): Promise<string> {
  const args = [...process.execArgv, process.argv[1] ?? "", "worker", server];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`a worker ended with ${code}`);
  return output.trim();
}

const [, , role, server = ""] = process.argv;
await (role === "worker" ? work(server) : main());
