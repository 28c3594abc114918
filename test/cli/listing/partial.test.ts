import { describe, expect } from "vitest";
import { allIds, linesOf } from "../../helpers/cli.js";
import { testbedTest } from "../../helpers/testbed-test.js";
import { pasteHint } from "../paste-hint.js";

const it = testbedTest({ devices: 500 });

/** Flags of a list that is read page by page, and breaks at the first failure. */
const ONE_BY_ONE = ["--page-size", "30", "--retries", "0", "--concurrency", "1"];
const broken = { kind: "status", status: 503, path: "device", times: 0 } as const;

describe("a list that ends in the middle: exit 7", () => {
  it.for(["id", "plain", "csv", "ndjson", "table"])(
    "as %s, and the command in the hint yields exactly the rest",
    async (format, { testbed }) => {
      const idsIn = (text: string) =>
        text.match(/dev_\w+/g)?.filter((id, index, all) => all.indexOf(id) === index) ?? [];
      testbed.sandbox.faults.add({ ...broken, after: 4 });
      const flags = `-o ${format} --columns id --page-size 30 --retries 0`.split(" ");
      const first = await testbed.run([...testbed.devices, ...flags]);
      expect(first.code).toBe(7);
      expect(first.stderr).toMatch(/^(error: |\{.*"message":")the listing ended after \d+ items: .*HTTP 503/);
      testbed.sandbox.faults.clear();
      const rest = await pasteHint(first.stderr, testbed.env);
      expect(rest.code).toBe(0);
      const [begun, ended] = [idsIn(first.stdout), idsIn(rest.stdout)];
      expect(begun.length).toBeGreaterThan(0);
      expect([...begun, ...ended]).toEqual(allIds(testbed.sandbox));
    },
  );

  it("as json: an array that no parser takes for the whole", async ({ testbed }) => {
    testbed.sandbox.faults.add({ ...broken, after: 3 });
    const args = [...testbed.devices, "-o", "json", ...ONE_BY_ONE];
    const { code, stdout, stderr } = await testbed.run(args);
    expect(code).toBe(7);
    expect(() => JSON.parse(stdout)).toThrow();
    expect(JSON.parse(`${stdout}]`).map(({ id }: { id: string }) => id)).toEqual(allIds(testbed.sandbox).slice(0, 88));
    const { error } = JSON.parse(stderr) as { error: Record<string, unknown> };
    const failure = { class: "partial", code: "unexpected", exit_code: 7, resume: 88, status: 503, retryable: true };
    expect(error).toMatchObject(failure);
    expect(error["hint"]).toMatch(/^continue with: agentauth devices list .* --offset 88$/);
  });

  it("continues to the limit that was set, from the offset that was set, with the filters that were set", async ({
    testbed,
  }) => {
    testbed.sandbox.faults.add({ ...broken, after: 3 });
    const args = "--offset 10 --limit=200 --page-size 25 --concurrency 1 --retries 0 -o id".split(" ");
    const first = await testbed.run([...testbed.devices, ...args]);
    testbed.sandbox.faults.clear();
    const rest = await pasteHint(first.stderr, testbed.env);
    expect([...linesOf(first.stdout), ...linesOf(rest.stdout)]).toEqual(allIds(testbed.sandbox).slice(10, 210));
    testbed.sandbox.faults.add({ ...broken, after: 3 });
    const filter = ["--title", "*[ '\"$]*", "--status", "active", "--page-size", "25", "--retries", "0", "-o", "id"];
    const chosen = await testbed.run([...testbed.devices, ...filter]);
    testbed.sandbox.faults.clear();
    const others = await pasteHint(chosen.stderr, testbed.env);
    const whole = await testbed.run([...testbed.devices, ...filter]);
    expect(others.code).toBe(0);
    expect(chosen.stdout + others.stdout).toBe(whole.stdout);
  });

  it("keeps what it gave before where a page's numbers go in circles", async ({ testbed }) => {
    testbed.sandbox.faults.add({ kind: "stuck-offset", after: 2, times: 0 });
    const { code, stdout, stderr } = await testbed.run([...testbed.devices, "-o", "id", ...ONE_BY_ONE]);
    expect([code, linesOf(stdout)]).toEqual([7, allIds(testbed.sandbox).slice(0, 88)]);
    expect(stderr).toMatch(/^error: the listing ended after 88 items: /);
  });

  it("has the offset to continue from where a page has no pagination, and is refused where that is the first", async ({
    testbed,
  }) => {
    const args = [...testbed.devices, "-o", "id", "--page-size", "30", "--concurrency", "1"];
    testbed.sandbox.faults.add({ kind: "omit-pagination", after: 2, path: "device" });
    const { code, stdout, stderr } = await testbed.run(args);
    expect([code, linesOf(stdout)]).toEqual([7, allIds(testbed.sandbox).slice(0, 59)]);
    expect(stderr).toMatch(/hint: continue with: agentauth devices list .* --offset 59$/m);
    testbed.sandbox.faults.clear();
    testbed.sandbox.faults.add({ kind: "omit-pagination", path: "device" });
    expect(await testbed.run(args)).toMatchObject({ code: 3, stdout: "" });
  });

  it("prints nothing where the first page fails, and is not partial then", async ({ testbed }) => {
    testbed.sandbox.faults.add(broken);
    const { code, stdout } = await testbed.run([...testbed.devices, "-o", "json", "--retries", "0"]);
    expect({ code, stdout }).toEqual({ code: 5, stdout: "" });
  });

  it("with --jq on the whole array says that nothing was printed", async ({ testbed }) => {
    testbed.sandbox.faults.add({ ...broken, after: 2 });
    const { code, stdout, stderr } = await testbed.run([...testbed.devices, "--jq", "length", ...ONE_BY_ONE]);
    expect([code, stdout]).toEqual([7, ""]);
    expect(stderr).toContain("hint: nothing was printed, since --jq sees the whole array");
    testbed.sandbox.faults.clear();
    testbed.sandbox.faults.add({ ...broken, after: 2 });
    const args = [...testbed.devices, ...ONE_BY_ONE];
    const byPage = await testbed.run([...args, "-o", "id", "--jq", ".[]"]);
    const [seen] = [linesOf(byPage.stdout)];
    expect(seen).toEqual(allIds(testbed.sandbox).slice(0, seen.length));
    expect(byPage.stderr).toContain(
      `hint: continue with: agentauth ${args.join(" ")} -o id --jq '.[]' --offset ${seen.length}`,
    );
  });
});

describe("the short form of a list", () => {
  it.for(["json", "ndjson", "plain", "csv"])("as %s says what it left out", async (format, { testbed }) => {
    const args = [...testbed.devices, "--brief", "-o", format, "--limit", "2"];
    const { code, stdout, stderr } = await testbed.run(args);
    const columns = "id,title,status,session_type,last_seen.at,last_seen.country_code,last_seen.city";
    const next = `agentauth ${testbed.devices.join(" ")} --brief -o ${format} --offset 2 --limit 2`;
    expect(code).toBe(0);
    if (format === "plain") expect(linesOf(stdout)[0]?.split("\t")).toHaveLength(7);
    if (format === "csv") expect(linesOf(stdout)[0]?.trim()).toBe(columns);
    if (!format.includes("json")) return expect(stderr).toBe(`shown 2 of 500; continue with: ${next}\n`);
    expect(JSON.parse(stderr)).toEqual({
      ...{ shown: 2, total: 500, columns, next: { offset: 2, command: next } },
      message: "the short form, as with --brief; -o json prints everything, --limit or --columns what it names",
    });
  });

  it("has fifty items and the columns that are named", async ({ testbed }) => {
    const { stdout, stderr } = await testbed.run([
      ...testbed.devices,
      "--brief",
      "--json",
      "--columns",
      "id",
      "--quiet",
    ]);
    expect([JSON.parse(stdout).length, Object.keys(JSON.parse(stdout)[0])]).toEqual([50, ["id"]]);
    expect(JSON.parse(stderr)).toMatchObject({ shown: 50, columns: "id", next: { offset: 50 } });
    const last = await testbed.run([...testbed.devices, "--brief", "--json", "--offset", "490", "--quiet"]);
    expect([JSON.parse(last.stdout).length, last.stderr]).toEqual([10, ""]);
  });
});
