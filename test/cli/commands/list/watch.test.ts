import { once } from "node:events";
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect } from "vitest";
import { backoff } from "../../../../src/cli/commands/list/watch.js";
import { AgentAuthError } from "../../../../src/errors.js";
import { type Clock, systemClock } from "../../../../src/http/deadline.js";
import { MASK } from "../../../../src/redact.js";
import { benchTest } from "../../../helpers/bench-test.js";
import {
  allIds,
  type Bench,
  collect,
  linesOf,
  runCli,
  startBench,
  startCli,
  temporaryFolder,
  traceCli,
  unsafeIn,
  until,
} from "../../../helpers/cli.js";

const it = benchTest();

/** How much shorter the waits of a run are than they are for a user. */
const FASTER = 20;
const clock: Clock = { ...systemClock, sleep: (ms, signal) => systemClock.sleep(ms / FASTER, signal) };

interface Event {
  type: "added" | "modified" | "removed";
  object: { id: string; status?: string; title?: string };
  time: string;
}

/** Watches until the test has seen enough. */
function watch({ devices, env }: Bench, args: readonly string[], more: Record<string, string> = {}) {
  const child = startCli([...devices, "--watch=1s", ...args], { env: { ...env, ...more }, clock });
  const out = collect(child.stdout);
  const err = collect(child.stderr);
  const ended = once(child, "close") as Promise<[number | null]>;
  const lines = () => linesOf(out().slice(0, out().lastIndexOf("\n") + 1));
  const events = () => lines().map((line) => JSON.parse(line) as Event);
  return {
    child,
    events,
    out,
    err,
    /** Waits for what must come while the program runs. */
    async until(holds: () => boolean) {
      await until(() => holds() || child.exitCode !== null);
      expect(child.exitCode, err()).toBeNull();
    },
    async end(signal: NodeJS.Signals = "SIGINT") {
      child.kill(signal);
      return (await ended)[0];
    },
    ended: ended.then(([code]) => code),
  };
}

/** How many readings of the whole list have begun. */
function readings({ sandbox }: Bench): number {
  return sandbox.requests.filter(
    ({ path, query }) => path === "/api/v1/device" && Number(query["pagination[offset]"] ?? 0) === 0,
  ).length;
}

/** A way to the service that can be closed: connections are refused then. */
async function openWay(origin: string) {
  let server: Server;
  const open = async (port: number) => {
    server = createServer((requested, answer) => {
      const headers = { ...requested.headers, host: new URL(origin).host };
      const passed = request(`${origin}${requested.url}`, { headers }, (given) => {
        answer.writeHead(given.statusCode ?? 500, given.headers);
        given.pipe(answer);
      });
      passed.end();
    });
    await once(server.listen(port, "127.0.0.1"), "listening");
    return (server.address() as AddressInfo).port;
  };
  const port = await open(0);
  return {
    origin: `http://127.0.0.1:${port}`,
    reopen: () => open(port),
    async close() {
      const closed = once(server.close(), "close");
      server.closeAllConnections();
      await closed;
    },
  };
}

