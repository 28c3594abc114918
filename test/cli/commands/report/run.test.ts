import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import stringWidth from "string-width";
import { describe, expect } from "vitest";
import { type Report, shareText } from "../../../../src/cli/commands/report/findings.js";
import { createCounter, reportText } from "../../../../src/cli/commands/report/run.js";
import { linesOf, runCli, temporaryFolder, unsafeIn } from "../../../helpers/cli.js";
import { createMemoryIo } from "../../../helpers/memory-io.js";
import { sendJson, startServer } from "../../../helpers/server.js";
import { SampleService } from "../../../helpers/service.js";
import { testbedTest } from "../../../helpers/testbed-test.js";
import { unsafeCharacters } from "../../../helpers/unsafe.js";
import { pasteHint } from "../../paste-hint.js";
import { daysAgo, device, findingOf, reportOn, TOKYO } from "./report-devices.js";

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

/** How one device is judged: found with its detail, found not, or not to be judged. */
function judged(code: string, fields: Record<string, unknown>): string {
  const { count, judged, not_judged, examples } = findingOf(reportOn([device({ id: "dev_x", ...fields })]), code);
  expect(judged + not_judged).toBe(1);
  if (not_judged === 1) return "cannot be judged";
  return count === 0 ? "fine" : `found: ${examples[0]?.id} ${examples[0]?.detail}`;
}

describe("a device with nothing worth a look", () => {
  it("is judged by every rule and found by none", () => {
    const { findings } = reportOn([device()]);
    expect(findings.map(({ code, count, judged, not_judged }) => [code, count, judged, not_judged])).toEqual([
      ["insecure_redirect", 0, 1, 0],
      ["pkce_optional", 0, 1, 0],
      ["shared_fingerprint", 0, 1, 0],
      ["stale_active", 0, 1, 0],
    ]);
  });
});

describe("a device that is nothing but holes", () => {
  const nothings = [
    {},
    { first_seen: null, last_seen: null, dynamic_client_details: null, status: null },
    { first_seen: [], last_seen: "yesterday", dynamic_client_details: 7, status: {}, id: 7 },
    {
      first_seen: { at: "1", country_code: "de", lat_long: [1], asn: 0, remote_ip: 1, ja4_fingerprint: null },
      last_seen: {
        at: Number.NaN,
        country_code: "DEU",
        lat_long: [91, 0],
        asn: 1.5,
        remote_ip: "",
        ja4_fingerprint: "",
      },
      dynamic_client_details: { pkce_required: "false", redirect_uris: "http://evil.example", title: 5 },
    },
  ];

  it.each(nothings)("cannot be judged by any rule: %j", (nothing) => {
    const { findings, devices } = reportOn([nothing]);
    expect(devices.counted).toBe(1);
    expect(findings.map(({ count, judged, not_judged }) => [count, judged, not_judged])).toEqual(
      findings.map(() => [0, 0, 1]),
    );
  });

  it("is counted as not saying, and never as a value", () => {
    const report = reportOn(nothings);
    const { status, session_type, networks, clients, countries, fingerprints } = report;
    for (const tally of [status, session_type, networks, clients, countries, fingerprints])
      expect(tally).toEqual({ distinct: 0, unknown: 4, top: [], others: 0 });
  });
});

describe("redirects", () => {
  it.each([
    ["https://app.example/callback", "fine"],
    ["http://127.0.0.1:1234/callback", "fine"],
    ["http://127.1/callback", "fine"],
    ["http://[::1]:1234/callback", "fine"],
    ["http://localhost:1234/callback", "fine"],
    ["com.example.app:/callback", "fine"],
    ["cursor://anysphere/callback", "fine"],
    ["not an address", "fine"],
    ["http://app.example/callback?code=1", "found: dev_x http://app.example"],
    ["http://user:word@app.example:8080/callback", "found: dev_x http://app.example:8080"],
    ["http://127.0.0.1.evil.example/callback", "found: dev_x http://127.0.0.1.evil.example"],
    ["http://localhost.evil.example/callback", "found: dev_x http://localhost.evil.example"],
    ["http://192.168.1.2/callback", "found: dev_x http://192.168.1.2"],
    ["JavaScript:alert(1)", "found: dev_x javascript:"],
    ["data:text/html,hello", "found: dev_x data:"],
    ["ws://app.example/callback", "found: dev_x ws:"],
    ["ftp://app.example/callback", "found: dev_x ftp:"],
    ["file:///callback", "found: dev_x file:"],
    ["blob:https://app.example/1", "found: dev_x blob:"],
    ["vbscript:x", "found: dev_x vbscript:"],
    ["about:blank", "found: dev_x about:"],
  ])("%s: %s", (address, verdict) => {
    const redirect_uris = ["https://app.example/other", address];
    expect(judged("insecure_redirect", { dynamic_client_details: { redirect_uris } })).toBe(verdict);
  });

  it("are none in an empty list, and not known in a list of something else", () => {
    const of = (redirect_uris: unknown) => judged("insecure_redirect", { dynamic_client_details: { redirect_uris } });
    expect([of([]), of([1, null]), of(undefined)]).toEqual(["fine", "cannot be judged", "cannot be judged"]);
  });
});

