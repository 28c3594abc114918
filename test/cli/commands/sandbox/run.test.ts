import { once } from "node:events";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Ajv2020 } from "ajv/dist/2020.js";
import { describe, expect, onTestFinished, test } from "vitest";
import { FAULT_KINDS } from "../../../../src/sandbox/index.js";
import { collect, linesOf, runCli, startCli, temporaryFolder, until } from "../../../helpers/cli.js";
import { fixedText } from "../../../helpers/fixed-text.js";
import { ON_WINDOWS } from "../../../helpers/systems.js";
import { type OwnSandbox, startOwnSandbox } from "./support.js";

/** A sandbox that the cases of the file share, and one for the case alone. */
const it = test
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from the pattern
  .extend("sandbox", { scope: "file" }, async ({}, { onCleanup }) => {
    const sandbox = await startOwnSandbox(["--devices", "40", "--seed", "7", "--options", optionsFile({ pools: 1 })]);
    onCleanup(async () => void (await sandbox.stop()));
    return sandbox;
  })
  // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from the pattern
  .extend("small", async ({}, { onCleanup }) => {
    const sandbox = await startOwnSandbox(["--devices", "1"]);
    onCleanup(async () => void (await sandbox.stop()));
    return sandbox;
  });

/** A file of options. */
function optionsFile(content: unknown): string {
  const path = join(temporaryFolder(), "sandbox.json");
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

describe("--options", () => {
  it("takes what startSandbox takes, and the flags decide over it", async () => {
    const origin = "http://localhost:5173";
    const fault = { kind: "status", status: 503, path: "device", times: 1 };
    const options = {
      devices: 9,
      pools: 1,
      metadata: "appended",
      allowOrigins: [origin],
      faults: [fault],
      apiToken: "t",
    };
    const sandbox = await startOwnSandbox(["--devices", "2", "--options", optionsFile(options)]);
    onTestFinished(async () => void (await sandbox.stop()));
    const { base_url, pool_id, mcp_url = "", api_token } = sandbox.ready;
    expect(api_token).toBe("t");
    const inserted = await fetch(`${base_url}/.well-known/oauth-authorization-server/${pool_id}`);
    expect(inserted.status).toBe(404);
    const page = await fetch(mcp_url, { headers: { origin } });
    expect(page.headers.get("access-control-allow-origin")).toBe(origin);
    const list = ["devices", "list", "--profile", "sandbox", "-o", "id", "--retries", "0"];
    expect((await sandbox.run(list)).code).toBe(5);
    expect(linesOf((await sandbox.run(list)).stdout)).toHaveLength(2);
  });

  it.each<[string, unknown, RegExp]>([
    ["a misspelt member", { devcies: 5 }, /has no option "devcies"; did you mean devices\?/],
    [
      "a misspelt member of a fault",
      { faults: [{ kind: "status", stauts: 503 }] },
      /unknown field "stauts".*did you mean status/s,
    ],
    ["a kind of fault that does not exist", { faults: [{ kind: "nope" }] }, /"nope"/],
    ["an option for programs", { now: 5 }, /has no option "now"/],
    ["a host for others", { host: "0.0.0.0" }, /does not listen on "0\.0\.0\.0".*set allowNonLoopback/s],
    ["a host that is no text", { host: 5 }, /host must be a text/],
    ["a flag that is a text", { opaque: "yes" }, /opaque must be true or false/],
    ["a number that is null", { seed: null }, /seed must be an integer/],
    ["faults that are no list", { faults: {} }, /faults must be a list of faults/],
    ["origins that are no list", { allowOrigins: "http://localhost" }, /allowOrigins must be exact origins/],
    ["scopes that are no texts", { scopesSupported: [5] }, /scopesSupported must be a list of scopes/],
    ["a token that is no text", { apiToken: 5 }, /apiToken/],
    [
      "a public address with a path",
      { publicUrl: "https://sandbox.example/a" },
      /publicUrl must be an origin without a path/,
    ],
    ["a list", [], /is not a JSON object/],
    ["a member twice", '{"seed":1,"seed":2}', /cannot be read/],
  ])("refuses %s", async (_what, content, reason) => {
    const run = await runCli(["sandbox", "start", "--options", optionsFile(content)], {
      env: { AGENTAUTH_HOME: temporaryFolder() },
    });
    expect(run).toMatchObject({ code: 2, stdout: "", stderr: expect.stringMatching(reason) });
  });

  it("has a schema that knows each option, and no other", async () => {
    const { stdout } = await runCli(["schema", "sandbox-options"]);
    const validate = new Ajv2020({ strictTypes: false }).compile(JSON.parse(stdout));
    const good = {
      publicUrl: "https://a.example",
      autoApprove: "alice",
      faults: [{ kind: "html", times: 2 }],
      dpop: "off",
    };
    expect([validate(good), validate({ autoApprove: true })]).toEqual([true, true]);
    for (const bad of [{ devcies: 5 }, { now: 5 }, { faults: [{ kind: "nope" }] }, { dpop: "on" }, { host: 5 }]) {
      expect(validate(bad)).toBe(false);
    }
  });
});

describe("a sandbox in the test's process", () => {
  it("prints one line with what a program needs, without the control token", ({ sandbox }) => {
    expect(sandbox.ready).toEqual({
      ready: true,
      pid: process.pid,
      base_url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      api_token: expect.stringMatching(/^sandbox_/),
      account_id: expect.stringMatching(/^acc_/),
      domain_id: expect.stringMatching(/^dom_/),
      pool_id: expect.stringMatching(/^pool_/),
      mcp_url: `${sandbox.ready.base_url}/mcp`,
    });
  });

  it("is the profile sandbox, and the service of a list that names none", async ({ sandbox }) => {
    const list = await sandbox.run(["devices", "list", "--profile", "sandbox", "-o", "id"]);
    expect([list.code, linesOf(list.stdout).length]).toEqual([0, 40]);
    expect((await sandbox.run(["pools", "list", "--profile", "sandbox", "-o", "id"])).stdout).toBe(
      `${sandbox.ready.pool_id}\n`,
    );
    const unnamed = await sandbox.run(["devices", "list", "-o", "id"]);
    expect(unnamed.stdout).toBe(list.stdout);
    expect([list.stderr, unnamed.stderr]).toEqual([
      expect.not.stringContaining("the running sandbox"),
      expect.stringContaining(`the lists are those of the running sandbox at ${sandbox.ready.base_url}\n`),
    ]);
    const other = await sandbox.run(["devices", "list"], { env: { AGENTAUTH_API_TOKEN: "of-a-service" } });
    expect([other.code, other.stderr]).toEqual([2, expect.stringContaining("the base URL is not set")]);
    const profiles = await sandbox.run(["profile", "list"]);
    expect(profiles.stdout).toBe(`default\ttrue\t\tdefault\nsandbox\tfalse\t${sandbox.ready.base_url}\t\n`);
  });

  it("has a status", async ({ sandbox }) => {
    const text = await sandbox.run(["sandbox", "status"]);
    const { base_url, account_id, domain_id, pool_id, mcp_url } = sandbox.ready;
    expect([text.code, text.stdout]).toEqual([
      0,
      `sandbox ready at ${base_url} (account ${account_id}, domain ${domain_id}, pool ${pool_id}, MCP server ${mcp_url})\n`,
    ]);
    const json = await sandbox.run(["sandbox", "status", "-o", "json"]);
    const { ready, ...known } = sandbox.ready;
    expect([json.code, ready, JSON.parse(json.stdout)]).toEqual([0, true, { running: true, ...known }]);
  });

  it("is not started twice", async ({ sandbox }) => {
    const { code, stdout, stderr } = await sandbox.run(["sandbox", "start"]);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toBe(
      `error: a sandbox is already running, at ${sandbox.ready.base_url} (process ${sandbox.ready.pid})\n` +
        "hint: agentauth sandbox stop, or set another AGENTAUTH_HOME for a second one\n",
    );
  });

  it.skipIf(ON_WINDOWS)("stores its tokens where no other user can read them", ({ sandbox }) => {
    expect((statSync(join(sandbox.home, "sandbox.json")).mode & 0o777).toString(8)).toBe("600");
  });

  it("injects the faults that are set, and stops after --clear", async ({ sandbox }) => {
    const set = await sandbox.run(["sandbox", "fault", "503:times=0,path=device", "429:retry-after=2"]);
    expect(linesOf(set.stdout).map((line) => JSON.parse(line).fault)).toEqual([
      { kind: "status", status: 503, times: 0, path: "device" },
      { kind: "status", status: 429, retryAfter: "2" },
    ]);
    const list = ["devices", "list", "--profile", "sandbox", "--retries", "0"];
    expect((await sandbox.run(list)).code).toBe(5);
    expect((await sandbox.run(["sandbox", "fault"])).stdout).toContain('"fired":1');
    expect((await sandbox.run(["sandbox", "fault", "--clear"])).stdout).toBe("");
    expect((await sandbox.run(list)).code).toBe(0);
  });

  it("names every kind of fault, and refuses an unknown one", async ({ sandbox }) => {
    const { stdout } = await sandbox.run(["sandbox", "fault"]);
    for (const kind of Object.keys(FAULT_KINDS)) expect(stdout).toMatch(new RegExp(`^  ${kind} +\\S`, "m"));
    expect(await sandbox.run(["sandbox", "fault", "503:time=2"])).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringContaining('"time"'),
    });
    expect(await sandbox.run(["sandbox", "fault", "999"])).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringContaining('"999"'),
    });
  });

  it("does not send its token to another address", async ({ sandbox }) => {
    const { code, stderr } = await sandbox.run([
      "devices",
      "list",
      "--profile",
      "sandbox",
      "--base-url",
      "https://agentauth.example",
    ]);
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining(`belongs to ${sandbox.ready.base_url}, not to https://agentauth.example`),
    ]);
  });
});