describe("--watch in a pipe", () => {
  it("reports every item as added, then nothing while nothing changes", async ({ bench }) => {
    const before = readings(bench);
    const run = watch(bench, []);
    await run.until(() => readings(bench) >= before + 3);
    expect(run.events().map(({ type, object }) => [type, object.id])).toEqual(
      allIds(bench.sandbox).map((id) => ["added", id]),
    );
    for (const { time } of run.events()) expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect([await run.end(), run.err()]).toEqual([130, ""]);
    expect(run.events()).toHaveLength(60);
  });

  it("SIGTERM ends it with 143, and it reports no further event", async ({ bench }) => {
    const run = watch(bench, []);
    await run.until(() => run.events().length === 60);
    expect([await run.end("SIGTERM"), run.err(), run.events().length]).toEqual([143, "", 60]);
  });

  it.for<[string, string[]]>([
    ["one answer", []],
    ["several answers", ["--page-size", "20"]],
  ])("reports what is deleted, added and changed: a list in %s", async ([_what, more], { bench }) => {
    const { data, ids } = bench.sandbox;
    const run = watch(bench, more);
    await run.until(() => run.events().length === 60);
    const gone = data.device(ids.pool, 30);
    data.deleteDevice(ids.pool, gone?.id ?? "");
    await run.until(() => run.events().length === 61);
    const added = data.insertDevice(ids.pool);
    await run.until(() => run.events().length === 62);
    data.updateDevice(ids.pool, added.id, { title: "renamed" });
    await run.until(() => run.events().length === 63);
    data.deleteDevice(ids.pool, added.id);
    data.insertDevice(ids.pool, gone);
    expect([await run.end(), run.err()]).toEqual([130, ""]);
    expect(run.events().slice(60)).toMatchObject([
      { type: "removed", object: { id: gone?.id, title: gone?.title } },
      { type: "added", object: { id: added.id } },
      { type: "modified", object: { id: added.id, title: "renamed" } },
    ]);
  });

  it("prints hostile text escaped", async ({ bench }) => {
    const run = watch(bench, ["--columns", "id,title"]);
    await run.until(() => run.events().length === 60);
    bench.sandbox.faults.add({ kind: "hostile-text", times: 0 });
    await run.until(() => run.events().length > 60);
    expect(await run.end()).toBe(130);
    const change = run.events()[60];
    expect([change?.type, Object.keys(change?.object ?? {})]).toEqual(["modified", ["id", "title"]]);
    expect(unsafeIn(run.out())).toEqual([]);
  });

  it("with --columns it reports no change of another column", async ({ bench }) => {
    const run = watch(bench, ["--columns", "id,session_type"]);
    await run.until(() => run.events().length === 60);
    const before = readings(bench);
    bench.sandbox.faults.add({ kind: "hostile-text", times: 0 });
    await run.until(() => readings(bench) >= before + 2);
    expect([await run.end(), run.events().length]).toEqual([130, 60]);
  });

  it("an item that no longer matches the filter is removed, with what it is now", async ({ bench }) => {
    const active = bench.service.devices.list({ pool_id: bench.sandbox.ids.pool });
    const expected = (await active.toArray()).filter(({ status }) => status === "active").length;
    const run = watch(bench, ["--status", "active"]);
    await run.until(() => run.events().length === expected);
    bench.sandbox.faults.add({ kind: "unknown-enum", times: 0 });
    await run.until(() => run.events().length > expected);
    expect(await run.end()).toBe(130);
    const removed = run.events().slice(expected);
    expect(new Set(removed.map(({ type }) => type))).toEqual(new Set(["removed"]));
    expect(removed[0]?.object.status).toBe("paused");
  });

  it("--jq sees each event", async ({ bench }) => {
    const run = watch(bench, ["--jq", '"\\(.type) \\(.object.id)"']);
    await run.until(() => linesOf(run.out()).length === 60);
    expect(await run.end()).toBe(130);
    expect(linesOf(run.out())).toEqual(allIds(bench.sandbox).map((id) => `added ${id}`));
  });

  it("client secrets are masked", async ({ bench }) => {
    const run = watch(bench, ["--columns", "id,dynamic_client_details"]);
    await run.until(() => run.events().length === 60);
    await run.end();
    expect(run.out()).toContain(`"client_secret":"${MASK}"`);
    expect(run.out()).not.toContain("<CLIENT_SECRET>");
  });

  it.for([
    ["pools", "--domain"],
    ["domains", "--account"],
  ])("works for %s", async ([noun], { bench }) => {
    const args = noun === "pools" ? bench.pools : bench.domains;
    const { code, stdout } = await bench.run([...args, "--watch", "--until", "length > 0"]);
    expect(code).toBe(0);
    expect(linesOf(stdout).map((line) => (JSON.parse(line) as Event).type)).toEqual(["added", "added"]);
  });
});

