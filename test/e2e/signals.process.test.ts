import { spawn } from "node:child_process";
import { once } from "node:events";
import { describe, expect } from "vitest";
import {
  allIds,
  BIN,
  cleanEnv,
  collect,
  linesOf,
  runHint,
  runProcess,
  startProcess,
  startTestbed,
  type Testbed,
  until,
} from "../helpers/cli.js";
import { testbedTest } from "../helpers/testbed-test.js";

const it = testbedTest({ devices: 500 })
  /** A list that takes many pages. */
  .extend("args", ({ testbed }) => [...testbed.devices, "--page-size", "20", "--concurrency", "1", "-o", "id"]);

describe("signals", () => {
  const slow = { kind: "slow-headers", ms: 300, after: 3, path: "device", times: 0 } as const;

  it.for([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)(
    "%s in the middle of a list: exit %i, and the command that continues",
    async ([signal, expected], { testbed, args }) => {
      testbed.sandbox.faults.add(slow);
      const { code, stdout, stderr } = await runProcess(args, {
        env: testbed.env,
        signalAfter: { characters: 400, signal },
      });
      expect(code).toBe(expected);
      expect(stderr).toMatch(new RegExp(`^error: ended by ${signal}\\nhint: continue with: agentauth devices list `));
      testbed.sandbox.faults.clear();
      const rest = await runHint(stderr, testbed.env);
      expect([...linesOf(stdout), ...linesOf(rest.stdout)]).toEqual(allIds(testbed.sandbox));
    },
  );

  it.for([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)(
    "%s leaves json open, with the error and its exit code %i as JSON",
    async ([signal, exit_code], { testbed, args }) => {
      testbed.sandbox.faults.add(slow);
      const run = await runProcess([...args, "-o", "json"], {
        env: testbed.env,
        signalAfter: { characters: 400, signal },
      });
      expect(run.code).toBe(exit_code);
      expect(() => JSON.parse(run.stdout)).toThrow();
      expect(JSON.parse(run.stderr)).toMatchObject({ error: { class: "aborted", code: "aborted", exit_code } });
    },
  );

  it("SIGINT before the first page: exit 130, nothing printed", async ({ testbed, args }) => {
    testbed.sandbox.faults.add({ kind: "slow-headers", ms: 60_000, times: 0 });
    const child = startProcess(args, { env: testbed.env });
    const [out, err] = [collect(child.stdout), collect(child.stderr)];
    const before = testbed.deviceRequests();
    const ended = once(child, "close");
    await requestOnItsWay(testbed, before);
    child.kill("SIGINT");
    expect([...(await ended), out(), err()]).toEqual([130, null, "", "error: ended by SIGINT\n"]);
  });

  it("a second SIGINT does not wait for a reader that has stopped reading", async ({ testbed }) => {
    const child = startProcess([...testbed.devices, "--page-size", "500", "-o", "json"], { env: testbed.env });
    const before = child.pid;
    expect(before).toBeDefined();
    const first = new Promise<void>((resolve) => child.stdout?.once("readable", () => resolve()));
    await first;
    child.kill("SIGINT");
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(child.exitCode).toBeNull();
    child.kill("SIGINT");
    expect((await once(child, "exit"))[0]).toBe(130);
  });

  it("one SIGTERM ends it too, a little later", async ({ testbed }) => {
    const child = startProcess([...testbed.devices, "--page-size", "500", "-o", "json"], { env: testbed.env });
    await new Promise<void>((resolve) => child.stdout?.once("readable", () => resolve()));
    child.kill("SIGTERM");
    expect((await once(child, "exit"))[0]).toBe(143);
  });

  /** The sandbox notes a request when it is answered, so that one in hand is seen by its fault. */
  async function requestOnItsWay(testbed: Testbed, before: number): Promise<void> {
    await until(
      () => testbed.deviceRequests() > before || testbed.sandbox.faults.list().some(({ fired }) => fired > 0),
    );
  }
});

describe("the reader of a list", () => {
  it("may leave early: exit 0, not a word", async ({ testbed }) => {
    const words = testbed.devices.map((word) => `'${word}'`).join(" ");
    const script = `{ "${process.execPath}" "${BIN}" ${words} --page-size 10 -o id; echo "code $?" >&2; } | head -n 3`;
    const child = spawn("bash", ["-c", script], { env: cleanEnv(testbed.env), stdio: "pipe" });
    const [out, err] = [collect(child.stdout), collect(child.stderr)];
    await once(child, "close");
    expect(linesOf(out())).toEqual(allIds(testbed.sandbox).slice(0, 3));
    expect(err()).toBe("code 0\n");
  });

  it("may leave before anything comes", async ({ testbed }) => {
    const child = startProcess([...testbed.devices, "-o", "json"], { env: testbed.env });
    const err = collect(child.stderr);
    child.stdout?.destroy();
    expect([(await once(child, "close"))[0], err()]).toEqual([0, ""]);
  });

  it("slows the fetching when it is slow", async () => {
    const big = await startTestbed({ devices: 20_000 });
    try {
      const child = startProcess([...big.devices, "--page-size", "100", "-o", "json"], { env: big.env });
      await until(() => big.deviceRequests() > 1);
      let before = -1;
      // Steady means that the program waits for its reader: everything that was under way has come.
      while (before !== big.deviceRequests()) {
        before = big.deviceRequests();
        await new Promise((resolve) => setTimeout(resolve, 500));
      }
      expect(before).toBeLessThan(40);
      const out = collect(child.stdout);
      expect((await once(child, "close"))[0]).toBe(0);
      expect((JSON.parse(out()) as unknown[]).length).toBe(20_000);
      expect(big.deviceRequests()).toBe(203);
    } finally {
      await big.sandbox.close();
    }
  });
});
