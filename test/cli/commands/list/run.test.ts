import { describe, expect } from "vitest";
import type { Fault } from "../../../../src/sandbox/index.js";
import { allIds, linesOf, runCli, temporaryFolder } from "../../../helpers/cli.js";
import { SampleService } from "../../../helpers/service.js";
import { testbedTest } from "../../../helpers/testbed-test.js";

const it = testbedTest();

const READERS: Record<string, (text: string) => unknown[]> = {
  json: (text) => (JSON.parse(text) as { id: string }[]).map(({ id }) => id),
  ndjson: (text) => linesOf(text).map((line) => (JSON.parse(line) as { id: string }).id),
  csv: (text) =>
    text
      .trimEnd()
      .split("\r\n")
      .slice(1)
      .map((line) => line.split(",")[0]),
  plain: (text) => linesOf(text).map((line) => line.split("\t")[0]),
  id: linesOf,
  table: (text) =>
    linesOf(text)
      .slice(1)
      .map((line) => line.split(" ")[0]),
  wide: (text) =>
    linesOf(text)
      .slice(1)
      .map((line) => line.split(" ")[0]),
};

describe("a list holds what the library gives, in its order", () => {
  it.for(Object.keys(READERS))("devices as %s", async (format, { testbed }) => {
    const { code, stdout, stderr } = await testbed.run([...testbed.devices, "-o", format, "--page-size", "7"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(READERS[format]?.(stdout)).toEqual(allIds(testbed.sandbox));
  });

  it("pools and domains, whole objects", async ({ testbed }) => {
    const { account, domain } = testbed.sandbox.ids;
    const pools = await testbed.run([...testbed.pools, "--json"]);
    expect(JSON.parse(pools.stdout)).toEqual(await testbed.service.pools.list({ domain_id: domain }).toArray());
    const domains = await testbed.run([...testbed.domains, "--json"]);
    expect(JSON.parse(domains.stdout)).toEqual(await testbed.service.domains.list({ account_id: account }).toArray());
  });

  it("sorted by the service", async ({ testbed }) => {
    const { pool } = testbed.sandbox.ids;
    const sort = { field: "last_seen", direction: "desc" } as const;
    const expected = await testbed.service.devices.list({ pool_id: pool }, { sort }).toArray();
    const { stdout } = await testbed.run([...testbed.devices, "--sort", "last_seen:desc", "-o", "id"]);
    expect(linesOf(stdout)).toEqual(expected.map(({ id }) => id));
  });

  it("in a pipe as plain lines, without anything on stderr", async ({ testbed }) => {
    const { stdout, stderr } = await testbed.run(testbed.devices);
    const first = testbed.sandbox.data.device(testbed.sandbox.ids.pool, 0);
    expect(stdout.split("\n")[0]?.split("\t").slice(0, 4)).toEqual([
      first?.id,
      first?.title,
      first?.status,
      first?.session_type,
    ]);
    expect(stderr).toBe("");
  });
});

describe("how much of a list", () => {
  it("--limit, and the command that continues", async ({ testbed }) => {
    const { code, stdout, stderr } = await testbed.run([...testbed.devices, "--limit", "5", "-o", "id"]);
    expect(code).toBe(0);
    expect(linesOf(stdout)).toEqual(allIds(testbed.sandbox).slice(0, 5));
    const { pool } = testbed.sandbox.ids;
    expect(stderr).toBe(
      `shown 5 of 60; continue with: agentauth devices list --pool ${pool} -o id --offset 5 --limit 5\n`,
    );
  });

  it("--offset, reported as a range of the whole list", async ({ testbed }) => {
    const { stdout, stderr } = await testbed.run([...testbed.devices, "--offset", "10", "--limit", "5", "-o", "id"]);
    expect(linesOf(stdout)).toEqual(allIds(testbed.sandbox).slice(10, 15));
    expect(stderr).toMatch(/^shown 11 to 15 of 60; continue with: .* --offset 15 --limit 5\n$/);
  });

  it("no word about going on where the list has ended, or with --quiet", async ({ testbed }) => {
    const last = await testbed.run([...testbed.devices, "--offset", "55", "--limit", "5", "-o", "id"]);
    const quiet = await testbed.run([...testbed.devices, "--limit", "5", "-q", "-o", "id"]);
    expect([linesOf(last.stdout).length, last.stderr, linesOf(quiet.stdout).length, quiet.stderr]).toEqual([
      5,
      "",
      5,
      "",
    ]);
  });

  it("nothing at all: exit 0 and an empty array", async ({ testbed }) => {
    const { code, stdout, stderr } = await testbed.run([...testbed.devices, "--offset", "60", "-o", "json"]);
    expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: "[]\n", stderr: "" });
  });

  it("--page-size is asked for, and a page is asked for once", async ({ testbed }) => {
    const before = testbed.sandbox.requests.length;
    await testbed.run([...testbed.devices, "--page-size", "25", "--concurrency", "3", "-o", "id"]);
    const queries = testbed.sandbox.requests.slice(before).map(({ query }) => query);
    expect(queries.map((query) => query["pagination[page_size]"])).toEqual(["25", "25", "25"]);
    expect(new Set(queries.map((query) => query["pagination[offset]"] ?? "0")).size).toBe(3);
  });

  it("--concurrency 1 never has two requests on the way", async ({ testbed }) => {
    testbed.sandbox.faults.add({ kind: "slow-headers", ms: 60, times: 0 });
    const flags = "--page-size 20 --concurrency 1 -o id -v".split(" ");
    const { stderr } = await testbed.run([...testbed.devices, ...flags]);
    const marks = linesOf(stderr).flatMap((line) => (/^[<>] /.test(line) ? [line[0]] : []));
    expect(marks).toEqual([">", "<", ">", "<", ">", "<", ">", "<"]);
  });
});