describe("the other rules", () => {
  it.each([
    ["pkce_optional", { dynamic_client_details: { pkce_required: false } }, "found: dev_x mcp"],
    ["pkce_optional", { dynamic_client_details: { pkce_required: null } }, "cannot be judged"],
    ["stale_active", { last_seen: { at: daysAgo(91) } }, "found: dev_x last seen 2025-11-01"],
    ["stale_active", { last_seen: { at: daysAgo(90) } }, "fine"],
    ["stale_active", { last_seen: { at: daysAgo(400) }, status: "revoked" }, "fine"],
    ["stale_active", { last_seen: { at: undefined }, status: "revoked" }, "fine"],
    ["stale_active", { last_seen: { at: undefined } }, "cannot be judged"],
    ["stale_active", { status: undefined }, "cannot be judged"],
  ])("%s of %j: %s", (code, fields, verdict) => {
    expect(judged(code, fields)).toBe(verdict);
  });

  it("name ten devices at the most", () => {
    const open = { dynamic_client_details: { pkce_required: false } };
    const devices = Array.from({ length: 12 }, () => device(open));
    const { count, examples } = findingOf(reportOn(devices), "pkce_optional");
    expect([count, examples.length]).toEqual([12, 10]);
    expect(examples.map(({ id }) => id)).toEqual(devices.slice(0, 10).map(({ id }) => id));
    const unnamed = findingOf(reportOn([device({ ...open, id: undefined })]), "pkce_optional");
    expect([unnamed.count, unnamed.examples]).toEqual([1, []]);
  });
});

describe("many devices from one fingerprint", () => {
  const from = (remote_ip: string, ja4_fingerprint: string, count: number) =>
    Array.from({ length: count }, () => device({ last_seen: { remote_ip, ja4_fingerprint } }));

  it("needs five from the same address: a fingerprint alone is a program that thousands use", () => {
    const shared = (...devices: object[]) => findingOf(reportOn(devices), "shared_fingerprint").count;
    expect(shared(...from("192.0.2.1", "a", 7))).toBe(3);
    expect(shared(...from("192.0.2.1", "a", 4))).toBe(0);
    expect(shared(...from("192.0.2.1", "a", 4), ...from("192.0.2.2", "a", 4))).toBe(0);
    expect(shared(...from("192.0.2.1", "a", 4), ...from("192.0.2.1", "b", 4))).toBe(0);
  });

  it("names those from the fifth on, with their origin", () => {
    const devices = from("192.0.2.2", "b", 6);
    const { examples } = findingOf(reportOn(devices), "shared_fingerprint");
    expect(examples).toMatchObject([
      { id: devices[4]?.["id"], detail: "device 5 from 192.0.2.2 with b" },
      { id: devices[5]?.["id"], detail: "device 6 from 192.0.2.2 with b" },
    ]);
  });
});

describe("the findings", () => {
  it("each say what can be done, and name the title of a device where the service sent one", () => {
    const dynamic_client_details = { pkce_required: false };
    const report = reportOn([
      device({ id: "dev_a", title: "nightly", dynamic_client_details }),
      { id: "dev_b", dynamic_client_details },
    ]);
    for (const { action } of report.findings) expect(action).toMatch(/\.$/);
    expect(findingOf(report, "pkce_optional").examples).toMatchObject([
      { id: "dev_a", title: "nightly" },
      { id: "dev_b", title: null },
    ]);
  });
});

describe("counting", () => {
  it("is exact up to the cap, and counts together what came after it", () => {
    const counter = createCounter(2);
    for (const value of ["a", "b", "b", "c", undefined, "a", "b", "c"]) counter.add(value);
    expect(counter.tally(1)).toEqual({ distinct: 2, unknown: 1, top: [{ value: "b", count: 3 }], others: 4 });
  });

  it("stays bounded where every device invents a client, and loses none", () => {
    const aggregate = Array.from({ length: 10_005 }, (_, n) => ({ dynamic_client_details: { title: `c${n}` } }));
    const { clients } = reportOn(aggregate);
    expect([clients.distinct, clients.top.length, clients.others]).toEqual([10_000, 50, 9955]);
  });

  it("never looks at a client secret", () => {
    const details = Object.defineProperty({ title: "Agent" }, "client_secret", {
      enumerable: true,
      get() {
        throw new Error("the secret was read");
      },
    });
    expect(reportOn([{ id: "dev_1", dynamic_client_details: details }]).clients.top).toEqual([
      { value: "Agent", count: 1 },
    ]);
    expect(JSON.stringify(reportOn([device()]))).not.toContain("planted-secret");
  });

  it("cuts a text that is too long to be kept", () => {
    const { clients } = reportOn([device({ dynamic_client_details: { title: "x".repeat(100_000) } })]);
    expect(clients.top[0]?.value).toBe(`${"x".repeat(200)}…`);
  });
});

function textOf(report: Report, columns: number, env: Record<string, string> = {}, tty = false): string {
  const { isTTY, colors } = createMemoryIo({ tty, color: false }).stdout;
  return reportText(report, { isTTY, colors, columns }, env);
}

