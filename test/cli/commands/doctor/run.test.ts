import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { type AddressInfo, createServer as createSocketServer, type Socket } from "node:net";
import { join } from "node:path";
import stringWidth from "string-width";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type DoctorFlags, knownSettings } from "../../../../src/cli/commands/doctor/check.js";
import { type DoctorReport, doctorText, runDoctor } from "../../../../src/cli/commands/doctor/run.js";
import { STORE_CHECKS } from "../../../../src/cli/commands/doctor/store-checks.js";
import { sourcesLine } from "../../../../src/cli/commands/status/run.js";
import { type Sandbox, startSandbox } from "../../../../src/sandbox/index.js";
import { temporaryFolder } from "../../../helpers/cli.js";
import { fixedText } from "../../../helpers/fixed-text.js";
import { createMemoryIo } from "../../../helpers/memory-io.js";
import { ON_WINDOWS } from "../../../helpers/systems.js";
import { startRun } from "../../run-support.js";
import { at, look } from "./support.js";

interface Situation {
  flags?: Partial<DoctorFlags>;
  env?: Record<string, string>;
  /** The text of the settings file. */
  config?: unknown;
  now?: () => number;
  home?: string;
}

function contextOf({ flags = {}, env = {}, config, now = Date.now, home = temporaryFolder() }: Situation) {
  if (config !== undefined) {
    writeFileSync(join(home, "config.json"), typeof config === "string" ? config : JSON.stringify(config));
  }
  const options = { env: { PATH: process.env["PATH"] ?? "", AGENTAUTH_HOME: home, ...env } };
  return { ...startRun(options, flags, { now }), home };
}

/** What `doctor -o json` says. */
async function examine(situation: Situation = {}) {
  const flags: Partial<DoctorFlags> = { json: true, retries: 0, all: true, ...situation.flags };
  const { context, io, home } = contextOf({ ...situation, flags });
  const code = await runDoctor(flags as DoctorFlags, context);
  const report = JSON.parse(io.out()) as DoctorReport;
  return {
    code,
    home,
    report,
    check: (name: string) => report.checks.find((one) => one.name === name),
    setting: (name: string) => {
      const row = report.settings.find((one) => one.name === name);
      return [row?.value, row?.source];
    },
  };
}

const CONFIG = {
  profile: "work",
  profiles: {
    work: { base_url: "https://work.example", api_token: "env:WORK_TOKEN", pool: "pool_w", store: "memory" },
    other: { base_url: "https://other.example", api_token: "env:OTHER_TOKEN" },
  },
};

