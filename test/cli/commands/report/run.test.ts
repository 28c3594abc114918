import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect } from "vitest";
import type { Report } from "../../../../src/cli/commands/report/findings.js";
import { linesOf, runCli, temporaryFolder, unsafeIn } from "../../../helpers/cli.js";
import { sendJson, startServer } from "../../../helpers/server.js";
import { SampleService } from "../../../helpers/service.js";
import { testbedTest } from "../../../helpers/testbed-test.js";
import { pasteHint } from "../../paste-hint.js";

const it = testbedTest({ devices: 500 })
  .extend("report", ({ testbed }) => ["devices", "report", "--pool", testbed.sandbox.ids.pool])
  .extend("numbers", ({ testbed, report }) => async (...flags: string[]): Promise<Report> => {
    const { code, stdout, stderr } = await testbed.run([...report, "-o", "json", ...flags]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    return JSON.parse(stdout) as Report;
  });

const broken = { kind: "status", status: 503, path: "device", times: 0 } as const;
const untilBroken = ["--page-size", "30", "--retries", "0", "--concurrency", "1"];

describe("agentauth devices report", () => {
  it("counts what a list of the same devices holds", async ({ testbed, numbers }) => {
    const devices = await testbed.service.devices.list({ pool_id: testbed.sandbox.ids.pool }).toArray();
    const count = (test: (device: (typeof devices)[number]) => boolean) => devices.filter(test).length;
    const { status, session_type, countries, devices: reported, complete } = await numbers();
    expect([complete, reported.counted, reported.read, reported.total]).toEqual([true, 500, 500, 500]);
    for (const { value, count: counted } of status.top) expect(counted).toBe(count((one) => one.status === value));
    for (const { value, count: counted } of session_type.top) {
      expect(counted).toBe(count((one) => one.session_type === value));
    }
    for (const { value, count: counted } of countries.top) {
      expect(counted).toBe(count((one) => one.last_seen?.country_code === value));
    }
    expect(countries.top.reduce((sum, one) => sum + one.count, 0) + countries.others).toBe(500);
  });

  it("prints a text that fits, without an escape code in a pipe and with colours where they are forced", async ({
    testbed,
    report,
  }) => {
    const plain = await testbed.run(report, { env: { COLUMNS: "100" } });
    expect([plain.code, plain.stderr]).toEqual([0, ""]);
    expect(plain.stdout).not.toContain("\u001b");
    expect(plain.stdout).toMatch(/^STATUS$/m);
    expect(plain.stdout).toMatch(/^FINDINGS$/m);
    const forced = await testbed.run(report, { env: { COLUMNS: "100", FORCE_COLOR: "1" } });
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the colours
    const bare = forced.stdout.replace(/\u001b\[\d+m/g, "");
    expect(bare.replace(/read \S+ \S+/, "")).toBe(plain.stdout.replace(/read \S+ \S+/, ""));
    expect(forced.stdout.length).toBeGreaterThan(bare.length);
    const ascii = await testbed.run(report, { env: { LANG: "C" } });
    expect(ascii.stdout).toMatch(/^active +\d+ +\d+%$/m);
  });

  it("takes the filters and the limits of a list, and says so", async ({ numbers }) => {
    const active = await numbers("--status", "active", "--session-type", "mcp");
    expect(active.status.top).toEqual([{ value: "active", count: active.devices.counted }]);
    expect(active.devices.counted).toBeLessThan(500);
    expect(active.notes).toEqual([
      `${active.devices.counted} of 500 devices match --status active, --session-type mcp`,
    ]);
    const few = await numbers("--limit", "40", "--offset", "10");
    expect([few.devices.counted, few.complete]).toEqual([40, true]);
    expect(few.notes).toEqual([
      "started at offset 10: earlier devices are not counted",
      "ended at --limit 40: the pool has more devices",
    ]);
    const both = await numbers("--status", "revoked", "--limit", "5", "--sort", "last_seen:desc");
    expect([both.devices.counted, both.status.top]).toEqual([5, [{ value: "revoked", count: 5 }]]);
    expect(both.notes).toContain("ended at --limit 5: the pool has more devices");
  });

  it("sends the order that is asked for, and warns of no value that a device has", async ({ testbed, report }) => {
    const sorted = await testbed.run([...report, "--sort", "last_seen:desc", "--limit", "5"]);
    expect([sorted.code, sorted.stderr]).toEqual([0, ""]);
    expect(JSON.stringify(testbed.sandbox.requests.findLast(({ path }) => path === "/api/v1/device")?.query)).toMatch(
      /last_seen.*desc/,
    );
    const nothing = await testbed.run([...report, "--offset", "500"]);
    expect([nothing.code, nothing.stderr, /^0 devices /m.test(nothing.stdout)]).toEqual([0, "", true]);
    testbed.sandbox.faults.add({ kind: "unknown-enum", times: 0 });
    const unusual = await testbed.run([...report, "--status", "paused", "--limit", "3"]);
    expect([unusual.stderr, /^3 devices /m.test(unusual.stdout)]).toEqual(["", true]);
  });

  it("takes the format of the profile, unless that is one for rows", async ({ testbed, report }) => {
    const env = { AGENTAUTH_HOME: temporaryFolder() };
    for (const [format, start] of [
      ["json", /^\{"type":"device_report",/],
      ["csv", /^Devices of pool /],
      ["plain", /^Devices of pool /],
    ] as const) {
      await runCli(["config", "set", "output", format], { env });
      expect((await testbed.run([...report, "--limit", "3"], { env })).stdout).toMatch(start);
    }
    const named = await testbed.run([...report, "--limit", "3", "-o", "plain"]);
    expect(named.stdout).toMatch(/^Devices of pool /);
    const filtered = await testbed.run([...report, "--limit", "3", "-o", "table", "--jq", ".devices.counted"]);
    expect([filtered.code, filtered.stdout, filtered.stderr]).toEqual([0, "3\n", ""]);
  });

  it("gives its numbers to jq", async ({ testbed, report }) => {
    const counted = await testbed.run([...report, "--jq", ".devices.counted"]);
    expect([counted.code, counted.stdout]).toEqual([0, "500\n"]);
  });

  it("holds no secret, whatever it prints", async ({ testbed, report }) => {
    const path = join(temporaryFolder(), "out.html");
    for (const flags of [[], ["-o", "json"], ["--html", path]]) {
      const { stdout } = await testbed.run([...report, ...flags]);
      expect(stdout).not.toMatch(/client_secret|CLIENT_SECRET|\*{4}/);
    }
    expect(readFileSync(path, "utf8")).not.toMatch(/client_secret|CLIENT_SECRET|\*{4}/);
  });

  it("complains of what it does not know, and offers what was meant", async ({ testbed, report }) => {
    const wrong = await testbed.run([...report, "-o", "csv"]);
    expect([wrong.code, wrong.stdout]).toEqual([2, ""]);
    expect(wrong.stderr).toMatch(/^error: --output "csv" must be one of table, plain, json, ndjson/m);
    const none = await testbed.run([...report, "--status", "actve"]);
    expect(none.stdout.replace(/\s+/g, " ")).toContain('did you mean "active"?');
    const asJson = await testbed.run([...report, "--status", "actve", "--json"]);
    expect(asJson.stderr).toContain('did you mean "active"?');
    const lost = await testbed.run(["devices", "report"]);
    expect(lost.stderr).toContain("hint: agentauth devices report --pool <pool_id>");
  });
});

describe("agentauth devices report --html", () => {
  it("writes one page, says where, and prints nothing else", async ({ testbed, report }) => {
    const folder = temporaryFolder();
    const path = join(folder, "out.html");
    const { code, stdout, stderr } = await testbed.run([...report, "--html", path]);
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: "", stderr: `wrote "${path}": 500 devices\n` });
    expect(readdirSync(folder)).toEqual(["out.html"]);
    const page = readFileSync(path, "utf8");
    expect(page).toMatch(/^<!doctype html>\n<html lang="en">/);
    expect(page.length).toBeLessThan(400_000);
    expect(unsafeIn(page)).toEqual([]);
  });

  it("leaves a file that is there alone, before it asks for anything", async ({ testbed, report }) => {
    const path = join(temporaryFolder(), "out.html");
    writeFileSync(path, "mine");
    const before = testbed.deviceRequests();
    const { code, stderr } = await testbed.run([...report, "--html", path]);
    expect(code).toBe(2);
    expect(stderr).toBe(`error: --html "${path}" already exists\nhint: give another file, or remove it: rm ${path}\n`);
    expect([testbed.deviceRequests(), readFileSync(path, "utf8")]).toEqual([before, "mine"]);
  });

  it("refuses a place that no file can be in, and prints the numbers beside the file where they are asked for", async ({
    testbed,
    report,
  }) => {
    const path = join(temporaryFolder(), "gone", "out.html");
    const lost = await testbed.run([...report, "--html", path]);
    expect([lost.code, lost.stderr]).toEqual([
      2,
      `error: --html "${path}" cannot be written (ENOENT)\nhint: give another file\n`,
    ]);
    const folder = temporaryFolder();
    const both = await testbed.run([...report, "--html", join(folder, "out.html"), "--json"]);
    expect([JSON.parse(both.stdout).devices.counted, readdirSync(folder)]).toEqual([500, ["out.html"]]);
  });
});

describe("a report on a pool that could not be read to its end: exit 7", () => {
  it("says so on its face, and names the command that reports on the rest", async ({ testbed, report }) => {
    testbed.sandbox.faults.add({ ...broken, after: 3 });
    const { code, stdout, stderr } = await testbed.run([...report, ...untilBroken]);
    expect(code).toBe(7);
    expect(stdout).toMatch(/^INCOMPLETE: not all of the devices are in these numbers$/m);
    expect(stdout).toMatch(/^88 devices /m);
    expect(stdout).toMatch(/^note: the list ended early: 88 devices of the 500 of the pool could be read$/m);
    expect(stdout).not.toContain("ended at --limit");
    testbed.sandbox.faults.clear();
    expect(stderr).toContain(`continue with: agentauth devices report --pool ${report.at(-1)} --page-size`);
    const rest = await pasteHint(stderr, testbed.env);
    expect(rest.code).toBe(0);
    expect(rest.stdout).toMatch(/^412 devices /m);
  });

  it("names how many are left of a limit", async ({ testbed, report }) => {
    testbed.sandbox.faults.add({ ...broken, after: 3 });
    const { code, stderr } = await testbed.run([...report, ...untilBroken, "--limit", "200"]);
    expect([code, stderr]).toEqual([7, expect.stringMatching(/ --offset 88 --limit 112\n$/)]);
  });

  it("counts no device without an id, and says how many there are", async () => {
    const service = new SampleService(40, 20);
    service.items = service.ids().map((id, at) => (at >= 10 && at < 40 ? {} : { id })) as never;
    const { code, stdout, stderr } = await runCli(["devices", "report", "--pool", "p"], {
      env: await service.listen(),
    });
    expect([code, /^10 devices /m.test(stdout)]).toEqual([7, true]);
    expect(stdout).toMatch(/^note: 30 devices without an id are not counted$/m);
    expect(stderr).toContain("30 of the devices");
    const command = "agentauth api GET /api/v1/device -f pool_id=p --paginate";
    expect(stderr).toContain(`${command} prints them`);
  });

  it("as JSON and as a page as well, and the rest goes into another file", async ({ testbed, report }) => {
    const cwd = temporaryFolder();
    const path = join(cwd, "out.html");
    testbed.sandbox.faults.add({ ...broken, after: 3 });
    const { code, stdout, stderr } = await testbed.run([...report, ...untilBroken, "-o", "json", "--html", path]);
    expect(code).toBe(7);
    expect(JSON.parse(stdout)).toMatchObject({ complete: false, devices: { counted: 88, total: 500 } });
    expect(readFileSync(path, "utf8")).toContain("Incomplete: not all of the devices are in these numbers.");
    expect(JSON.parse(stderr.split("\n").find((line) => line.startsWith("{")) ?? "").error).toMatchObject({
      class: "partial",
      exit_code: 7,
      resume: 88,
    });
    testbed.sandbox.faults.clear();
    const hint = linesOf(stderr).find((line) => line.startsWith("{")) ?? "";
    expect((await pasteHint(hint, testbed.env)).code).toBe(0);
    expect(readFileSync(join(cwd, "out.html.from-88.html"), "utf8")).toContain("412 devices");
    expect(readFileSync(path, "utf8")).toContain("88 devices");
  });

  it("makes nothing where nothing could be read", async ({ testbed, report }) => {
    testbed.sandbox.faults.add(broken);
    const path = join(temporaryFolder(), "out.html");
    const { code, stdout } = await testbed.run([...report, "--retries", "0", "--html", path]);
    expect({ code, stdout, made: existsSync(path) }).toEqual({ code: 5, stdout: "", made: false });
  });

  it("makes nothing where it was interrupted", async ({ testbed, report }) => {
    testbed.sandbox.faults.add({ kind: "slow-headers", ms: 600_000, path: "device", times: 0 });
    const path = join(temporaryFolder(), "out.html");
    const child = testbed.start([...report, "--html", path]);
    const before = testbed.deviceRequests();
    await expect.poll(() => testbed.deviceRequests(), { timeout: 20_000 }).toBeGreaterThan(before);
    const ended = new Promise((resolve) => child.once("close", resolve));
    child.kill("SIGINT");
    expect([await ended, existsSync(path)]).toEqual([130, false]);
  });
});

describe("a report on a pool whose list changes or repeats itself", () => {
  const oneByOne = ["--page-size", "30", "--concurrency", "1"];

  it("says so in the report and in a warning", async ({ testbed, report }) => {
    testbed.sandbox.faults.add({ kind: "insert", count: 1, times: 1 });
    const { code, stdout, stderr } = await testbed.run([...report, ...oneByOne]);
    expect(code).toBe(7);
    expect(stderr).toMatch(
      /^warning: the list changed while it was read; the report says so\nerror: 1 item may be missing\n/,
    );
    expect(stdout).toMatch(/^INCOMPLETE: /m);
    expect(stdout.replace(/\s+/g, " ")).toContain(
      "note: the list changed while it was read: devices that were added or removed may be missing",
    );
  });

  it("goes into a file of the same name for the rest, also with --html=<file>", async ({ testbed, report }) => {
    const folder = temporaryFolder();
    testbed.sandbox.faults.add({ ...broken, after: 3 });
    const { code, stderr } = await testbed.run([...report, ...untilBroken, `--html=${join(folder, "out.html")}`]);
    expect(code).toBe(7);
    expect(stderr).toContain(`--html=${join(folder, "out.html.from-88.html")}`);
  });

  it("names the notes of numbers that the service repeats", async () => {
    const device = { id: "dev_1", title: "a", status: "active", session_type: "mcp" };
    const { origin } = await startServer((response, { url }) => {
      const offset = Number(new URL(url, "http://x").searchParams.get("pagination[offset]") ?? 0);
      const summaries = offset < 2 ? [device] : [];
      const pagination = { item_count: 2, page_offset: offset, page_size: 1, next_page_offset: offset < 1 ? 1 : null };
      sendJson(response, { status: "success", summaries, pagination, sorting: { field: "id", direction: "asc" } });
    });
    const env = { AGENTAUTH_BASE_URL: origin, AGENTAUTH_API_TOKEN: "token-of-a-test" };
    const { code, stdout, stderr } = await runCli(["devices", "report", "--pool", "p", "--page-size", "1"], { env });
    expect(stdout).toMatch(/^1 device /m);
    expect(code).toBe(7);
    expect(stderr).toMatch(
      /^warning: the service listed 1 item twice; each is counted once\nerror: 1 item may be missing\n/,
    );
  });

  it("names no number that the service does not say", async () => {
    const { origin } = await startServer((response, { url }) => {
      if (new URL(url, "http://x").searchParams.get("pagination[offset]") === "1") return sendJson(response, {}, 400);
      const pagination = { page_offset: 0, page_size: 1, next_page_offset: 1 };
      sendJson(response, { status: "success", summaries: [{ id: "dev_1" }], pagination });
    });
    const env = { AGENTAUTH_BASE_URL: origin, AGENTAUTH_API_TOKEN: "token-of-a-test" };
    const args = ["devices", "report", "--pool", "p", "--page-size", "1", "-o", "json"];
    const { code, stdout } = await runCli(args, { env });
    expect(code).toBe(7);
    expect(JSON.parse(stdout)).toMatchObject({
      ...{ complete: false, devices: { counted: 1, read: 1, total: null } },
      notes: ["the list ended early: 1 device could be read"],
    });
  });
});