describe("choosing", () => {
  it("--status, --session-type and --title, and reports what was left out", async ({ testbed }) => {
    const all = await testbed.service.devices.list({ pool_id: testbed.sandbox.ids.pool }).toArray();
    const chosen = all.filter(({ status, session_type }) => status === "active" && session_type === "mcp");
    const flags = "--status active --session-type mcp -o id".split(" ");
    const { stdout, stderr } = await testbed.run([...testbed.devices, ...flags]);
    expect(linesOf(stdout)).toEqual(chosen.map(({ id }) => id));
    expect(stderr).toBe(`${chosen.length} of 60 match (--status, --session-type: filtered here, after reading)\n`);
    const letter = (all[0]?.title ?? "x").slice(0, 1);
    const titled = await testbed.run([...testbed.devices, "--title", `${letter}*`, "-o", "id"]);
    expect(linesOf(titled.stdout)).toContain(all[0]?.id);
  });

  it("--limit counts what matches, and stops reading there", async ({ testbed }) => {
    const all = await testbed.service.devices.list({ pool_id: testbed.sandbox.ids.pool }).toArray();
    const active = all.filter(({ status }) => status === "active");
    const before = testbed.deviceRequests();
    const args = ["--status", "active", "--limit", "3", "--page-size", "10", "--concurrency", "1", "-o", "id"];
    const { stdout, stderr } = await testbed.run([...testbed.devices, ...args]);
    expect(linesOf(stdout)).toEqual(active.slice(0, 3).map(({ id }) => id));
    expect(stderr).toMatch(
      /^the first 3 match \(--status: filtered here, after reading\); continue with: .* --limit 3\n$/,
    );
    expect(testbed.deviceRequests() - before).toBeLessThan(6);
  });

  it("--limit on what matches continues exactly behind the last item that was shown", async ({ testbed }) => {
    const all = await testbed.service.devices.list({ pool_id: testbed.sandbox.ids.pool }).toArray();
    const expected = all.filter(({ session_type }) => session_type === "mcp").map(({ id }) => id);
    const found: (string | undefined)[] = [];
    let args: readonly string[] = [...testbed.devices, "--session-type", "mcp", "--limit", "7", "-o", "id"];
    for (let parts = 0; parts <= expected.length / 7; parts++) {
      const { stdout, stderr } = await testbed.run(args);
      found.push(...linesOf(stdout));
      const next = /; continue with: agentauth (.*)\n$/.exec(stderr)?.[1];
      if (next === undefined) break;
      args = next.split(" ");
    }
    expect(found).toEqual(expected);
  });

  it("where the limit ends with the list, nothing is left to continue with", async ({ testbed }) => {
    const all = await testbed.service.devices.list({ pool_id: testbed.sandbox.ids.pool }).toArray();
    const last = all.at(-1)?.title ?? "";
    const args = ["--title", last.replace(/[^a-z]/gi, "?"), "--offset", "59", "--limit", "1", "-o", "id"];
    const { stdout, stderr } = await testbed.run([...testbed.devices, ...args]);
    expect([linesOf(stdout), stderr]).toEqual([[all.at(-1)?.id], expect.stringMatching(/^1 of 1 match \([^;]*\)\n$/)]);
  });

  it("warns about a value that no item has, with a suggestion", async ({ testbed }) => {
    const { code, stdout, stderr } = await testbed.run([...testbed.devices, "--status", "actve", "-o", "json"]);
    expect([code, stdout]).toEqual([0, "[]\n"]);
    expect(stderr).toContain('warning: --status "actve": nothing has this status; did you mean "active"?');
  });

  it("--columns, --no-header and --jq", async ({ testbed }) => {
    const [first] = allIds(testbed.sandbox);
    const args = [...testbed.devices, "--limit", "1", "-q"];
    const columns = await testbed.run([...args, "--columns", "last_seen.country_code,id", "-o", "json"]);
    expect(JSON.parse(columns.stdout)).toEqual([
      { last_seen: { country_code: expect.stringMatching(/^[A-Z]{2}$/) }, id: first },
    ]);
    const table = await testbed.run([...args, "--columns", "id", "--no-header", "-o", "table"]);
    expect(table.stdout).toBe(`${first}\n`);
    const jq = await testbed.run([...args, "--jq", ".[0].id"]);
    expect(jq.stdout).toBe(`${first}\n`);
  });
});