describe("the settings", () => {
  it("have their source each: flag, variable, profile or default", async () => {
    const env = { AGENTAUTH_BASE_URL: "https://env.example", WORK_TOKEN: "planted-token" };
    const { setting } = await examine({ config: CONFIG, env, flags: { timeout: 3 } });
    expect(setting("home")[1]).toBe("AGENTAUTH_HOME");
    expect(setting("profile")).toEqual(["work", "settings file"]);
    expect(setting("base_url")).toEqual(["https://env.example", "AGENTAUTH_BASE_URL"]);
    expect(setting("api_token")).toEqual(["env:WORK_TOKEN", "profile work"]);
    expect(setting("pool")).toEqual(["pool_w", "profile work"]);
    expect(setting("store")).toEqual(["memory", "profile work"]);
    expect(setting("timeout")).toEqual(["3", "--timeout"]);
    expect(setting("output")).toEqual(["json", "--json"]);
    expect(setting("auth_header")).toEqual(["Authorization: Bearer", "default"]);
    expect(setting("account")).toEqual([null, "default"]);
  });

  it("of a profile are beaten by the environment, and an empty variable is none", async () => {
    const unset = await examine({ config: CONFIG, env: { AGENTAUTH_PROFILE: "", AGENTAUTH_BASE_URL: "" } });
    expect(unset.setting("base_url")).toEqual(["https://work.example", "profile work"]);
    const set = await examine({ config: CONFIG, env: { AGENTAUTH_PROFILE: "other", AGENTAUTH_STORE: "file" } });
    expect(set.setting("profile")).toEqual(["other", "AGENTAUTH_PROFILE"]);
    expect(set.setting("base_url")).toEqual(["https://other.example", "profile other"]);
    expect(set.setting("store")).toEqual(["file", "AGENTAUTH_STORE"]);
  });

  it("without a settings file come from nowhere but the defaults", async () => {
    const { code, setting, check } = await examine();
    expect(setting("profile")).toEqual(["default", "default"]);
    expect(check("settings")).toMatchObject({ state: "ok", found: expect.stringMatching(/^no file; profile default/) });
    expect(code).toBe(0);
  });

  it.each<[string, string, Situation]>([
    ["settings", "home", { config: "{" }],
    ["settings", "home", { config: { profiles: { default: { url: "x" } } } }],
    ["settings", "home", { config: CONFIG, env: { AGENTAUTH_PROFILE: "nope" } }],
    ["settings", "home", { config: CONFIG, flags: { profile: "a b" } }],
    ["settings", "home", { config: CONFIG, flags: { baseUrl: "nowhere" } }],
    ["settings", "home", { env: { AGENTAUTH_BASE_URL: "http://far.example" } }],
    ["api_token", "settings", { config: CONFIG }],
    ["store", "settings", { env: { AGENTAUTH_STORE: "vault" } }],
    ["connections", "settings", { env: { HTTPS_PROXY: "socks5://x.example" } }],
    ["tls", "settings", { env: { NODE_TLS_REJECT_UNAUTHORIZED: "0" } }],
    ["connections", "settings", { flags: { caFile: "/nowhere.pem" } }],
  ])("that are wrong: the check %s fails with exit code 2, %s does not", async (wrong, right, situation) => {
    const { code, check, report } = await examine(situation);
    expect([check(wrong)?.state, code]).toEqual(["failed", 2]);
    expect(check(right)?.state).not.toBe("failed");
    expect(report.settings).toHaveLength(29);
  });

  it("that cannot be used are reported as such, with where they were set", async () => {
    const env = { AGENTAUTH_BASE_URL: "planted:pass/word@host", AGENTAUTH_STORE: "vault" };
    const { setting, report } = await examine({ config: CONFIG, env, flags: { profile: "nope" } });
    expect(setting("base_url")).toEqual(["(invalid)", "AGENTAUTH_BASE_URL"]);
    expect(setting("store")).toEqual(["(invalid)", "AGENTAUTH_STORE"]);
    expect(setting("profile")).toEqual(["nope", "--profile"]);
    expect(JSON.stringify(report)).not.toMatch(/planted|pass\/word/);
  });

  it("of a wrong profile are not taken from another one", () => {
    const { home } = contextOf({ config: CONFIG });
    const { settings } = knownSettings({ profile: "nope" }, { AGENTAUTH_HOME: home });
    expect([settings.baseUrl, settings.apiToken, settings.pool]).toEqual([undefined, undefined, undefined]);
  });
});

describe("the line that status has about its sources", () => {
  const line = (situation: Situation, more = {}) => {
    const { context, home } = contextOf(situation);
    const { settings } = knownSettings({}, context.io.env);
    return sourcesLine(settings, context, more).replace(home, "<home>");
  };

  it.each<[string, Situation, object]>([
    ["profile default (default), store file (default): <home>, readable by you alone", {}, {}],
    [
      "profile other (AGENTAUTH_PROFILE), store file (AGENTAUTH_STORE): <home>, readable by you alone",
      { config: CONFIG, env: { AGENTAUTH_PROFILE: "other", AGENTAUTH_STORE: "file" } },
      {},
    ],
    [
      "profile work (settings file), store memory (profile work): nothing is stored after a command ends",
      { config: CONFIG },
      {},
    ],
    ["all profiles (--all), store file (default): there, readable by you alone", {}, { all: true, location: "there" }],
  ])("is: %s", (wanted, situation, more) => {
    expect(line(situation, more)).toBe(wanted);
  });
});

