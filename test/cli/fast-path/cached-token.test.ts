import { chmodSync, linkSync, mkdirSync, readFileSync, renameSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { Readable, Writable } from "node:stream";
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { execWithCachedToken } from "../../../src/cli/fast-path/cached-exec.js";
import { cachedToken } from "../../../src/cli/fast-path/cached-token.js";
import { commands, run } from "../../../src/cli/groups/tokens.js";
import { main } from "../../../src/cli/main.js";
import type { Host } from "../../../src/cli/runtime/context.js";
import type { Grant } from "../../../src/oauth/model/grant.js";
import { readEnv } from "../../../src/platform.js";
import { Secret } from "../../../src/redact.js";
import { fileStore } from "../../../src/store/file/file.js";
import { madeGrant } from "../../helpers/grant.js";
import { grantFile } from "../../helpers/grant-files.js";
import { fc } from "../../helpers/properties.js";
import { folder } from "../../store/stores.js";

const MCP = "https://mcp.example/mcp";
const NOW = 1_900_000_100_500;

/** A grant whose token has an hour of its life left; it cannot be refreshed, so that no test asks an issuer. */
function kept(over: Partial<Grant["tokens"]> = {}, rest: Partial<Grant> = {}): Grant {
  const { tokens } = madeGrant();
  const life = { obtainedAt: NOW - 3_600_000, expiresAt: NOW + 3_600_000, scope: "tools read" };
  return madeGrant({ ...rest, tokens: { ...tokens, refreshToken: undefined, ...life, ...over } });
}

let home: string;

const save = (grant: Grant) => fileStore(home).save(grant, undefined);
const settings = (value: unknown) =>
  writeFileSync(join(home, "config.json"), typeof value === "string" ? value : JSON.stringify(value));

function rewrite(change: (text: string) => string): void {
  writeFileSync(grantFile(home), change(readFileSync(grantFile(home), "utf8")));
}

type Env = Record<string, string>;

/** What a way of running a command line prints, and its exit code. */
async function outcome(way: (argv: string[], host: Host) => Promise<number>, argv: string[], env: Env) {
  const texts = { stdout: "", stderr: "" };
  const sink = (name: keyof typeof texts) =>
    new Writable({
      write(chunk, _encoding, done) {
        texts[name] += String(chunk);
        done();
      },
    });
  const host: Host = {
    stdin: Readable.from([]),
    stdout: sink("stdout"),
    stderr: sink("stderr"),
    env: { AGENTAUTH_HOME: home, ...env },
    on: () => {},
    off: () => {},
    emit: () => false,
    exit: () => {
      throw new Error("the process was ended");
    },
  };
  return { code: await way(argv, host), ...texts };
}

/** The whole program, as it runs where the quick way gives up. */
const runWhole = (argv: string[], host: Host) => run(argv, host, commands);

const quickly = (argv: string[], env: Env = {}) => cachedToken(argv, readEnv({ AGENTAUTH_HOME: home, ...env }));

/** Both ways of running a command line, which must come to the same. */
async function both(argv: string[], env: Env = {}) {
  const whole = await outcome(runWhole, argv, env);
  expect(await outcome(main, argv, env)).toEqual(whole);
  return whole;
}

beforeAll(() => {
  vi.useFakeTimers({ toFake: ["Date"], now: NOW });
});

afterAll(() => {
  vi.useRealTimers();
});

beforeEach(() => {
  home = folder();
});

describe("command lines that are answered from the store", () => {
  it.each<[string[]]>([
    [[MCP]],
    [["HTTPS://MCP.example:443/mcp#part"]],
    [[MCP, "--format", "raw"]],
    [["--format=header", MCP]],
    [[MCP, "--format", "headers-json", "--no-login"]],
    [[MCP, "--format", "json", "--quiet", "--no-input"]],
    [["-q", MCP, "--format", "env", "--login"]],
    [[MCP, "--min-ttl", "0"]],
    [[MCP, "--min-ttl=007"]],
    [[MCP, "--min-ttl", "999999999"]],
    [[MCP, "--scope", "tools"]],
    [[MCP, "--scope", " read  tools "]],
    [[MCP, "--profile", "default"]],
  ])("token %j prints what the whole program prints", async (args) => {
    // A token that lives for less than was asked has to do where it has half of its life left.
    await save(kept({ obtainedAt: NOW }));
    const argv = ["token", ...args];
    const text = await quickly(argv);
    expect(text).toContain("access-token-1");
    expect(await both(argv)).toEqual({ code: 0, stdout: text, stderr: "" });
  });

  it.each<[string, string[], number]>([
    ["an unknown format", [MCP, "--format", "rwa"], 2],
    ["a format that asks standard input", [MCP, "--format", "git"], 0],
    ["a format that asks the environment", [MCP, "--format", "k8s"], 0],
    ["a number that is none", [MCP, "--min-ttl", "60s"], 2],
    ["a number in another notation", [MCP, "--min-ttl", "1e3"], 2],
    ["a negative number", [MCP, "--min-ttl", "-1"], 2],
    ["a flag without its value", [MCP, "--scope"], 2],
    ["a flag as the value of another", [MCP, "--scope", "--quiet"], 2],
    ["an empty value", [MCP, "--scope="], 0],
    ["a flag that comes twice", [MCP, "--format", "raw", "--format", "json"], 0],
    ["an unknown flag", [MCP, "--formt", "raw"], 2],
    ["a switch with a value", [MCP, "--quiet=yes"], 2],
    ["switches that contradict each other", ["--login", MCP, "--no-login"], 2],
    ["flags in one word", [MCP, "-qv"], 0],
    ["a flag that the quick way leaves alone", [MCP, "--verbose"], 0],
    ["two addresses", [MCP, MCP], 2],
    ["no address", [], 2],
    ["an address that is none", ["mcp.example"], 2],
    ["an address behind --", ["--", MCP], 0],
    ["help", [MCP, "--help"], 0],
    ["a scope that was not granted", [MCP, "--scope", "admin"], 4],
    ["another server", ["https://mcp.example/other"], 4],
    ["another profile", [MCP, "--profile", "work"], 2],
    ["a profile that cannot be one", [MCP, "--profile", "../x"], 2],
    ["the sandbox, which is not running", [MCP, "--profile", "sandbox"], 4],
  ])("%s is left to the whole program", async (_name, args, code) => {
    await save(kept());
    const argv = ["token", ...args];
    expect(await quickly(argv)).toBeUndefined();
    expect((await both(argv)).code).toBe(code);
  });

  it("does not take a flag for the value of another, even if that would be a scope that was granted", async () => {
    await save(kept({ scope: "tools -q" }));
    const argv = ["token", MCP, "--scope", "-q"];
    expect(await quickly(argv)).toBeUndefined();
    expect((await both(argv)).code).toBe(2);
  });

  it("does not answer other commands, nor a flag before the command", async () => {
    await save(kept());
    for (const argv of [["login", MCP], ["status", MCP], ["--quiet", "token", MCP], [MCP], []]) {
      expect(await quickly(argv)).toBeUndefined();
    }
  });

  it("prints what the whole program prints, or leaves it to that, for any words", async () => {
    await save(kept());
    const formats = ["raw", "header", "headers-json", "json", "env", "git", "k8s", "bazel", "yaml"];
    const word = fc.constantFrom(
      ...[
        MCP,
        "https://MCP.example/mcp",
        "https://mcp.example/mcp/",
        "http://mcp.example/mcp",
        "-q",
        "--quiet",
        "--login",
      ],
      ...[
        ...["--no-login", "--no-input", "--input", "--profile", "default", "--profile=default", "--scope", "tools"],
        ...["admin"],
      ],
      ...[
        ...["--scope=read", "--min-ttl", "--min-ttl=5", "0", "1e3", "", " ", "-", "--", "-o", "json", "--json"],
        ...["--debug"],
      ],
      ...["--format", ...formats, ...formats.map((name) => `--format=${name}`)],
    );
    let answered = 0;
    await fc.assert(
      fc.asyncProperty(fc.array(word, { maxLength: 5 }), fc.nat(5), async (words, at) => {
        const argv = ["token", ...words.slice(0, at), MCP, ...words.slice(at)];
        const text = await quickly(argv);
        if (text === undefined) return;
        answered++;
        expect(await outcome(runWhole, argv, {})).toEqual({ code: 0, stdout: text, stderr: "" });
      }),
      { numRuns: 400 },
    );
    expect(answered).toBeGreaterThan(20);
  });
});

describe("stores", () => {
  const ARGV = ["token", MCP, "--format", "json"];

  it.each<[string, Grant]>([
    ["a token whose end is not known", kept({ expiresAt: undefined })],
    ["a token without a scope", kept({ scope: undefined })],
    ["a token with 61 seconds left", kept({ expiresAt: NOW + 61_000 })],
    ["a short-lived token in the first half of its life", kept({ obtainedAt: NOW - 10_000, expiresAt: NOW + 11_000 })],
    ["a token that a shell would expand", kept({ accessToken: new Secret("~$(id)'`") })],
  ])("%s is printed", async (_name, grant) => {
    await save(grant);
    for (const format of ["raw", "json", "env"]) {
      const argv = ["token", MCP, "--format", format];
      const text = await quickly(argv);
      expect(text).toMatch(/\n$/);
      expect(await both(argv)).toEqual({ code: 0, stdout: text, stderr: "" });
    }
  });

  it("the highest generation is printed", async () => {
    const store = fileStore(home);
    await save(kept());
    await store.save(kept({ accessToken: new Secret("access-token-9") }, { generation: 9 }), 1);
    expect(await quickly(ARGV)).toContain("access-token-9");
    expect((await both(ARGV)).code).toBe(0);
  });

  it.each<[string, number, () => unknown]>([
    ["nothing", 4, () => {}],
    ["a token with 59 seconds left", 4, () => save(kept({ expiresAt: NOW + 59_000 }))],
    ["a token that has ended", 4, () => save(kept({ expiresAt: NOW - 1 }))],
    ["a login that is over", 4, () => save(kept({}, { retired: { at: NOW, reason: "the issuer refused" } }))],
    ["another account's login", 0, () => save(kept({}, { account: "ann@example.com" }))],
    ["a file that others can read", 8, () => save(kept()).then(() => chmodSync(grantFile(home), 0o644))],
    ["a folder that others can read", 8, () => save(kept()).then(() => chmodSync(dirname(grantFile(home)), 0o755))],
    ["a home that others can write", 8, () => save(kept()).then(() => chmodSync(home, 0o777))],
    ["a file with a second name", 8, () => save(kept()).then(() => linkSync(grantFile(home), join(home, "other")))],
    [
      "a link in the place of the file",
      8,
      async () => {
        await save(kept());
        const path = grantFile(home);
        renameSync(path, join(home, "elsewhere"));
        symlinkSync(join(home, "elsewhere"), path);
      },
    ],
    ["half a file", 8, () => save(kept()).then(() => rewrite((text) => text.slice(0, text.length / 2)))],
    [
      "a file of a later version",
      8,
      () => save(kept()).then(() => rewrite((text) => text.replace(/"schema": 1/, '"schema": 2'))),
    ],
    ["a member twice", 8, () => save(kept()).then(() => rewrite((text) => text.replace("{", '{"kind":"grant",')))],
    ["a folder in the place of the file", 8, () => save(kept()).then(() => turnIntoFolder(grantFile(home)))],
  ])("%s is left to the whole program", async (_name, code, prepare) => {
    await prepare();
    expect(await quickly(ARGV)).toBeUndefined();
    expect((await both(ARGV)).code).toBe(code);
  });

  function turnIntoFolder(path: string): void {
    renameSync(path, join(home, "elsewhere"));
    mkdirSync(path);
  }
});

describe("settings", () => {
  const ARGV = ["token", MCP];
  const full = {
    schema: 1,
    profile: "work",
    profiles: { default: {}, work: { base_url: "https://service.example", api_token: "env:T", store: "file" } },
  };

  it.each<[string, unknown, Env, string | undefined]>([
    ["no settings file", undefined, {}, "default"],
    ["an empty settings file", {}, {}, "default"],
    ["the settings file's profile", full, {}, "work"],
    ["AGENTAUTH_PROFILE", full, { AGENTAUTH_PROFILE: "default" }, "default"],
    ["an empty AGENTAUTH_PROFILE", full, { AGENTAUTH_PROFILE: "" }, "work"],
    ["AGENTAUTH_STORE=file", { profiles: { default: { store: "memory" } } }, { AGENTAUTH_STORE: "file" }, "default"],
    ["an empty AGENTAUTH_STORE", undefined, { AGENTAUTH_STORE: "" }, "default"],
    ["an API token", undefined, { AGENTAUTH_API_TOKEN: "api-token", AGENTAUTH_CLIENT_SECRET: "secret" }, "default"],
    ["a base URL", undefined, { AGENTAUTH_BASE_URL: "https://service.example/" }, "default"],
    [
      "a proxy",
      undefined,
      { HTTPS_PROXY: "http://proxy.example:3128", http_proxy: "http://proxy.example/" },
      "default",
    ],
  ])("with %s the token of the right profile is printed", async (_name, file, env, profile) => {
    if (file !== undefined) settings(file);
    for (const name of ["default", "work"]) {
      await save(kept({ accessToken: new Secret(`access-token-${name}`) }, { profile: name }));
    }
    expect(await quickly(ARGV, env)).toBe(`access-token-${profile}\n`);
    expect(await both(ARGV, env)).toEqual({ code: 0, stdout: `access-token-${profile}\n`, stderr: "" });
  });

  it.each<[string, number, unknown, Env]>([
    ["broken JSON", 2, '{"schema": 1', {}],
    ["a name that comes twice", 2, '{"profile":"default","profile":"default"}', {}],
    ["an unknown key", 2, { colour: "red" }, {}],
    ["an unknown key in another profile", 2, { profiles: { work: { colour: "red" } } }, {}],
    ["a wrong value in another profile", 2, { profiles: { work: { output: "red" } } }, {}],
    ["a later schema", 2, { schema: 2 }, {}],
    ["a profile that is not there", 2, { profile: "gone" }, {}],
    ["no file store", 4, { profiles: { default: { store: "memory" } } }, {}],
    ["AGENTAUTH_STORE=memory", 4, undefined, { AGENTAUTH_STORE: "memory" }],
    ["an unknown AGENTAUTH_STORE", 2, undefined, { AGENTAUTH_STORE: "disk" }],
    ["an AGENTAUTH_PROFILE that is not there", 2, undefined, { AGENTAUTH_PROFILE: "constructor" }],
    ["a base URL that is none", 2, undefined, { AGENTAUTH_BASE_URL: "service.example" }],
    ["a proxy that is none", 2, undefined, { HTTPS_PROXY: "ftp://proxy.example" }],
    ["a proxy with a port that is none", 2, undefined, { http_proxy: "http://proxy.example:99999" }],
    ["a proxy of another kind", 2, undefined, { ALL_PROXY: "socks5://proxy.example:1080" }],
  ])("%s is left to the whole program", async (_name, code, file, env) => {
    if (file !== undefined) settings(file);
    await save(kept());
    expect(await quickly(ARGV, env)).toBeUndefined();
    expect((await both(ARGV, env)).code).toBe(code);
  });

  it("an audit file is left to the whole program, which writes it", async () => {
    await save(kept());
    const path = join(home, "audit.log");
    const env = { AGENTAUTH_AUDIT: `file:${path}` };
    expect(await quickly(ARGV, env)).toBeUndefined();
    expect((await both(ARGV, env)).code).toBe(0);
    expect(readFileSync(path, "utf8").match(/"type":"token"/g)).toHaveLength(2);
  });

  it("a keychain is left to the whole program", async () => {
    await save(kept());
    expect(await quickly(ARGV, { AGENTAUTH_STORE: "keyring" })).toBeUndefined();
    settings({ profiles: { default: { store: "keyring" } } });
    expect(await quickly(ARGV)).toBeUndefined();
  });
});

it("an output that cannot be written is reported by the whole program", async () => {
  await save(kept());
  const texts: string[] = [];
  const stdout = new Writable({
    write: (_chunk, _encoding, done) => done(Object.assign(new Error("ENOSPC: no space left"), { code: "ENOSPC" })),
  });
  const stderr = new Writable({
    write(chunk, _encoding, done) {
      texts.push(String(chunk));
      done();
    },
  });
  const rest = { on: () => {}, off: () => {}, emit: () => false };
  const exit = () => {
    throw new Error("the process was ended");
  };
  const env = { AGENTAUTH_HOME: home };
  const host: Host = { stdin: Readable.from([]), stdout, stderr, env, ...rest, exit };
  expect(await main(["token", MCP], host)).toBe(8);
  expect(texts.join("")).toMatch(/^error: the output cannot be written: ENOSPC/);
});

describe("exec with a token that is stored and fresh", () => {
  /** Prints all that it gets, and ends with 3. */
  const PRINTER = ["--", "sh", "-c", 'env | sort; printf %s "$AGENTAUTH_TOKEN" | base64; exit 3'];
  const SECRETS = { AGENTAUTH_API_TOKEN: "api-token-1", AGENTAUTH_CLIENT_SECRET: "env:OURS", OURS: "client-secret" };

  /** Runs both ways, and shows whether the program was needed. */
  async function exec(args: string[], env: Env = {}) {
    const argv = ["exec", ...args];
    const { code: quick } = await outcome(
      async (words, host) => (await execWithCachedToken(words, host)) ?? -1,
      argv,
      env,
    );
    return { quick, ...(await both(argv, env)) };
  }

  it.each<[string, string[], Env?]>([
    ["the address alone", [MCP, ...PRINTER]],
    ["what the token has to be", [MCP, "--min-ttl=7", "--scope", "read", "--no-login", "-q", ...PRINTER]],
    ["another variable", [MCP, "--as", "OTHER", ...PRINTER]],
    ["a variable of ours", [MCP, "--as", "AGENTAUTH_API_TOKEN", ...PRINTER], SECRETS],
    ["secrets in variables, and one that a profile names", [MCP, ...PRINTER], { ...SECRETS, THEIRS: "profile-secret" }],
    ["secrets that a profile names", [MCP, ...PRINTER], { THEIRS: "profile-secret" }],
  ])("with %s runs the command without the program, which keeps the same from it", async (_name, args, env) => {
    settings({ profiles: { default: { base_url: "https://service.example", api_token: "env:THEIRS" } } });
    await save(kept());
    const { quick, code, stdout, stderr } = await exec(args, env);
    expect({ quick, code, stderr }).toEqual({ quick: 3, code: 3, stderr: "" });
    // Masked as it is, and in base64.
    expect(stdout.match(/\*{8}/g)).toHaveLength(args.includes("--as") ? 1 : 2);
    expect(stdout).not.toMatch(/api-token|OURS|THEIRS|access-token|YWNjZXNzLXRva2Vu/);
  });

  it.each<[string, string[], quick: number, number, Env?]>([
    ["an environment that no process can have", [MCP, ...PRINTER], 1, 1, { A: "a\0" }],
    ["a command that is not there", [MCP, "--", "/no/such/command"], 127, 127],
    ["a command that a signal ends", [MCP, "--", "sh", "-c", "kill -TERM $$"], 143, 143],
    ["a variable that is none", [MCP, "--as", "A B", ...PRINTER], -1, 2],
    ["a flag of token", [MCP, "--format", "raw", ...PRINTER], -1, 2],
    ["a broker", ["--broker", `a=${MCP}`, "--listen", "nowhere", ...PRINTER], -1, 2],
    ["no command", [MCP, "--"], -1, 2],
    ["no --", [MCP, "true"], -1, 2],
    ["a scope that was not granted", [MCP, "--scope", "admin", ...PRINTER], -1, 4],
  ])("of %s comes to what the whole program comes to", async (_name, args, quick, code, env) => {
    await save(kept());
    expect(await exec(args, env)).toMatchObject({ quick, code });
  });
});

it("a reader that has closed the pipe is no failure", async () => {
  await save(kept());
  const stdout = new Writable({
    write: (_chunk, _encoding, done) => done(Object.assign(new Error("EPIPE"), { code: "EPIPE" })),
  });
  const rest = { on: () => {}, off: () => {}, emit: () => false };
  const exit = () => {
    throw new Error("the process was ended");
  };
  const streams = { stdin: Readable.from([]), stdout, stderr: new Writable() };
  expect(await main(["token", MCP], { ...streams, env: { AGENTAUTH_HOME: home }, ...rest, exit })).toBe(0);
});

it("a token of another issuer than the settings name is left to the whole program", async () => {
  await save(kept());
  settings({ profiles: { default: { issuer: kept().issuer } } });
  expect(await quickly(["token", MCP])).toContain("access-token-1");
  settings({ profiles: { default: { issuer: "https://another.example" } } });
  expect(await quickly(["token", MCP])).toBeUndefined();
});