describe("a list that is not what it should be", () => {
  it("warns about a list that changes; with --strict it is an error", async ({ testbed }) => {
    testbed.sandbox.faults.add({ kind: "insert", count: 1, times: 1 });
    const args = [...testbed.devices, "--page-size", "20", "--concurrency", "1", "-o", "id"];
    const lenient = await testbed.run(args);
    expect([lenient.code, linesOf(lenient.stderr)]).toEqual([
      7,
      [
        expect.stringMatching(/^warning: the list changed while it was read \(item_count was \d+, then \d+\)$/),
        "error: 1 item may be missing",
        expect.stringContaining("hint: list again"),
      ],
    ]);
    testbed.sandbox.faults.clear();
    testbed.sandbox.faults.add({ kind: "insert", count: 1, times: 1 });
    const strict = await testbed.run([...args, "--strict"]);
    expect([strict.code, strict.stderr]).toEqual([7, expect.stringContaining("the list changed while it was read")]);
  });

  it("unknown values pass, missing fields are blank; with --strict they are errors", async ({ testbed }) => {
    testbed.sandbox.faults.add([
      { kind: "unknown-enum", times: 0 },
      { kind: "missing-fields", fields: ["title"], times: 0 },
    ]);
    const { code, stdout } = await testbed.run([...testbed.devices, "--limit", "1", "-q"]);
    expect([code, stdout.split("\t").slice(1, 4)]).toEqual([0, ["", "paused", "quantum"]]);
    const strict = await testbed.run([...testbed.devices, "--strict"]);
    expect([strict.code, strict.stdout]).toEqual([3, ""]);
    expect(strict.stderr).toMatch(/^error: .*summaries\[0\]\.\w+/);
  });

  it("new members and nulls pass, with --strict too; --strict=all refuses them, and names the address", async ({
    testbed,
  }) => {
    const args = [...testbed.devices, "-o", "id"];
    const faults: Fault[] = [{ kind: "extra-fields" }, { kind: "missing-fields", fields: ["title"] }];
    for (const fault of faults) {
      testbed.sandbox.faults.add({ ...fault, times: 0 });
      for (const flags of [[], ["--strict"]]) {
        const lenient = await testbed.run([...args, ...flags]);
        expect([lenient.code, linesOf(lenient.stdout)]).toEqual([0, allIds(testbed.sandbox)]);
      }
      const { code, stderr } = await testbed.run([...args, "--strict=all"]);
      const what = /^error: http:.*\/api\/v1\/device: .*(?:is not documented|title is missing)/;
      expect([code, stderr]).toEqual([3, expect.stringMatching(what)]);
      testbed.sandbox.faults.clear();
    }
    expect((await testbed.run([...args, "--strict=al"])).stderr).toContain('--strict "al" must be one of all');
  });

  it("warns of an order that the service ignored, before the first item; with --strict it is an error", async ({
    testbed,
  }) => {
    const env = { AGENTAUTH_HOME: temporaryFolder() };
    await testbed.run(["config", "set", "sorting", "json"], { env });
    const args = [...testbed.devices, "--sort", "title:desc", "-o", "id"];
    const lenient = await testbed.run(args, { env });
    expect([lenient.code, linesOf(lenient.stdout)]).toEqual([0, allIds(testbed.sandbox)]);
    expect(lenient.stderr).toMatch(
      /^warning: the service ignored --sort: the order "title:desc" was requested, and its answer names the order "id:asc"; agentauth config set sorting /,
    );
    const strict = await testbed.run([...args, "--strict"], { env });
    expect([strict.code, strict.stdout]).toEqual([3, ""]);
    expect(strict.stderr).toMatch(/names the order "id:asc".*\nhint: agentauth config set sorting/);
    const applied = await testbed.run([...args, "--strict"]);
    expect([applied.code, applied.stderr]).toEqual([0, ""]);
    expect(linesOf(applied.stdout)).not.toEqual(allIds(testbed.sandbox));
  });

  it.for(["id", "json", "ndjson", "csv"])(
    "prints every item that has an id as %s, then ends with 7",
    async (format) => {
      const { service, env, ids } = await withoutIds();
      const { code, stdout, stderr } = await runCli(["devices", "list", "--pool", "p", "-o", format], { env });
      expect([code, READERS[format]?.(stdout)]).toEqual([7, [...ids.slice(0, 20), ...ids.slice(40)]]);
      const error = /json/.test(format) ? JSON.parse(stderr).error : { message: stderr, hint: stderr };
      expect(error.message).toContain("20 of the devices");
      expect(error.message).toContain("have no id, at offsets 20, 21, 22");
      const command = /agentauth (api GET \S+ -f \S+ --paginate) prints them/.exec(error.hint)?.[1]?.split(" ") ?? [];
      const raw = await runCli([...command, "--jq", ".summaries[].title"], { env });
      expect([raw.code, linesOf(raw.stdout)]).toEqual([0, service.items.map(() => "a")]);
    },
  );

  it("says where a list with such items continues that ended at --limit, and ends at once with --strict", async ({
    testbed,
  }) => {
    const { env } = await withoutIds();
    const list = ["devices", "list", "--pool", "p", "--limit", "25", "-o", "json"];
    const limited = await runCli(list, { env });
    expect([limited.code, JSON.parse(limited.stdout).length]).toEqual([7, 25]);
    const { error } = JSON.parse(limited.stderr);
    expect(error).toMatchObject({ code: "unusable_items", resume: 45, unusable: { count: 20 } });
    expect(error.hint).toContain("--offset 45 --limit 25");
    testbed.sandbox.faults.add({ kind: "missing-fields", fields: ["id"], offset: 20, times: 0 });
    const args = [...testbed.devices, "--page-size", "20", "--concurrency", "1", "--strict", "-o", "id"];
    const strict = await testbed.run(args);
    expect([strict.code, linesOf(strict.stdout).length]).toEqual([7, 20]);
    expect(strict.stderr).toContain("summaries[0].id is missing");
  });
});