describe("--until", () => {
  it("ends with exit 0 at once where it holds already", async ({ bench }) => {
    const { code, stdout, stderr } = await bench.run([...bench.devices, "--watch", "--until", "length == 60"]);
    expect({ code, lines: linesOf(stdout).length, stderr }).toEqual({ code: 0, lines: 60, stderr: "" });
  });

  it("ends once it holds for the whole list", async ({ bench }) => {
    const { data, ids } = bench.sandbox;
    const run = watch(bench, ["--page-size", "20", "--until", "length > 60"]);
    await run.until(() => run.events().length === 60);
    const { id } = data.insertDevice(ids.pool);
    expect([await run.ended, run.err()]).toEqual([0, ""]);
    expect(run.events().slice(60)).toMatchObject([{ type: "added", object: { id } }]);
    data.deleteDevice(ids.pool, id);
  });

  it("sees what the filter lets through", async ({ bench }) => {
    const args = [...bench.devices, "--watch", "--until", 'all(.[]; .status == "revoked")', "--status", "revoked"];
    expect((await bench.run(args)).code).toBe(0);
  });

  it.for(["false", "null", "empty", "true, false"])("%s does not hold", async (expression, { bench }) => {
    const before = readings(bench);
    const run = watch(bench, ["--until", expression]);
    await run.until(() => readings(bench) >= before + 2);
    expect([await run.end(), run.events().length]).toEqual([130, 60]);
  });

  it("--watch-timeout ends it with exit 5, and says so", async ({ bench }) => {
    const args = [...bench.devices, "--watch=1", "--until", "false", "--watch-timeout", "1", "-o", "ndjson"];
    const { code, stderr } = await bench.run(args, { clock });
    expect(code).toBe(5);
    expect(JSON.parse(stderr).error).toMatchObject({
      code: "timeout",
      class: "unavailable",
      message: "--watch-timeout 1s expired, and --until does not hold",
      hint: "allow more time with --watch-timeout, or leave it out to watch without a limit",
    });
    const without = await bench.run([...bench.devices, "--watch=1", "--watch-timeout", "1", "-q"], { clock });
    expect([without.code, without.stderr]).toEqual([
      5,
      "error: --watch-timeout 1s expired\nhint: allow more time with --watch-timeout, or leave it out to watch without a limit\n",
    ]);
  });

  it("reports an invalid expression before it sends a request", async ({ bench }) => {
    const args = [...bench.devices, "--watch", "--until", "length >"];
    const { code, stdout, stderr, requests } = await traceCli(args, { env: bench.env });
    expect([code, stdout, requests]).toEqual([2, "", []]);
    expect(stderr).toMatch(/^error: --until: syntax error/);
  });

  it("an expression that fails on the list ends the watch", async ({ bench }) => {
    const { code, stderr } = await bench.run([...bench.devices, "--watch", "--until", ".nope"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("error: --until: Cannot index array")]);
  });
});

