import { once } from "node:events";
import { describe, expect } from "vitest";
import { shownSecrets } from "../helpers/canaries.js";
import { runCli, startCli, traceCli, until } from "../helpers/cli.js";
import { runTest } from "./in-process-support.js";

const it = runTest();

describe("a run in this process", () => {
  it("prints for the terminal that it has", async ({ harness, newEnv }) => {
    const tty = { stdout: true };
    const env = { ...newEnv(), NO_COLOR: "1" };
    const runs = [30, 200].map((columns) => runCli(harness.devices, { env, tty, columns }));
    const [narrow, wide] = await Promise.all(runs);
    const longest = (text = "") => Math.max(...text.split("\n").map((line) => line.length));
    expect(longest(narrow?.stdout)).toBeLessThan(60);
    expect(longest(wide?.stdout)).toBeGreaterThan(60);
  });

  it("returns the programs that it started and the requests that it sent", async ({ harness, me, newEnv, url }) => {
    await me.logIn();
    const env = newEnv();
    const words = ["sh", "-c", 'test "$A_TOKEN" && echo true'];
    const run = await traceCli(["exec", url, "--as", "A_TOKEN", "--", ...words], {
      env: { ...env, AGENTAUTH_HOME: me.home },
    });
    expect(run).toMatchObject({ code: 0, stdout: "true\n", stderr: "" });
    const child = run.children.find(({ args }) => args[0] === "sh");
    expect(child).toMatchObject({ args: words, env: { A_TOKEN: expect.any(String) } });
    expect(child?.env).not.toHaveProperty("AGENTAUTH_API_TOKEN");
    const list = await traceCli(harness.devices, { env });
    expect(list.requests.map(({ method, url }) => [method, new URL(url).pathname])).toEqual([
      ["GET", "/api/v1/device"],
    ]);
  });

  it("passes standard input on to the command of exec, and ends with its exit code", async ({ me, url }) => {
    await me.logIn();
    const script = "cat; echo said >&2; exit 7";
    const run = await me.run(["exec", url, "--", "sh", "-c", script], { stdin: "typed\n" });
    expect(run).toEqual({ code: 7, signal: null, stdout: "typed\n", stderr: "said\n" });
  });

  it("ends on its own signal, and no other run ends", async ({ harness, faults, newEnv }) => {
    faults.add({ kind: "slow-headers", ms: 60_000, times: 0 });
    const [first, second] = [
      startCli(harness.devices, { env: newEnv() }),
      startCli(harness.devices, { env: newEnv() }),
    ];
    await until(() => faults.list()[0]?.fired === 2);
    first.kill("SIGTERM");
    expect(await once(first, "close")).toEqual([143, null]);
    expect([second.exitCode, second.signalCode]).toEqual([null, null]);
    second.kill("SIGINT");
    expect(await once(second, "close")).toEqual([130, null]);
  });
});

describe("of one run in this process nothing is left for the next", () => {
  const state = () => ({
    env: { ...process.env },
    exitCode: process.exitCode,
    title: process.title,
    folder: process.cwd(),
    listeners: process.eventNames().map((name) => `${String(name)} ${process.listenerCount(name)}`),
  });

  it("in the process: environment, exit code, listeners", async ({ harness, newEnv }) => {
    const before = state();
    for (const args of [[...harness.devices, "--lmit"], harness.devices, ["--help"], ["doctor"]]) {
      await Promise.all([runCli(args, { env: newEnv() }), runCli(args, { env: newEnv() })]);
      expect(state()).toEqual(before);
    }
  });

  it.for(["one after the other", "at once"])("in what is masked: %s", async (how, { harness, newEnv }) => {
    const shown = (word: string) => `--limit "${word}" must be`;
    const [mine, yours] = ["secret-word-of-one", "secret-word-of-two"];
    const run = (own: string, typed: string) => () =>
      runCli([...harness.devices, "--limit", typed], { env: { ...newEnv(), AGENTAUTH_API_TOKEN: own } });
    const runs = [run(mine, mine), run(yours, mine), run(mine, yours), run(yours, yours)];
    const results = [];
    if (how === "at once") results.push(...(await Promise.all(runs.map((one) => one()))));
    else for (const one of runs) results.push(await one());
    const texts = results.map(({ stderr }) => stderr);
    expect([texts[0]?.includes(mine), texts[3]?.includes(yours)]).toEqual([false, false]);
    expect(texts[1]).toContain(shown(mine));
    expect(texts[2]).toContain(shown(yours));
    // Each is a secret of one of the runs, and printed by the other one.
    const found = [mine, yours].map((word) => [...harness.devices, "--limit", word].join(" "));
    expect(shownSecrets().sort()).toEqual(found.map((line) => `AGENTAUTH_API_TOKEN on stderr of agentauth ${line}`));
  });
});

it("two runs at once in this process refresh a token once", async ({ me, url }) => {
  await me.logIn();
  await me.age(-10);
  const before = me.requests().length;
  const runs = await Promise.all([me.run(["token", url]), me.run(["token", url])]);
  expect(new Set(runs.map(({ stdout }) => stdout)).size).toBe(1);
  expect(runs.map(({ code }) => code)).toEqual([0, 0]);
  expect(
    me
      .requests()
      .slice(before)
      .filter((request) => request.startsWith("POST")),
  ).toHaveLength(1);
});