const HOSTILE = `<img src=x onerror=alert(1)>\u001b[31m\u202eevil\u0000`;

const mixed = reportOn([
  ...Array.from({ length: 30 }, (_, n) => device({ last_seen: { at: daysAgo(n * 12), asn: 64_500 + (n % 11) } })),
  device({
    last_seen: { ...TOKYO, asn: undefined },
    dynamic_client_details: { title: "エージェントエージェントエージェント" },
  }),
  device({
    id: HOSTILE,
    title: HOSTILE,
    status: HOSTILE,
    dynamic_client_details: { title: HOSTILE, pkce_required: false },
  }),
]);

describe("the text of a report", () => {
  it.each([40, 60, 79, 80, 99, 100, 120, 140])("fits %i columns", (columns) => {
    const lines = textOf(mixed, columns).split("\n");
    expect(lines.filter((line) => stringWidth(line) > columns)).toEqual([]);
  });

  it("uses no more than 100 columns of a wider terminal", () => {
    const widest = Math.max(
      ...textOf(mixed, 1000)
        .split("\n")
        .map((line) => stringWidth(line)),
    );
    expect(widest).toBe(100);
  });

  it("has nothing that a terminal would act on, whatever the devices are called", () => {
    const text = textOf(mixed, 120);
    expect(unsafeCharacters(text, "\n")).toEqual([]);
    expect(text).toContain("\\e[31m\\u{202e}evil");
  });

  it("shows counts and shares that add up", () => {
    const text = textOf(
      reportOn([...Array.from({ length: 3 }, () => device()), device({ status: "revoked" }), {}]),
      60,
    );
    expect(text).toMatch(/^active +3 +60%$/m);
    expect(text).toMatch(/^revoked +1 +20%$/m);
    expect(text).toMatch(/^unknown +1 +20%$/m);
  });

  it("uses ASCII alone where the terminal or the locale has no more", () => {
    const plain = reportOn([device({ dynamic_client_details: { pkce_required: false, title: "x".repeat(90) } })]);
    for (const env of [{ TERM: "dumb" }, { LANG: "C" }, { LC_ALL: "POSIX", LANG: "de_DE.UTF-8" }]) {
      expect(textOf(plain, 80, env)).toMatch(/^[\n\x20-\x7e]+$/);
    }
    for (const env of [{}, { LANG: "de_DE.UTF-8" }, { LC_ALL: "C.UTF-8", LANG: "C" }]) {
      expect(textOf(plain, 80, env)).toContain(" · Laptop · mcp");
    }
  });

  it("says what is worth a look, why, and on which devices", () => {
    const text = textOf(reportOn([device({ id: "dev_a", dynamic_client_details: { pkce_required: false } }), {}]), 80);
    expect(text).toContain("PKCE not required: 1 device (1 of 2 lack the data to check)\n");
    expect(text).toMatch(/^ {2}dev_a · Laptop · mcp$/m);
    expect(text).toContain("\n  What to do: Register the client again as one that requires PKCE.\n");
    expect(text).toMatch(/^not found: Redirect without https \(1 of 2 lack the data to check\)$/m);
  });

  it("isolates right-to-left text on a terminal, also where it is cut, and in a pipe prints it as it is", () => {
    const [title, client] = ["מחשב נייד", `عميل ${"ا".repeat(100)}`];
    const details = { title: client, pkce_required: false };
    const report = { ...reportOn([device({ id: "dev_a", title, dynamic_client_details: details })]), pool_id: title };
    const text = textOf(report, 80, {}, true);
    expect(text).toContain(`Devices of pool \u2068${title}\u2069\n`);
    expect(text).toContain(` · \u2068${title}\u2069 · `);
    expect(text.match(/^\u2068عميل ا*…\u2069 /m)).not.toBeNull();
    for (const line of text.split("\n")) {
      expect(line.split("\u2068")).toHaveLength(line.split("\u2069").length);
      expect(stringWidth(line)).toBeLessThanOrEqual(80);
    }
    expect(textOf(report, 80)).not.toMatch(/[\u2068\u2069]/);
  });

  it("can be made of no device at all", () => {
    const text = textOf(reportOn([]), 80);
    expect(text).toContain("0 devices");
    expect(text).toMatch(/^CLIENTS\nnone +0 +0%$/m);
    expect(text).toContain("FINDINGS\nnone\n");
  });

  it("says on its face what is missing", () => {
    const text = textOf({ ...reportOn([device()], [`begun at \u001b[2J`]), complete: false }, 80);
    expect(text).toContain("INCOMPLETE");
    expect(text).toContain("note: begun at \\e[2J");
  });
});

it.each([
  [0, 0, "0%"],
  [0, 9, "0%"],
  [1, 101, "<1%"],
  [1, 100, "1%"],
  [1, 8, "13%"],
  [99, 100, "99%"],
  [199, 200, ">99%"],
  [7, 7, "100%"],
])("the share of %i of %i is %s", (part, whole, text) => {
  expect(shareText(part, whole)).toBe(text);
});
