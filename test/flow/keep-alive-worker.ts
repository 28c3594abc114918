import { createClient } from "redis";
import { AgentClient } from "../../src/oauth/agent.js";
import { keepAlive } from "../../src/oauth/keep-alive.js";
import { grantStore } from "../../src/store/driver/grant-store.js";
import { redisDriver } from "../../src/store/redis/redis-driver.js";

/** A worker of a fleet that keeps its logins alive until SIGTERM. */
const { port, every } = JSON.parse(process.argv[2] ?? "{}") as { port: number; every: `${number}s` };
const client = await createClient({ socket: { host: "127.0.0.1", port } }).connect();
const store = grantStore(redisDriver({ client: client as never }), { seal: "none", takeover: "fast" });
const agent = new AgentClient({ store });
const end = new AbortController();
process.once("SIGTERM", () => end.abort());
const kept = keepAlive(agent, { every, concurrency: 16, perIssuer: 16, signal: end.signal });
process.send?.({ event: "ready" });
const report = await kept;
process.send?.({ event: "ended", ...report });
client.destroy();
process.disconnect();