describe("between two readings", () => {
  const quick = ["--retries", "0"];

  it.for<[string, Parameters<Bench["sandbox"]["faults"]["add"]>[0]]>([
    ["503", { kind: "status", status: 503, times: 2 }],
    ["429", { kind: "status", status: 429, retryAfter: "1", times: 2 }],
    ["a connection that breaks", { kind: "reset-mid-body", times: 2 }],
  ])("survives %s, warns once, and reports nothing as removed", async ([_what, fault], { bench }) => {
    const run = watch(bench, ["--page-size", "20", ...quick]);
    await run.until(() => run.events().length === 60);
    bench.sandbox.faults.add(fault);
    await run.until(() => run.err().includes("polling works again"));
    expect(await run.end()).toBe(130);
    expect(run.err()).toMatch(/^warning: the list cannot be read: .*; next attempt in \ds\npolling works again\n$/);
    expect(run.events()).toHaveLength(60);
  });

  it("waits longer after each failure, up to a minute, and never shorter than the interval", () => {
    const failure = new AgentAuthError("server_error", "x", { class: "unavailable" });
    const waits = [1, 2, 3, 4, 5].map((failures) => backoff(failures, 5000, failure, 0));
    expect(waits).toEqual([10_000, 20_000, 40_000, 60_000, 60_000]);
    expect(backoff(3, 300_000, failure, 0)).toBe(300_000);
    const asked = (seconds: string) =>
      new AgentAuthError("server_error", "x", {
        class: "unavailable",
        response: new Response(null, { headers: { "retry-after": seconds } }),
      });
    expect(["15", "5", "90"].map((seconds) => backoff(1, 5000, asked(seconds), 0))).toEqual([15_000, 10_000, 90_000]);
  });

  it("waits for Retry-After, however short the interval", async ({ bench }) => {
    const run = watch(bench, quick);
    await run.until(() => run.events().length === 60);
    bench.sandbox.faults.add({ kind: "status", status: 429, retryAfter: "4", times: 1 });
    await run.until(() => run.err().includes("next attempt in 4s"));
    await run.until(() => run.err().includes("polling works again"));
    await run.end();
    const log = bench.sandbox.requests;
    const refused = log.findLastIndex(({ status }) => status === 429);
    expect((log[refused + 1]?.at ?? 0) - (log[refused]?.at ?? 0)).toBeGreaterThanOrEqual(4000 / FASTER);
  });

  it("survives a service that goes away and comes back", async ({ bench }) => {
    const way = await openWay(bench.sandbox.origin);
    const run = watch(bench, quick, {
      AGENTAUTH_BASE_URL: bench.sandbox.baseUrl.replace(bench.sandbox.origin, way.origin),
    });
    await run.until(() => run.events().length === 60);
    await way.close();
    await run.until(() => run.err().includes("cannot be read"));
    await way.reopen();
    await run.until(() => run.err().includes("polling works again"));
    expect([await run.end(), run.events().length]).toEqual([130, 60]);
    await way.close();
  });

  it.each<[string, Parameters<Bench["sandbox"]["faults"]["add"]>[0]]>([
    ["a list that changes while it is read", { kind: "delete", count: 1, times: 0 }],
    ["a list with items that have no id", { kind: "missing-fields", fields: ["id"], after: 1, times: 0 }],
  ])("%s removes nothing that it may only have missed", async (_what, fault) => {
    const here = await startBench({ devices: 60 });
    try {
      const run = watch(here, ["--page-size", "20", "--concurrency", "1"]);
      await run.until(() => run.events().length === 60);
      here.sandbox.faults.add(fault);
      const before = readings(here);
      await run.until(() => readings(here) >= before + 4);
      expect(await run.end()).toBe(130);
      expect(run.events().map(({ type }) => type)).not.toContain("removed");
    } finally {
      await here.sandbox.close();
    }
  });

  it("names items that have no id once, reports all others, and ends with exit 7 where --until holds", async () => {
    const here = await startBench({ devices: 60 });
    try {
      here.sandbox.faults.add({ kind: "missing-fields", fields: ["id"], offset: 20, times: 0 });
      const run = watch(here, ["--page-size", "20", "--until", "length == 41"]);
      const before = readings(here);
      await run.until(() => readings(here) >= before + 3);
      expect(run.events()).toHaveLength(40);
      here.sandbox.data.insertDevice(here.sandbox.ids.pool, { id: "zzz" });
      expect([await run.ended, run.events().length]).toEqual([7, 41]);
      expect(run.err().match(/^warning: 20 of the devices .* have no id/gm)).toHaveLength(1);
      expect(linesOf(run.err()).some((line) => line.startsWith("error: 20 of the devices"))).toBe(true);
    } finally {
      await here.sandbox.close();
    }
  });

  it("a refused token ends it with exit 4", async ({ bench }) => {
    const run = watch(bench, quick);
    await run.until(() => run.events().length === 60);
    bench.sandbox.faults.add({ kind: "status", status: 401, times: 0 });
    expect(await run.ended).toBe(4);
    expect(run.err()).toMatch(/^error: .*HTTP 401/);
  });

  it("a service that cannot be read at first is an error at once", async ({ bench }) => {
    bench.sandbox.faults.add({ kind: "status", status: 503, times: 0 });
    const { code, stdout } = await bench.run([...bench.devices, "--watch", ...quick]);
    expect([code, stdout]).toEqual([5, ""]);
  });

  it("reports what a later page failed with, and no list in part", async ({ bench }) => {
    bench.sandbox.faults.add({ kind: "status", status: 503, after: 1, times: 0 });
    const { code, stdout, stderr } = await bench.run([...bench.devices, "--watch", "--page-size", "20", ...quick]);
    expect([code, stdout, stderr]).toEqual([
      5,
      "",
      expect.stringMatching(/^error: \S+: a fault of the sandbox: status 503 .*\nhint: .*\n$/),
    ]);
  });

  it("--watch-timeout also ends a reading that hangs", async ({ bench }) => {
    bench.sandbox.faults.add({ kind: "slow-headers", ms: 60_000, times: 0 });
    const { code, stderr } = await bench.run([...bench.devices, "--watch", "--watch-timeout", "1"]);
    expect([code, stderr]).toEqual([5, expect.stringContaining("--watch-timeout 1s expired")]);
  });
});

