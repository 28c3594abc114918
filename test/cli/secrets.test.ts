import { describe, expect } from "vitest";
import { benchTest } from "../helpers/bench-test.js";
import { linesOf, unsafeIn } from "../helpers/cli.js";

const it = benchTest({ devices: 30 });

const SECRET = "<CLIENT_SECRET>";
const COLUMNS = ["--columns", "id,dynamic_client_details.client_secret,dynamic_client_details"];

describe("a client secret", () => {
  it.for(["json", "ndjson"])("is masked in %s until --show-secrets is given", async (format, { bench }) => {
    const args = [...bench.devices, "--limit", "2", "-q", "-o", format];
    const hidden = await bench.run(args);
    expect(hidden.stdout).toContain("********");
    expect(hidden.stdout).not.toContain(SECRET);
    expect((await bench.run([...args, "--show-secrets"])).stdout.split(SECRET)).toHaveLength(3);
  });

  it.for(["table", "wide", "plain", "csv", "json"])(
    "is masked in %s where a column names it",
    async (format, { bench }) => {
      const args = [...bench.devices, "--limit", "1", "-q", "-o", format, ...COLUMNS];
      const hidden = await bench.run(args);
      expect(hidden.stdout).toContain("********");
      expect(hidden.stdout).not.toContain(SECRET);
      expect((await bench.run([...args, "--show-secrets"])).stdout).toContain(SECRET);
    },
  );

  it.for(["table", "plain", "json", "csv"])("is masked in devices get as %s", async (format, { bench }) => {
    const { pool } = bench.sandbox.ids;
    const id = bench.sandbox.data.device(pool, 3)?.id ?? "";
    const args = ["devices", "get", id, "--pool", pool, "-o", format];
    expect((await bench.run(args)).stdout).not.toContain(SECRET);
    expect((await bench.run([...args, "--show-secrets"])).stdout).toContain(SECRET);
  });

  it("is masked in raw answers, and for jq", async ({ bench }) => {
    const { pool } = bench.sandbox.ids;
    const api = ["api", "GET", "/api/v1/device", "-f", `pool_id=${pool}`];
    expect((await bench.run(api)).stdout).not.toContain(SECRET);
    expect((await bench.run([...api, "--show-secrets"])).stdout).toContain(SECRET);
    const jq = [...bench.devices, "--jq", ".[0].dynamic_client_details.client_secret"];
    expect((await bench.run(jq)).stdout).toBe("********\n");
    expect((await bench.run([...jq, "--show-secrets"])).stdout).toBe(`${SECRET}\n`);
  });
});

describe("the API token", () => {
  it("is in no output, trace or error, however much is logged", async ({ bench }) => {
    bench.sandbox.faults.add({ kind: "status", status: 400, body: "html", after: 1, path: "device" });
    for (const flags of [["--debug"], ["-v"], ["-o", "json", "--debug"]]) {
      const { stdout, stderr } = await bench.run([...bench.devices, "--page-size", "10", ...flags]);
      expect(stderr).not.toBe("");
      expect(stdout + stderr).not.toContain(bench.sandbox.apiToken);
    }
  });

  it("is masked where a service says it back", async ({ bench }) => {
    const body = { status: "error", code: "bad_request", message: `no such thing: ${bench.sandbox.apiToken}` };
    bench.sandbox.faults.add({ kind: "wrong-envelope", body });
    const { code, stderr } = await bench.run(bench.devices);
    expect(code).toBe(6);
    expect(stderr).toContain("no such thing: ********");
    expect(stderr).not.toContain(bench.sandbox.apiToken);
  });
});

describe("text that a terminal would act on", () => {
  it.for(["table", "wide", "plain", "json", "ndjson", "id"])("comes out harmless as %s", async (format, { bench }) => {
    bench.sandbox.faults.add({ kind: "hostile-text", times: 0 });
    const { code, stdout, stderr } = await bench.run([...bench.devices, "-o", format]);
    expect(code).toBe(0);
    expect(unsafeIn(stdout + stderr)).toEqual([]);
  });

  it("keeps one line an item", async ({ bench }) => {
    bench.sandbox.faults.add({ kind: "hostile-text", text: "a\nb\rc\u2028d\te", times: 0 });
    for (const format of ["plain", "ndjson"]) {
      const { stdout } = await bench.run([...bench.devices, "-o", format]);
      expect(linesOf(stdout)).toHaveLength(30);
    }
    const { stdout } = await bench.run([...bench.devices, "-o", "plain", "--limit", "1"]);
    expect(stdout.split("\t")[1]).toBe("a\\nb\\rc\\u{2028}d\\te");
  });

  it("parses back equal from JSON", async ({ bench }) => {
    const text = "\u001b[31mred\u0007 \u202egnp.exe \u200b\u2028 \u009b2J";
    bench.sandbox.faults.add({ kind: "hostile-text", text, times: 0 });
    const { stdout } = await bench.run([...bench.devices, "--limit", "1", "-q", "-o", "json"]);
    expect(JSON.parse(stdout)).toMatchObject([{ title: text }]);
    expect(unsafeIn(stdout)).toEqual([]);
  });

  it("is harmless in an error and in devices get", async ({ bench }) => {
    const hostile = "\u001b]0;title\u0007\u202e\r\nerror: not ours";
    const fault = { kind: "wrong-envelope", body: { status: "error", code: "bad_request", message: hostile } } as const;
    bench.sandbox.faults.add(fault);
    const reported = await bench.run(bench.devices);
    expect([reported.code, unsafeIn(reported.stderr), linesOf(reported.stderr).length]).toEqual([6, [], 1]);
    bench.sandbox.faults.add(fault);
    const json = await bench.run([...bench.devices, "-o", "json"]);
    expect([json.code, unsafeIn(json.stderr), linesOf(json.stderr).length]).toEqual([6, [], 1]);
    bench.sandbox.faults.clear();
    bench.sandbox.faults.add({ kind: "hostile-text", times: 0 });
    const { pool } = bench.sandbox.ids;
    const get = await bench.run([
      "devices",
      "get",
      bench.sandbox.data.device(pool, 3)?.id ?? "",
      "--pool",
      pool,
      "-o",
      "table",
    ]);
    expect([get.code, unsafeIn(get.stdout)]).toEqual([0, []]);
  });

  it("is harmless where the user typed it", async ({ bench }) => {
    const { stderr } = await bench.run([...bench.devices, "--sort", "\u001b[31mx\u202e"]);
    expect(unsafeIn(stderr)).toEqual([]);
    const flag = await bench.run([...bench.devices, "--\u001b[31mflag"]);
    expect([flag.code, unsafeIn(flag.stderr)]).toEqual([2, []]);
    const command = await bench.run(["dev\u001b[31mices"]);
    expect([command.code, unsafeIn(command.stderr)]).toEqual([2, []]);
  });
});