describe.skipIf(ON_WINDOWS)("the readers of the folder", () => {
  it.each([
    [0o700, "readable by you alone", "ok"],
    [0o755, "which can be read by others", "warning"],
    [0o770, "", "failed"],
  ])("is the same for status and doctor: mode %i", (mode, said, state) => {
    const { context, home } = contextOf({ config: CONFIG });
    const { settings } = knownSettings({ profile: "other" }, context.io.env);
    chmodSync(home, mode);
    // Settings that others can change are not read.
    if (state === "failed") expect(() => sourcesLine(settings, context)).toThrow("can be written by others");
    else expect(sourcesLine(settings, context)).toMatch(new RegExp(`${home}, ${said}$`));
    expect(look(STORE_CHECKS.home, { home: at(home) }).state).toBe(state);
  });
});

describe("online", () => {
  let sandbox: Sandbox;
  let env: Record<string, string>;
  beforeAll(async () => {
    sandbox = await startSandbox({ accounts: 1, domains: 1, pools: 1, devices: 5 });
    env = { AGENTAUTH_BASE_URL: sandbox.baseUrl, AGENTAUTH_API_TOKEN: sandbox.apiToken };
  });
  afterEach(() => sandbox.faults.clear());
  afterAll(() => sandbox.close());
  const ids = () => ({ account: sandbox.ids.account, domain: sandbox.ids.domain, pool: sandbox.ids.pool });

  it("nothing is asked unless that is wished for", async () => {
    const before = sandbox.requests.length;
    const { check } = await examine({ env });
    const unsent = { state: "skipped", found: "no request was sent", hint: "agentauth doctor --online sends one" };
    expect([check("service"), check("clock")]).toEqual(["service", "clock"].map((name) => ({ name, ...unsent })));
    expect(sandbox.requests).toHaveLength(before);
  });

  it.each(["account", "domain", "pool"] as const)("one item is requested of the %s", async (name) => {
    const before = sandbox.requests.length;
    const { code, check } = await examine({ env, flags: { online: true, [name]: ids()[name] } });
    expect([code, check("service")?.state, check("clock")?.state]).toEqual([0, "ok", "ok"]);
    expect(check("service")?.found).toMatch(new RegExp(`^${sandbox.baseUrl}: lists the .*${name}`));
    expect(sandbox.requests).toHaveLength(before + 2);
  });

  it("a service that only misses an id is reached all the same", async () => {
    const { code, check } = await examine({ env, flags: { online: true } });
    expect([code, check("service")]).toEqual([
      0,
      expect.objectContaining({ state: "ok", found: expect.stringContaining("no account, domain or pool is set") }),
    ]);
  });

  it("an API token that the service does not take is a failure, and no output has it", async () => {
    const wrong = { ...env, AGENTAUTH_API_TOKEN: "planted-token-1" };
    const { code, check, report } = await examine({ env: wrong, flags: { online: true, pool: sandbox.ids.pool } });
    expect([code, check("service")?.state]).toEqual([5, "failed"]);
    expect(check("service")?.hint).toContain("AGENTAUTH_API_TOKEN");
    expect(JSON.stringify(report)).not.toContain("planted");
  });

  it("a service that is down is a failure", async () => {
    const down = { ...env, AGENTAUTH_BASE_URL: "http://127.0.0.1:9" };
    const { code, check } = await examine({ env: down, flags: { online: true } });
    expect([code, check("service")?.state, check("clock")?.state]).toEqual([5, "failed", "failed"]);
  });

  it.each([
    [10, "ok", 0],
    [-120, "warning", 0],
    [400, "failed", 5],
    [-400, "failed", 5],
  ])("a clock that is %i s off is %s", async (seconds, state, code) => {
    const now = () => Date.now() + seconds * 1000;
    const result = await examine({ env, now, flags: { online: true, pool: sandbox.ids.pool } });
    expect([result.check("clock")?.state, result.code]).toEqual([state, code]);
    if (state !== "ok") expect(result.check("clock")?.found).toMatch(seconds < 0 ? /s behind/ : /s ahead of/);
  });

  it("a setting that is wrong is one also where the service is asked", async () => {
    const config = { profiles: { default: { base_url: "https://bound.example", api_token: "env:BOUND_TOKEN" } } };
    const bound = { AGENTAUTH_BASE_URL: sandbox.baseUrl, BOUND_TOKEN: "planted-token" };
    const { code, check } = await examine({ config, env: bound, flags: { online: true } });
    expect([code, check("api_token")?.state, check("service")?.state]).toEqual([2, "failed", "failed"]);
  });

  it.each([
    [10, "ok"],
    [-400, "failed"],
  ])("a clock that is %i s off that of an MCP server is %s", async (seconds, state) => {
    const now = () => Date.now() + seconds * 1000;
    const { check } = await examine({ env, now, flags: { url: sandbox.mcpUrl } });
    expect(check("clock")).toMatchObject({ state, found: expect.stringContaining(new URL(sandbox.mcpUrl).host) });
  });

  it("servers that never answer are waited for once each, and together", async () => {
    const taken: Socket[] = [];
    const requested: string[] = [];
    const silent = createSocketServer((socket) => {
      taken.push(socket.on("data", (bytes) => requested.push(String(bytes).split(" HTTP/")[0] ?? "")));
    });
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    const base = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
    const { retries: _, ...flags } = { retries: undefined, online: true, url: `${base}/mcp`, timeout: 0.3 };
    const down = { ...env, AGENTAUTH_BASE_URL: base };
    const { context, io } = contextOf({ env: down });
    const code = await runDoctor({ json: true, ...flags } as DoctorFlags, context);
    for (const socket of taken) socket.destroy();
    silent.close();
    const { checks } = JSON.parse(io.out()) as DoctorReport;
    const stateOf = (name: string) => checks.find((one) => one.name === name)?.state;
    expect([code, stateOf("service"), stateOf("clock")]).toEqual([5, "failed", "failed"]);
    expect(requested.sort()).toEqual(["GET /api/v1/domain", "GET /mcp"]);
  });

  it("what a server sends is escaped", async () => {
    const evil = createServer((_request, response) => {
      response.writeHead(400, { "content-type": "application/json" });
      response.end(JSON.stringify({ status: "error", code: "not_found", message: "a\u001b[31m\u202eb" }));
    });
    await new Promise<void>((resolve) => evil.listen(0, "127.0.0.1", resolve));
    const base = `http://127.0.0.1:${(evil.address() as AddressInfo).port}`;
    const { context, io } = contextOf({ env: { ...env, AGENTAUTH_BASE_URL: base } });
    const code = await runDoctor({ online: true, retries: 0, pool: "p" } as DoctorFlags, context);
    evil.close();
    expect(code).toBe(5);
    expect(io.out()).toContain("\\e[31m");
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not come through
    expect(io.out()).not.toMatch(/[\u001b\u202e]/);
  });
});

