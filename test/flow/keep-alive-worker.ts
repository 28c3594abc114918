import { AgentClient } from "../../src/oauth/agent.js";
import { keepAlive } from "../../src/oauth/keep-alive.js";
import { grantStore } from "../../src/store/driver/grant-store.js";
import { type EngineAddress, openEngine } from "./keep-alive-engine.js";

/** A worker of a fleet that keeps its logins alive until SIGTERM. */
const { at, every } = JSON.parse(process.argv[2] ?? "{}") as { at: EngineAddress; every: `${number}s` };
const { driver, close } = await openEngine(at);
const store = grantStore(driver, { seal: "none", takeover: "fast" });
const agent = new AgentClient({ store });
const end = new AbortController();
process.once("SIGTERM", () => end.abort());
const kept = keepAlive(agent, { every, concurrency: 16, perIssuer: 16, signal: end.signal });
process.send?.({ event: "ready" });
const report = await kept;
process.send?.({ event: "ended", ...report });
await close();
process.disconnect();