it.for<[string, string[]]>([["plain", []]])("says what to do next: %s", async ([_what, flags]) => {
  const env = { AGENTAUTH_HOME: temporaryFolder() };
  for (const format of ["text", "json"]) {
    const child = startCli(["sandbox", "start", "--devices", "1", "--seed", "7", "-o", format, ...flags], { env });
    const [out, err] = [collect(child.stdout), collect(child.stderr)];
    const closed = once(child, "close");
    await until(() => err().split("\n").length > 2 || child.exitCode !== null);
    child.kill("SIGTERM");
    expect((await closed)[0]).toBe(143);
    const text = fixedText(`${out()}${err()}`)
      .replace(/sandbox_[\w-]+/, "<token>")
      .replace(/"pid":\d+/, '"pid":0');
    expect(text).toMatchSnapshot(format);
  }
});

describe("the end of a sandbox", () => {
  it("sandbox stop: both end with 0, nothing is left", async ({ small }) => {
    expect(await small.run(["sandbox", "stop"])).toMatchObject({
      code: 0,
      stdout: "",
      stderr: "the sandbox has stopped\n",
    });
    expect(await small.exitCode).toBe(0);
    expect(existsSync(join(small.home, "sandbox.json"))).toBe(false);
    expect(await small.run(["sandbox", "status"])).toMatchObject({ code: 5, stdout: "no sandbox is running\n" });
    expect(await small.run(["sandbox", "status", "--json"])).toMatchObject({ code: 5, stdout: '{"running":false}\n' });
    expect(await small.run(["sandbox", "stop"])).toMatchObject({ code: 0, stderr: "no sandbox is running\n" });
  });

  it("the same seed returns the same ids", async () => {
    const [one, two] = await Promise.all([startOwnSandbox(["--seed", "3"]), startOwnSandbox(["--seed", "3"])]);
    const ids = ({ ready }: OwnSandbox) => [ready.account_id, ready.domain_id, ready.pool_id];
    expect(ids(one)).toEqual(ids(two));
    await Promise.all([one.stop(), two.stop()]);
  });

  it("a port that is in use is an error, and nothing is left", async ({ small }) => {
    const home = temporaryFolder();
    const port = new URL(small.ready.base_url).port;
    const { code, stdout, stderr } = await runCli(["sandbox", "start", "--port", port], {
      env: { AGENTAUTH_HOME: home },
    });
    expect([code, stdout, stderr]).toEqual([
      2,
      "",
      expect.stringMatching(/port \d+: the port is in use\nhint: choose another port/),
    ]);
    expect(existsSync(join(home, "sandbox.json"))).toBe(false);
  });
});