/** Checks whose findings differ between machines. */
const OF_MACHINE = new Set(["node", "keychain"]);

/** Each check in a line, without those that differ between machines. */
function linesOf({ checks }: DoctorReport): string[] {
  return checks
    .filter(({ name }) => !OF_MACHINE.has(name))
    .map(({ name, state, found, hint = "" }) => fixedText(`${state} ${name}: ${found} | ${hint}`));
}

const FRESH: Situation = {};
const ENGINE = { AGENTAUTH_STORE: "redis", AGENTAUTH_STORE_URL: "redis://127.0.0.1:1", AGENTAUTH_STORE_KEYS: "none" };
const ALL_SETTINGS = {
  profile: "work",
  profiles: {
    work: {
      ...{ base_url: "https://work.example", api_token: "env:AGENTAUTH_WORK_TOKEN", store: "memory" },
      issuer: "https://issuer.example",
    },
    other: { store_url: "env:AGENTAUTH_WORK_URL", store_keys: "env:AGENTAUTH_WORK_KEYS", pool: "env:AGENTAUTH_POOL" },
  },
};
const ALL_VARIABLES = {
  ...{ AGENTAUTH_WORK_TOKEN: "planted", AGENTAUTH_WORK_URL: "x", AGENTAUTH_WORK_KEYS: "x", BROWSER: "none" },
  ...{ HTTPS_PROXY: "http://u:p@127.0.0.1:9", HTTP_PROXY: "http://127.0.0.1:8", NODE_EXTRA_CA_CERTS: "/nowhere.pem" },
};