describe("flags that make no sense with --watch", () => {
  it.for<[string, string[], string]>([
    ["--until alone", ["--until", "true"], "--until needs --watch"],
    ["--watch-timeout alone", ["--watch-timeout", "5"], "--watch-timeout needs --watch"],
    ["-o csv", ["--watch", "-o", "csv"], "-o csv does not work with --watch"],
    ["--json", ["--watch", "--json"], "--json does not work with --watch"],
    ["-o table in a pipe", ["--watch", "-o", "table"], "-o table with --watch needs a terminal"],
    ["--offset", ["--watch", "--offset", "3"], "--offset does not work with --watch"],
    ["--limit for events", ["--watch", "--limit", "3"], "--limit does not work with --watch"],
    ["--csv-raw", ["--watch", "--csv-raw"], "--csv-raw does not work with --watch"],
    ["--limit and --until", ["--watch", "--until", "true", "--limit", "3"], "--limit does not work with --until"],
    ["--until of nothing", ["--watch", "--until", ""], "--until is empty"],
    ["an interval below a second", ["--watch=0.5"], '--watch "0.5" must be a time such as 5s'],
    ["an interval that is none", ["--watch=soon"], '--watch "soon" must be a time such as 5s'],
  ])("%s is a usage error that names it", async ([_what, args, message], { bench }) => {
    const { code, stdout, stderr, requests } = await traceCli([...bench.devices, ...args], { env: bench.env });
    expect([code, stdout, requests]).toEqual([2, "", []]);
    expect(stderr).toContain(message);
    expect(stderr).toMatchSnapshot();
  });

  it.for<[string, string[]]>([
    ["-o csv", ["--watch", "-o", "csv"]],
    ["--json", ["--watch", "--json"]],
    ["--brief", ["--watch", "--brief"]],
    ["-o wide with --jq", ["--watch", "-o", "wide", "--jq", "."]],
    ["--limit for events", ["--watch", "-o", "ndjson", "--limit", "3"]],
    ["--limit for what jq sees", ["--watch", "--jq", ".", "--limit", "3"]],
    ["a column that is none", ["--watch", "--columns", "nope"]],
    ["an order that is none", ["--watch", "--sort", "id:up"]],
  ])("%s on a terminal is one too", async ([_what, args], { bench }) => {
    const options = { env: bench.env, tty: { stdout: true } };
    const { code, stdout, stderr, requests } = await traceCli([...bench.devices, ...args], options);
    expect([code, stdout, requests]).toEqual([2, "", []]);
    expect(stderr).toMatchSnapshot();
  });

  it("-o wide in a pipe is one as -o table is", async ({ bench }) => {
    const { code, stderr } = await bench.run([...bench.devices, "--watch", "-o", "wide"]);
    expect([code, stderr]).toEqual([
      2,
      "error: -o wide with --watch needs a terminal to draw on\nhint: use -o ndjson (one event per line)\n",
    ]);
  });
});