describe("the clock and the machine clients of a sandbox", () => {
  it("clock prints the time, and moves it forward", async ({ small }) => {
    const shown = await small.run(["sandbox", "clock"]);
    expect(shown).toMatchObject({ code: 0, stderr: "" });
    const now = Date.parse(shown.stdout.trim());
    const { code, stdout } = await small.run(["sandbox", "clock", "+2h"]);
    expect([code, Date.parse(stdout.trim()) - now]).toEqual([0, expect.any(Number)]);
    let last = Date.parse(stdout.trim());
    expect(last - now).toBeGreaterThanOrEqual(7_200_000);
    for (const [step, ms] of [
      ["+1s", 1000],
      ["+2m", 120_000],
      ["+1d", 86_400_000],
    ] as const) {
      const moved = Date.parse((await small.run(["sandbox", "clock", step])).stdout.trim());
      expect(moved - last).toBeGreaterThanOrEqual(ms);
      expect(moved - last).toBeLessThan(ms + 60_000);
      last = moved;
    }
    for (const step of ["2h", "+2w", "-1h", "x+1h", "+1hx", "+1234567s"]) {
      const wrong = await small.run(["sandbox", "clock", "--", step]);
      expect([wrong.code, wrong.stderr]).toEqual([
        2,
        `error: "${step}" is not a valid time step\nhint: use a time such as +90s, +30m, +1h or +2d; the clock only moves forward\n`,
      ]);
      const asJson = await small.run(["sandbox", "clock", "--", step], { env: { AGENTAUTH_ERRORS: "json" } });
      expect(JSON.parse(asJson.stderr).error).toMatchObject({ code: "usage", class: "usage" });
    }
  });

  it("machine prints the credentials, where the sandbox has them", async () => {
    const [having, plain] = await Promise.all([startOwnSandbox(["--machine-grants"]), startOwnSandbox()]);
    const { code, stdout } = await having.run(["sandbox", "machine"]);
    expect([code, JSON.parse(stdout)]).toEqual([0, expect.objectContaining({ client_id: "sandbox-service" })]);
    expect(await plain.run(["sandbox", "machine"])).toMatchObject({
      code: 2,
      stdout: "",
      stderr: "error: no sandbox with machine grants is running\nhint: agentauth sandbox start --machine-grants\n",
    });
    await Promise.all([having.stop(), plain.stop()]);
  });

  it("a request that the sandbox rejects is an error", async ({ small }) => {
    const path = join(small.home, "sandbox.json");
    const state = JSON.parse(readFileSync(path, "utf8")) as Record<string, unknown>;
    writeFileSync(path, JSON.stringify({ ...state, control_token: "sandbox_control_of_another" }), { mode: 0o600 });
    const { code, stderr } = await small.run(["sandbox", "clock"]);
    expect([code, stderr]).toEqual([2, expect.stringMatching(/^error: the sandbox rejected the request: ".+"\n$/)]);
  });

  it.each([["clock"], ["fault", "503"], ["fault", "--clear"]])(
    "without a sandbox, %s %s is refused",
    async (...words) => {
      const { code, stdout, stderr } = await runCli(["sandbox", ...words], {
        env: { AGENTAUTH_HOME: temporaryFolder() },
      });
      expect([code, stdout, stderr]).toEqual([2, "", "error: no sandbox is running\nhint: agentauth sandbox start\n"]);
    },
  );

  it("without a sandbox, fault prints the kinds, and machine is refused", async () => {
    const env = { AGENTAUTH_HOME: temporaryFolder() };
    const { stdout } = await runCli(["sandbox", "fault"], { env });
    const kinds = Object.entries(FAULT_KINDS).map(([kind, description]) => `  ${kind.padEnd(18)} ${description}\n`);
    expect(stdout).toBe(`Kinds of faults:\n${kinds.join("")}`);
    expect((await runCli(["sandbox", "machine"], { env })).code).toBe(2);
  });

  it("status takes the file of one that has gone for none", async ({ small }) => {
    const home = temporaryFolder();
    const state = readFileSync(join(small.home, "sandbox.json"), "utf8");
    expect(await small.stop()).toBe(143);
    writeFileSync(join(home, "sandbox.json"), state, { mode: 0o600 });
    const { code, stdout } = await runCli(["sandbox", "status", "--json"], { env: { AGENTAUTH_HOME: home } });
    expect([code, stdout]).toEqual([5, '{"running":false}\n']);
  });
});