/** A service whose items 20 to 39 have no id, in pages of 20. */
async function withoutIds() {
  const service = new SampleService(60, 20);
  const ids = service.ids();
  service.items = ids.map((id, at) => ({ ...(at >= 20 && at < 40 ? {} : { id }), title: "a" })) as never;
  return { service, ids, env: await service.listen() };
}

describe("devices get on a list that breaks off", () => {
  it("ends as a single request does: unavailable, without a command that continues a list that was not printed", async ({
    testbed,
  }) => {
    const last = allIds(testbed.sandbox).at(-1) ?? "";
    testbed.sandbox.faults.add({ kind: "status", status: 503, path: "device", after: 1, times: 0 });
    const args = ["devices", "get", last, "--pool", testbed.sandbox.ids.pool, "--retries", "0", "-o", "json"];
    const { code, stdout, stderr } = await testbed.run(args);
    expect([code, stdout]).toEqual([5, ""]);
    const { error } = JSON.parse(stderr) as { error: Record<string, unknown> };
    expect(error).toMatchObject({ class: "unavailable", exit_code: 5, status: 503, retryable: true });
    expect(error).not.toHaveProperty("resume");
    expect(stderr).not.toContain("the listing ended");
  });
});

describe("devices get", () => {
  it("names the pool where it has no such device", async ({ testbed }) => {
    const { pool } = testbed.sandbox.ids;
    const { code, stderr } = await testbed.run(["devices", "get", "dev_none", "--pool", pool, "--profile", "default"]);
    const list = `agentauth devices list --pool ${pool} --profile default -o id`;
    expect([code, linesOf(stderr)[1]]).toEqual([6, `hint: the device must be one of that pool: ${list}`]);
  });

  it.for(["pools", "domains"] as const)(
    "has a counterpart in %s get, which says where there is no such item",
    async (noun, { testbed }) => {
      const { account, domain, pool } = testbed.sandbox.ids;
      const [id, scope] = noun === "pools" ? [pool, ["--domain", domain]] : [domain, ["--account", account]];
      const item =
        noun === "pools"
          ? await testbed.service.pools.get({ domain_id: domain, id })
          : await testbed.service.domains.get({ account_id: account, id });
      const { code, stdout, stderr } = await testbed.run([noun, "get", id, ...scope, "-o", "json"]);
      expect({ code, stderr, item: JSON.parse(stdout) }).toEqual({ code: 0, stderr: "", item });
      expect((await testbed.run([noun, "get", id, ...scope])).stdout).toMatch(new RegExp(`^id\\t${id}$`, "m"));
      const missing = await testbed.run([noun, "get", "none", ...scope]);
      const list = `agentauth ${noun} list ${scope.join(" ")} -o id`;
      const of = `the ${noun.slice(0, -1)} must be one of that ${scope[0]?.slice(2)}`;
      expect([missing.code, linesOf(missing.stderr)[1]]).toEqual([6, `hint: ${of}: ${list}`]);
    },
  );

  it.for<[string, string]>([
    ["", "error: the device id is empty\n"],
    ["a\nb", "error: the device id has a control character or broken UTF-8 in it\n"],
  ])("refuses the id %j, and sends nothing", async ([id, message], { testbed }) => {
    const before = testbed.sandbox.requests.length;
    const { code, stdout, stderr } = await testbed.run(["devices", "get", id, "--pool", testbed.sandbox.ids.pool]);
    expect([code, stdout, testbed.sandbox.requests.length]).toEqual([2, "", before]);
    expect(stderr).toContain(message);
  });

  it("gives the whole device", async ({ testbed }) => {
    const { data, ids } = testbed.sandbox;
    const id = data.device(ids.pool, 7)?.id ?? "";
    const { code, stdout, stderr } = await testbed.run(["devices", "get", id, "--pool", ids.pool, "-o", "json"]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    expect(JSON.parse(stdout)).toEqual(
      JSON.parse(JSON.stringify(await testbed.service.devices.get({ pool_id: ids.pool, id }))),
    );
    const plain = await testbed.run(["devices", "get", id, "--pool", ids.pool]);
    expect(plain.stdout).toMatch(new RegExp(`^id\\t${id}$`, "m"));
    expect((await testbed.run(["devices", "get", id, "--pool", ids.pool, "-o", "id"])).stdout).toBe(`${id}\n`);
  });
});