it.each<[string, Situation]>([
  ["a fresh machine", FRESH],
  ["a broken settings file", { config: "{" }],
  ["a profile that is not there", { env: { AGENTAUTH_PROFILE: "nope" } }],
  ["variables that mean nothing", { env: { AGENTAUTH_FOO: "1", AGENTAUTH_ERRORS: "x", BROWSER: "/nowhere" } }],
  ["a store that is none", { env: { AGENTAUTH_STORE: "vault" } }],
  ["a keychain that is not there", { env: { AGENTAUTH_STORE: "keyring" } }],
  ["files that are not there", { flags: { caFile: "/nowhere", clientCert: "/nowhere", clientKey: "/nowhere" } }],
  ["a key without a certificate", { flags: { clientKey: "/nowhere" } }],
  ["proxies that are none", { env: { HTTPS_PROXY: "socks5://x:1", NODE_TLS_REJECT_UNAUTHORIZED: "0" } }],
  ["a service that is down", { env: { AGENTAUTH_BASE_URL: "http://127.0.0.1:9" }, flags: { online: true } }],
  ["an MCP server that is down", { flags: { url: "http://127.0.0.1:9/mcp" } }],
  ["all settings", { config: ALL_SETTINGS, env: { ...ALL_VARIABLES }, flags: { url: "http://127.0.0.1:9/mcp" } }],
  ["settings without a profile", { config: {} }],
  ["no prompt by a flag", { flags: { input: false } }],
  ["no prompt by the environment", { env: { AGENTAUTH_NO_INPUT: "yes" } }],
  ["an issuer that is none", { config: { profiles: { default: { issuer: "nowhere" } } } }],
  ["a service and its token", { env: { AGENTAUTH_BASE_URL: "https://env.example", AGENTAUTH_API_TOKEN: "planted" } }],
  ["an engine that is not there", { env: ENGINE }],
  ["the same in any network", { flags: { url: "http://127.0.0.1:9/mcp", allowPrivateNetwork: true } }],
  ["an API token that is empty", { config: CONFIG, env: { WORK_TOKEN: "" } }],
  ["a service without a token", { env: { AGENTAUTH_BASE_URL: "https://env.example" } }],
])("whatever failed or is to be known says what helps: %s", async (_what, situation) => {
  const { code, report } = await examine(situation);
  const silent = report.checks.filter(({ state, hint }) => (state === "failed" || state === "warning") && !hint);
  expect(silent).toEqual([]);
  const usual = situation === FRESH ? [] : linesOf((await examine(FRESH)).report);
  expect([code, ...linesOf(report).filter((line) => !usual.includes(line))]).toMatchSnapshot();
});

it("an address that is none ends before anything is looked at", async () => {
  const { context, io } = contextOf({});
  await expect(runDoctor({ url: "mcp.example" } as DoctorFlags, context)).rejects.toMatchObject({ class: "usage" });
  expect(io.out()).toBe("");
});

