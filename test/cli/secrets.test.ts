import { describe, expect } from "vitest";
import { linesOf, unsafeIn } from "../helpers/cli.js";
import { testbedTest } from "../helpers/testbed-test.js";

const it = testbedTest({ devices: 30 });

const SECRET = "<CLIENT_SECRET>";
const COLUMNS = ["--columns", "id,dynamic_client_details.client_secret,dynamic_client_details"];

describe("a client secret", () => {
  it.for(["json", "ndjson"])("is masked in %s until --show-secrets is given", async (format, { testbed }) => {
    const args = [...testbed.devices, "--limit", "2", "-q", "-o", format];
    const hidden = await testbed.run(args);
    expect(hidden.stdout).toContain("********");
    expect(hidden.stdout).not.toContain(SECRET);
    expect((await testbed.run([...args, "--show-secrets"])).stdout.split(SECRET)).toHaveLength(3);
  });

  // Each format masks it in output/writer.test.ts.
  it("is masked where a column names it, and in devices get", async ({ testbed }) => {
    const { pool } = testbed.sandbox.ids;
    const get = ["devices", "get", testbed.sandbox.data.device(pool, 3)?.id ?? "", "--pool", pool, "-o", "plain"];
    for (const args of [[...testbed.devices, "--limit", "1", "-q", "-o", "table", ...COLUMNS], get]) {
      const hidden = await testbed.run(args);
      expect(hidden.stdout).toContain("********");
      expect(hidden.stdout).not.toContain(SECRET);
      expect((await testbed.run([...args, "--show-secrets"])).stdout).toContain(SECRET);
    }
  });

  it("is masked in raw answers, and for jq", async ({ testbed }) => {
    const { pool } = testbed.sandbox.ids;
    const api = ["api", "GET", "/api/v1/device", "-f", `pool_id=${pool}`];
    expect((await testbed.run(api)).stdout).not.toContain(SECRET);
    expect((await testbed.run([...api, "--show-secrets"])).stdout).toContain(SECRET);
    const jq = [...testbed.devices, "--jq", ".[0].dynamic_client_details.client_secret"];
    expect((await testbed.run(jq)).stdout).toBe("********\n");
    expect((await testbed.run([...jq, "--show-secrets"])).stdout).toBe(`${SECRET}\n`);
  });
});

describe("the API token", () => {
  it("is in no output, trace or error, however much is logged", async ({ testbed }) => {
    testbed.sandbox.faults.add({ kind: "status", status: 400, body: "html", after: 1, path: "device" });
    for (const flags of [["--debug"], ["-v"], ["-o", "json", "--debug"]]) {
      const { stdout, stderr } = await testbed.run([...testbed.devices, "--page-size", "10", ...flags]);
      expect(stderr).not.toBe("");
      expect(stdout + stderr).not.toContain(testbed.sandbox.apiToken);
    }
  });

  it("is masked where a service says it back", async ({ testbed }) => {
    const body = { status: "error", code: "bad_request", message: `no such thing: ${testbed.sandbox.apiToken}` };
    testbed.sandbox.faults.add({ kind: "wrong-envelope", body });
    const { code, stderr } = await testbed.run(testbed.devices);
    expect(code).toBe(6);
    expect(stderr).toContain("no such thing: ********");
    expect(stderr).not.toContain(testbed.sandbox.apiToken);
  });
});

// Lists and single objects in each format are in output/hostile-text.test.ts.
describe("text that a terminal would act on", () => {
  it("keeps one line an item", async ({ testbed }) => {
    testbed.sandbox.faults.add({ kind: "hostile-text", text: "a\nb\rc\u2028d\te", times: 0 });
    for (const format of ["plain", "ndjson"]) {
      const { stdout } = await testbed.run([...testbed.devices, "-o", format]);
      expect(linesOf(stdout)).toHaveLength(30);
    }
    const { stdout } = await testbed.run([...testbed.devices, "-o", "plain", "--limit", "1"]);
    expect(stdout.split("\t")[1]).toBe("a\\nb\\rc\\u{2028}d\\te");
  });

  it("is harmless in an error", async ({ testbed }) => {
    const hostile = "\u001b]0;title\u0007\u202e\r\nerror: not ours";
    const fault = { kind: "wrong-envelope", body: { status: "error", code: "bad_request", message: hostile } } as const;
    testbed.sandbox.faults.add(fault);
    const reported = await testbed.run(testbed.devices);
    expect([reported.code, unsafeIn(reported.stderr), linesOf(reported.stderr).length]).toEqual([6, [], 1]);
    testbed.sandbox.faults.add(fault);
    const json = await testbed.run([...testbed.devices, "-o", "json"]);
    expect([json.code, unsafeIn(json.stderr), linesOf(json.stderr).length]).toEqual([6, [], 1]);
  });

  it("is harmless where the user typed it", async ({ testbed }) => {
    const { stderr } = await testbed.run([...testbed.devices, "--sort", "\u001b[31mx\u202e"]);
    expect(unsafeIn(stderr)).toEqual([]);
    const flag = await testbed.run([...testbed.devices, "--\u001b[31mflag"]);
    expect([flag.code, unsafeIn(flag.stderr)]).toEqual([2, []]);
    const command = await testbed.run(["dev\u001b[31mices"]);
    expect([command.code, unsafeIn(command.stderr)]).toEqual([2, []]);
  });
});