describe("a table on a terminal", () => {
  const ESC = "\u001b";
  const SHOWN = `${ESC}[?2026l`;
  let small: Bench;

  beforeAll(async () => {
    small = await startBench({ devices: 6 });
  });
  afterEach(() => small.sandbox.faults.clear());
  afterAll(() => small.sandbox.close());

  /** The part of the output since the last time that the table was drawn. */
  function onTerminal(args: readonly string[] = [], env: Record<string, string> = {}) {
    const more = { NO_COLOR: "1", TERM: "xterm", LINES: "24", ...small.env, ...env };
    const run = startCli([...small.devices, "--watch=1s", ...args], {
      env: more,
      clock,
      tty: { stdin: true, stdout: true },
      columns: 100,
    });
    const [out, err] = [collect(run.stdout), collect(run.stderr)];
    const ended = once(run, "close").then(([code]) => code as number | null);
    const drawings = () => out().split(SHOWN).slice(0, -1);
    return {
      out,
      err,
      drawings,
      ended,
      lines: () => linesOf((drawings().at(-1) ?? "").replaceAll(new RegExp(`${ESC}\\[[?\\d]*[A-Za-z]|\\r`, "g"), "")),
      until: (holds: () => boolean) => until(() => holds() || run.exitCode !== null),
      async end() {
        run.kill("SIGINT");
        return ended;
      },
    };
  }

  it("is drawn again in its own place", async () => {
    const run = onTerminal();
    await run.until(() => run.drawings().length >= 3);
    expect([await run.end(), run.err()]).toEqual([130, ""]);
    expect(run.lines()[0]).toMatch(/^TITLE +ID +STATUS/);
    expect(
      run
        .lines()
        .slice(1, 7)
        .map((line) => /dev_\w+/.exec(line)?.[0]),
    ).toEqual(allIds(small.sandbox));
    expect(run.lines()[7]).toMatch(/^6 devices at \d\d:\d\d:\d\d, every 1s, Ctrl-C to stop$/);
    expect(run.drawings()[1]).toContain(`\r${ESC}[8A`);
  });

  it("has as many rows as fit, in the columns that are asked for", async () => {
    const run = onTerminal(["--columns", "id"], { LINES: "6" });
    await run.until(() => run.drawings().length >= 1);
    expect(await run.end()).toBe(130);
    expect(run.lines().map((line) => line.split(" ")[0])).toEqual(["ID", ...allIds(small.sandbox).slice(0, 3), "6"]);
    expect(run.lines().at(-1)).toMatch(/^6 devices \(more than fit on the screen\) at /);
  });

  it("is drawn below a warning, and in its own place from then on", async () => {
    const run = onTerminal(["--retries", "0"]);
    await run.until(() => run.drawings().length >= 1);
    small.sandbox.faults.add({ kind: "status", status: 503, times: 1 });
    await run.until(() => run.err().includes("polling works again"));
    const before = run.drawings().length;
    await run.until(() => run.drawings().length >= before + 2);
    expect(await run.end()).toBe(130);
    expect(
      run
        .drawings()
        .map((drawing) => drawing.includes(`\r${ESC}[8A`))
        .filter((isInPlace) => !isInPlace),
    ).toHaveLength(2);
    expect(run.err()).toMatch(/^warning: the list cannot be read: .*\npolling works again\n$/);
  });

  it("has the rows that match, and the format of the profile", async () => {
    const env = { AGENTAUTH_HOME: temporaryFolder() };
    await runCli(["config", "set", "output", "wide"], { env });
    const run = onTerminal(["--status", "actve", "--limit", "2"], env);
    await run.until(() => run.drawings().length >= 1);
    expect(await run.end()).toBe(130);
    expect(run.lines().at(-1)).toMatch(/^0 of 6 devices at /);
    expect(run.err()).toContain('did you mean "active"?');
    const limited = onTerminal(["-o", "wide", "--limit", "2"]);
    await limited.until(() => limited.drawings().length >= 1);
    expect(await limited.end()).toBe(130);
    expect(
      limited
        .lines()
        .slice(1, 3)
        .map((line) => /dev_\w+/.exec(line)?.[0]),
    ).toEqual(allIds(small.sandbox).slice(0, 2));
  });

  it("is printed again below the last one where the terminal has no escape sequences", async () => {
    const run = onTerminal(["--columns", "id"], { TERM: "dumb" });
    await run.until(() => run.out().includes("every 1s"));
    const { data, ids } = small.sandbox;
    const gone = data.device(ids.pool, 5);
    data.deleteDevice(ids.pool, gone?.id ?? "");
    await run.until(() => run.out().includes("5 devices"));
    data.insertDevice(ids.pool, gone);
    expect(await run.end()).toBe(130);
    expect(run.out()).not.toContain(ESC);
    expect(run.out()).toMatch(/^ID\n(?:dev_\w+\n){6}6 devices at .*\n/);
    expect(run.out()).toMatch(/\n\nID\n(?:dev_\w+\n){5}5 devices at .*\n/);
  });

  it("is printed again below the log of requests", async () => {
    const run = onTerminal(["--columns", "id", "--verbose"]);
    await run.until(() => run.out().split("every 1s").length > 2);
    expect(await run.end()).toBe(130);
    expect(run.out()).not.toContain(ESC);
    expect(run.err()).toContain("GET ");
  });

  it("asks for the order, the pages and the fields that are named", async () => {
    const before = small.sandbox.requests.length;
    const run = onTerminal(["--sort", "last_seen:desc", "--page-size", "2", "--columns", "id,status", "--no-header"]);
    await run.until(() => run.drawings().length >= 2);
    expect([await run.end(), run.err()]).toEqual([130, ""]);
    expect(run.lines()[0]).toMatch(/^dev_\w+ +\w+$/);
    const queries = small.sandbox.requests.slice(before).map(({ query }) => query);
    expect(queries.every((query) => query["pagination[page_size]"] === "2")).toBe(true);
    expect(JSON.stringify(queries[0])).toMatch(/last_seen.*desc/);
  });

  it("cannot be filtered with --jq", async () => {
    const { code, stderr } = await small.run([...small.devices, "--watch", "-o", "table", "--jq", "."], { tty: true });
    expect([code, stderr]).toEqual([2, expect.stringContaining("--jq does not work with -o table and --watch")]);
  });
});