it("the text is aligned, painted only where colour is wanted, and names what is set", async () => {
  const home = temporaryFolder();
  mkdirSync(join(home, "grants"), { mode: 0o700 });
  const plain = contextOf({ home });
  await runDoctor({} as DoctorFlags, plain.context);
  const lines = plain.io.out().split("\n");
  expect(lines[0]).toMatch(/^agentauth \d+\.\d+\.\d+, Node v/);
  expect(lines.find((line) => line.startsWith("ok "))).toMatch(/^ok {7}node {9}v\d/);
  expect(plain.io.err()).toMatch(/^\d+ checks: 0 failed, /);
  const settings = lines.filter((line) => /^\w+ .*\(\S+\)$/.test(line) && !/^(?:ok|skipped|warning) /.test(line));
  expect(settings).toEqual([`home  ${home} (AGENTAUTH_HOME)`]);
  const painted = contextOf({ home, env: { FORCE_COLOR: "1" } });
  await runDoctor({} as DoctorFlags, painted.context);
  expect(painted.io.out()).toContain("\u001b[32mok     \u001b[39m");
});

const REPORT = {
  version: "0.1.0",
  node: "v20.20.2",
  platform: "linux x64 6.18.44",
  checks: [
    { name: "node", state: "ok", found: "v20.20.2, at least 20.19 is needed" },
    {
      name: "settings file",
      state: "warning",
      found: "others can read it, which lets them see where the API token is kept",
      hint: "agentauth doctor --fix takes the permission away from everybody else on this machine",
    },
  ],
  settings: [{ name: "output", value: "table on a terminal, plain in a pipe", source: "default" }],
} satisfies Parameters<typeof doctorText>[0];

const { colors } = createMemoryIo().stdout;
const words = (text: string) => text.split(/\s+/).filter(Boolean);

describe("what doctor says", () => {
  it.each([120, 80, 60])("is broken between words on a terminal of %i columns", (columns) => {
    const text = doctorText(REPORT, colors, columns);
    expect(text.split("\n").filter((line) => stringWidth(line) > columns)).toEqual([]);
    for (const { found, hint = "" } of REPORT.checks as readonly { found: string; hint?: string }[]) {
      expect(words(text).join(" ")).toContain(words(found).join(" "));
      expect(words(text).join(" ")).toContain(words(hint).join(" "));
    }
  });

  it("is beside the names", () => {
    expect(doctorText(REPORT, colors, 80)).toContain(
      "\nwarning  settings file  others can read it, which lets them see where the API\n                        token is kept\n",
    );
    expect(doctorText(REPORT, colors, 60)).toContain("\noutput  table on a terminal, plain in a pipe (default)\n");
  });

  it("is as it was approved: painted, with every state, wide and narrow, and without a check", () => {
    const states = (["ok", "warning", "failed", "skipped"] as const).map((state) => ({
      name: `a ${state}`,
      state,
      found: `it is \u001b ${state}`,
    }));
    const settings = [...REPORT.settings, { name: "pool", value: null, source: "default" }];
    const report = { ...REPORT, checks: [...REPORT.checks, ...states], settings };
    const painted = createMemoryIo({ tty: true, color: true }).stdout.colors;
    for (const columns of [undefined, 90, 20]) {
      expect(doctorText(report, painted, columns).replaceAll("\u001b", "\\e")).toMatchSnapshot(`${columns}`);
    }
    expect(doctorText({ ...report, checks: [] }, colors)).toMatchSnapshot("no check");
  });

  it("has last what failed, and before it what it warns of", () => {
    const states = ["failed", "ok", "warning", "skipped", "failed", "warning"] as const;
    const checks = states.map((state, at) => ({ name: `check ${at}`, state, found: "x" }));
    const text = doctorText({ ...REPORT, checks }, colors);
    const order = text.match(/check \d|output /g);
    const [settings, warnings, failures] = ["output ", ["check 2", "check 5"], ["check 0", "check 4"]];
    expect(order).toEqual(["check 1", "check 3", settings, ...warnings, ...failures]);
    expect(text.endsWith("failed   check 4  x\n")).toBe(true);
    expect(doctorText({ ...REPORT, settings: [] }, colors)).not.toContain("output");
  });

  it("is never broken in a pipe", () => {
    const lines = doctorText(REPORT, colors).split("\n");
    expect(lines).toContain(`warning  settings file  ${REPORT.checks[1]?.found}`);
  });
});
