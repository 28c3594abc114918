import { once } from "node:events";
import { expect } from "vitest";
import { fileStore } from "../../src/node.js";
import { until } from "../helpers/cli.js";
import { flowTest } from "./support.js";

const it = flowTest();
const NONE_OVERDUE = { count: 0, oldest: null, by_issuer: {} };

it("store keep-alive --once refreshes an idle login at its issuer, and no other one", async ({ me, url }) => {
  await me.logIn();
  const once = ["store", "keep-alive", "--once", "--every", "1h", "-o", "json"];
  const { code, stdout } = await me.run(once);
  expect([code, JSON.parse(stdout)]).toEqual([0, { refreshed: 0, needs_login: 0, overdue: NONE_OVERDUE }]);
  await me.age(-3600);
  const before = await me.grant();
  const idle = await me.run([...once, "--verbose"]);
  expect([idle.code, JSON.parse(idle.stdout)]).toEqual([0, { refreshed: 1, needs_login: 0, overdue: NONE_OVERDUE }]);
  expect(idle.stderr).toContain(`refreshed the login at "${url}"`);
  const after = await me.grant();
  expect(after.tokens.refreshToken?.reveal()).not.toBe(before.tokens.refreshToken?.reveal());
  expect(after.usedAt).toBe(before.tokens.obtainedAt);
});

it("warns of a login that its issuer has ended, and exits with 5 where it does not answer", async ({ me, faults }) => {
  await me.logIn();
  await me.age(-3600);
  const once = ["store", "keep-alive", "--once", "--every", "1h"];
  faults.add({ kind: "status", status: 503, path: "token", times: 1 });
  const failed = await me.run(once);
  expect(failed.code).toBe(7);
  expect(failed.stderr).toMatch(/warning: 1 login is overdue \(oldest token: 20[-\dT:.]+Z\): 1 at "http:\S+"\n/);
  expect(failed.stderr).toMatch(/warning: the login at \S+ \(profile "default"\) was not refreshed: /);
  // The issuer takes the second refresh for theft, since the answer to the first one was lost.
  faults.add({ kind: "reset-after", path: "token", times: 1 });
  expect(await me.run(once)).toMatchObject({ code: 0, stderr: expect.stringContaining("invalid_grant") });
});

it("warns once of an issuer that does not answer, for all accounts", async ({ me, faults }) => {
  await me.logIn();
  const grant = await me.grant();
  for (const profile of ["one", "two"]) await fileStore(me.home).save({ ...grant, profile }, undefined);
  faults.add({ kind: "status", status: 503, path: "token", times: 0 });
  const args = ["store", "keep-alive", "--once", "--every", "10s", "--concurrency", "1", "-o", "json"];
  const failures = async (...flags: string[]) => {
    const { code, stdout, stderr } = await me.run([...args, "--retries", "0", ...flags]);
    const { issuer } = grant;
    const overdue = { count: 3, oldest: expect.stringMatching(/Z$/), by_issuer: { [issuer]: 3 } };
    expect([code, JSON.parse(stdout)]).toEqual([7, { refreshed: 0, needs_login: 0, overdue }]);
    const warned = stderr.match(/^(?:warning: )?the login at .* was not refreshed: /gm) ?? [];
    return warned.map((line) => line.startsWith("warning: "));
  };
  await age(me.home, 3600);
  expect(await failures()).toEqual([true]);
  expect(await failures("--verbose")).toEqual([true, false, false]);
});

it.for([
  [["--every", "1s"], '--every "1s" must be a time such as 90m, 24h or 7d, at least 10s and at most 90d\n'],
  [["--concurrency", "0"], "must be a whole number of at least 1"],
  [["--once", "--tenant", "acme"], "has no tenants"],
] as const)("refuses %j", async ([flags, message], { me }) => {
  expect(await me.run(["store", "keep-alive", ...flags])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining(message),
  });
});

it("refuses the store in memory", async ({ me }) => {
  const { code, stderr } = await me.run(["store", "keep-alive", "--once"], { env: { AGENTAUTH_STORE: "memory" } });
  expect([code, stderr]).toEqual([2, expect.stringContaining("the store is memory")]);
  expect(await fileStore(me.home).list()).toEqual([]);
});

it.for([
  [["SIGTERM"], 0],
  [["SIGINT"], 130],
  [["SIGHUP"], 129],
  [["SIGHUP", "SIGTERM"], 129],
] as const)("ends at %j with %i, and says what it did", async ([signals, code], { me }) => {
  await me.logIn();
  const { child, out, err } = me.start(["store", "keep-alive", "-o", "json"]);
  const closed = once(child, "close");
  await until(() => err() !== "");
  for (const signal of signals) child.kill(signal);
  expect([(await closed)[0], JSON.parse(out()), err()]).toEqual([
    code,
    { refreshed: 0, needs_login: 0, overdue: NONE_OVERDUE },
    `keeping the logins in ${me.home} alive: each is refreshed once in 24h\n`,
  ]);
});

/** Makes the tokens of every login look as old as this. */
async function age(home: string, seconds: number): Promise<void> {
  const store = fileStore(home);
  for (const grant of await store.list()) {
    const { tokens, generation } = grant;
    const obtainedAt = (tokens.obtainedAt ?? 0) - seconds * 1000;
    const expiresAt = (tokens.expiresAt ?? 0) - seconds * 1000;
    await store.save(
      { ...grant, tokens: { ...tokens, obtainedAt, expiresAt }, generation: generation + 1 },
      generation,
    );
  }
}
