import { expect, it } from "vitest";
import { AgentAuthError } from "../../src/errors.js";
import { systemClock } from "../../src/http/deadline.js";
import { grantStore } from "../../src/store/driver/grant-store.js";
import { memoryDriver } from "../../src/store/driver/memory-driver.js";
import { memoryStore } from "../../src/store/memory.js";
import { pendingError } from "../helpers/captured.js";
import { startScene } from "../helpers/issuer.js";
import { until } from "../helpers/server.js";
import { HOUR, holdTokens, SIGNAL, TOKEN } from "./grant/support.js";

it("close lets refreshes in flight end, begins no other one, and returns tokens that are valid", async () => {
  const { mcp, issuer, agent, clock } = await startScene();
  const store = grantStore(memoryDriver(), { seal: "none" });
  const { sleep } = systemClock;
  const agents = agent({ store, clock: { now: () => clock.now(), epoch: () => clock.epoch(), sleep } });
  const [ann, bob, cid] = ["ann", "bob", "cid"].map((user) => agents.for({ tenant: "acme", user }));
  for (const one of [ann, bob]) await one?.login(mcp.url);
  await clock.sleep(HOUR, SIGNAL);
  await cid?.login(mcp.url);
  const answer = holdTokens(issuer);
  const before = issuer.to(TOKEN).length;
  const refreshed = ann?.token(mcp.url);
  await until(() => issuer.to(TOKEN).length > before);
  const closed = agents.close({ graceMs: 5000 });
  expect(await pendingError(bob?.token(mcp.url, { login: false }))).toMatchObject({ code: "aborted" });
  expect((await cid?.token(mcp.url))?.value).toMatch(/^access-as-/);
  expect(await agents.health()).toMatchObject({ ready: false, errors: ["the client is closed"] });
  answer();
  expect((await refreshed)?.value).toBe(`access-as-${before + 1}`);
  expect(await closed).toBe(true);
  expect(issuer.to(TOKEN)).toHaveLength(before + 1);
});

it("close ends after its grace where an issuer does not answer", async () => {
  const { mcp, issuer, agent, clock } = await startScene();
  const one = agent();
  await one.login(mcp.url);
  await clock.sleep(HOUR, SIGNAL);
  const answer = holdTokens(issuer);
  const before = issuer.to(TOKEN).length;
  const refreshed = one.token(mcp.url);
  await until(() => issuer.to(TOKEN).length > before);
  expect(await one.close({ graceMs: 10 })).toBe(false);
  answer();
  await refreshed;
  await expect(one.for({ user: "ann" }).close()).rejects.toThrow(
    new TypeError("a client of one user is not closed: close the one that it comes from"),
  );
});

it("health says whether the store can be used", async () => {
  const { agent } = await startScene();
  const well = { ready: true, errors: [], risks: [] };
  expect(await agent().health()).toEqual({ ...well, storedIn: "memory" });
  const driver = memoryDriver();
  const health = { clockAheadMs: 0, facts: {}, risks: ["it has no replica"], errors: ["it evicts logins"] };
  const unsafe = grantStore({ ...driver, health: async () => health }, { seal: "none" });
  const reported = { ready: false, errors: ["it evicts logins"], risks: ["it has no replica"] };
  expect(await agent({ store: unsafe }).health()).toMatchObject(reported);
  expect(await agent({ store: unsafe }).for({ tenant: "acme", user: "ann" }).health()).toMatchObject(reported);
  const down = memoryStore();
  down.read = async () => {
    throw new AgentAuthError("store_unavailable", "no answer", { class: "unavailable" });
  };
  expect(await agent({ store: down }).health()).toMatchObject({ ready: false, errors: ["no answer"] });
});
