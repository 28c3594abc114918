import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import tls from "node:tls";
import { describe, expect, it } from "vitest";
import {
  type CheckFinding,
  checkNode,
  failed,
  KNOWN_VARIABLES,
  MACHINE_CHECKS,
  NODE_FLOOR,
  ok,
  runChecks,
  type Subject,
  skipped,
  warning,
} from "../../../../src/cli/commands/doctor/check.js";
import { redactReport } from "../../../../src/cli/commands/doctor/run.js";
import { checkKeychain, checkWriting, STORE_CHECKS } from "../../../../src/cli/commands/doctor/store-checks.js";
import { AgentAuthError } from "../../../../src/errors.js";
import { Redactor } from "../../../../src/redact.js";
import { fileStore } from "../../../../src/store/file/file.js";
import { temporaryFolder } from "../../../helpers/cli.js";
import { madeGrant } from "../../../helpers/grant.js";
import { ON_LINUX, ON_WINDOWS } from "../../../helpers/systems.js";
import { onSystem } from "../../../platform/support.js";
import { at, look } from "./support.js";

const NO_CONFIG = { schema: 1, profile: "default", profiles: {} } as const;
const live = () => new AbortController().signal;

describe("the exit code", () => {
  const check = (area: "usage" | "store" | "unavailable", finding = failed("x")) =>
    [area, { [area]: () => finding }] as const;

  it.each([
    [[], 0],
    [["unavailable"], 5],
    [["unavailable", "store"], 8],
    [["store", "unavailable", "usage"], 2],
  ] as const)("of failures in %j is %i", async (areas, code) => {
    const { exitCode } = await runChecks(
      [check("store", warning("w")), ...areas.map((area) => check(area))],
      {} as Subject,
      live(),
    );
    expect(exitCode).toBe(code);
  });

  it.each([
    ["usage", 2],
    ["store", 8],
    ["remote", 5],
  ] as const)("of an online check that throws an error of the class %s is %i", async (kind, code) => {
    const run = () => {
      throw new AgentAuthError("usage", "what is wrong", { class: kind, hint: "what helps" });
    };
    const { results, exitCode } = await runChecks([["unavailable", { service: run }]], {} as Subject, live());
    expect([results, exitCode]).toEqual([
      [{ name: "service", state: "failed", found: "what is wrong", hint: "what helps" }],
      code,
    ]);
  });
});

it.each([
  ["usage", "correct it where it is set: this report has the source of each setting"],
  ["store", "set AGENTAUTH_HOME to a folder that you can write to"],
  ["unavailable", "run it again with --verbose, which logs each request"],
] as const)("a check of %s without a hint of its own gets that of what it is about", async (area, hint) => {
  const run = () => {
    throw new AgentAuthError("not_permitted", "no", { class: "remote" });
  };
  const { results } = await runChecks([[area, { service: run }]], {} as Subject, live());
  expect(results).toEqual([{ name: "service", state: "failed", found: "no", hint }]);
});

it("a check that breaks off has failed without a stack, and the others are asked", async () => {
  const run = () => {
    throw new TypeError("undefined is no function");
  };
  const after = ["store", { b: () => ok("fine") }] as const;
  const { results } = await runChecks([["usage", { a: run }], after], {} as Subject, live());
  expect(results).toEqual([
    {
      name: "a",
      state: "failed",
      found: "the check failed: undefined is no function",
      hint: "this is a bug in agentauth: please report it",
    },
    { name: "b", state: "ok", found: "fine" },
  ]);
});

it("a signal ends the checks", async () => {
  const controller = new AbortController();
  const run = () => {
    controller.abort();
    return ok("late");
  };
  await expect(runChecks([["unavailable", { a: run }]], {} as Subject, controller.signal)).rejects.toMatchObject({
    class: "aborted",
  });
});

describe("node", () => {
  it("is the one that package.json asks for", () => {
    const { engines } = JSON.parse(readFileSync("package.json", "utf8")) as { engines: { node: string } };
    expect(engines.node).toBe(`>=${NODE_FLOOR}`);
  });

  it.each([
    ["v20.18.3", "failed"],
    ["v20.19.0", "ok"],
    ["v18.99.0", "failed"],
    ["v22.0.0", "ok"],
    ["v100.1.0-nightly", "ok"],
  ])("%s is %s", (version, state) => {
    expect(checkNode(version)).toEqual(
      state === "ok"
        ? ok(`${version}, at least 20.19 is required`)
        : failed(`${version} is too old: at least 20.19 is required`, "install a newer Node: https://nodejs.org"),
    );
  });
});

it("checks wait at the same time, and are reported in their order", async () => {
  let ends = () => {};
  const last = new Promise<void>((resolve) => {
    ends = resolve;
  });
  const a = () => last.then(() => ok("a"));
  const b = () => {
    ends();
    return ok("b");
  };
  const { results } = await runChecks(
    [
      ["store", { a }],
      ["unavailable", { b }],
    ],
    {} as Subject,
    live(),
  );
  expect(results.map(({ name }) => name)).toEqual(["a", "b"]);
});

describe("the home folder", () => {
  it("need not be there, and is not made", () => {
    const home = join(temporaryFolder(), "below", "home");
    expect(look(STORE_CHECKS.home, { home: at(home) })).toMatchObject({
      state: "ok",
      found: expect.stringContaining("does not exist yet"),
    });
    expect(checkWriting(home)).toEqual(skipped("the folder does not exist yet"));
    expect(existsSync(home)).toBe(false);
  });

  it("cannot be below a file, or be one", () => {
    const file = join(temporaryFolder(), "file");
    writeFileSync(file, "");
    const found = (value: string) => look(STORE_CHECKS.home, { home: at(value, "AGENTAUTH_HOME") });
    expect(found(file)).toEqual(
      failed(`${file} (AGENTAUTH_HOME) is not a folder`, "set AGENTAUTH_HOME to another path"),
    );
  });

  it("is no relative path", () => {
    const env = { AGENTAUTH_HOME: "x/agentauth" };
    expect(() => look(STORE_CHECKS.home, { home: undefined, env })).toThrow(expect.objectContaining({ code: "usage" }));
    expect(look(STORE_CHECKS.writing, { home: undefined, env })).toMatchObject({ state: "skipped" });
  });

  it.skipIf(ON_WINDOWS).each([
    [0o700, "ok"],
    [0o755, "warning"],
    [0o711, "warning"],
    [0o770, "failed"],
    [0o702, "failed"],
  ])("with the mode %o is %s", (mode, state) => {
    const home = join(temporaryFolder(), "a b");
    mkdirSync(home);
    chmodSync(home, mode);
    const verb = state === "failed" ? "changed" : "read";
    const said = { found: `${home} (default) can be ${verb} by others`, hint: `chmod 700 '${home}'` };
    expect(look(STORE_CHECKS.home, { home: at(home) })).toEqual(
      state === "ok" ? ok(`${home} (default)`) : { state, ...said },
    );
  });

  it.runIf(process.getuid?.() === 0)("of another user is a failure", () => {
    const home = temporaryFolder();
    chownSync(home, 4711, 4711);
    expect(look(STORE_CHECKS.home, { home: at(home) })).toEqual(
      failed(`${home} (default) belongs to another user`, `chown -R 0 ${home}`),
    );
  });
});

describe("the home folder on Windows", () => {
  const ME = "S-1-5-21-1-2-3-1001";

  it.each<[string, string | undefined, (where: string) => CheckFinding]>([
    ["its user alone", `${ME}\r\n${ME}\r\n`, (where) => ok(`${where}, readable by you and the system alone`)],
    [
      "others too",
      [ME, "S-1-5-32-545", "S-1-1-0"].join("\r\n"),
      (where) => ({
        state: "warning",
        found: `${where} can be read by other accounts: S-1-5-32-545, S-1-1-0`,
        hint: expect.stringMatching(/^icacls .* \/inheritance:r \/grant:r /),
      }),
    ],
    [
      "accounts that are not listed",
      undefined,
      (where) => ok(`${where}; who can read it is not checked: its list of access cannot be read`),
    ],
  ])("is read by %s", (_whom, answer, finding) => {
    onSystem({ name: "win32", run: () => answer }, "powershell");
    const home = temporaryFolder();
    expect(look(STORE_CHECKS.home, { home: at(home) })).toEqual(finding(`${home} (default)`));
  });
});

describe("writing", () => {
  it("is tried and leaves nothing behind", () => {
    const home = temporaryFolder();
    expect(checkWriting(home)).toEqual({ state: "ok", found: "files can be written and linked" });
    expect(readdirSync(home)).toEqual([]);
  });

  it.runIf(ON_LINUX)("fails where no folder can be made", () => {
    expect(checkWriting("/proc")).toMatchObject({
      state: "failed",
      found: expect.stringMatching(/^\/proc is not writable/),
    });
  });
});

describe("variables", () => {
  const variables = (env: Record<string, string>, config: Subject["config"] = NO_CONFIG) =>
    look(MACHINE_CHECKS.variables, { env, config });
  const env = (extra: Record<string, string>) => variables(extra);

  it("that nothing reads are reported without their values, with what may be meant", () => {
    const finding = env({ AGENTAUTH_BASEURL: "planted-value", AGENTAUTH_PROFIL: "planted-value" });
    expect(finding).toEqual({
      state: "warning",
      found: "AGENTAUTH_BASEURL is set, but nothing reads it; AGENTAUTH_PROFIL is set, but nothing reads it",
      hint: "did you mean AGENTAUTH_BASE_URL, AGENTAUTH_PROFILE?",
    });
    expect(env({ AGENTAUTH_FOO: "x" }).hint).toContain("agentauth help environment");
  });

  it("that a profile reads, or that are known, are in order", () => {
    const profiles = { work: { api_token: "env:AGENTAUTH_WORK_TOKEN" } };
    expect(variables({ AGENTAUTH_WORK_TOKEN: "x" }, { ...NO_CONFIG, profiles }).state).toBe("ok");
    expect(env({ AGENTAUTH_HOME: "/x", AGENTAUTH_ERRORS: "json", OTHER: "x" })).toEqual(ok("2 set, all known"));
    expect(env({ AGENTAUTH_FOO: "" })).toEqual(ok("none are set"));
  });

  it.each([
    ["AGENTAUTH_ERRORS", "xml", 'AGENTAUTH_ERRORS is "xml"; only "json" has an effect'],
    ...["0", "False", "no", "OFF"].map((value) => [
      ...["AGENTAUTH_NO_INPUT", value],
      `AGENTAUTH_NO_INPUT is "${value}", which counts as set like any other value`,
    ]),
  ])("%s=%s is remarked on", (name = "", value = "", reported = "") => {
    expect(env({ [name]: value })).toEqual(
      warning(reported, "agentauth help environment lists the variables and their values"),
    );
  });

  it("are remarked on together, by their names, and one that holds yes is not", () => {
    const both = env({ AGENTAUTH_ZED: "x", AGENTAUTH_ABC: "x", agentauth_low: "x", AGENTAUTH_ERRORS: "x" });
    expect(both.found).toBe(
      `${["AGENTAUTH_ABC", "AGENTAUTH_ZED", "agentauth_low"].map((name) => `${name} is set, but nothing reads it`).join("; ")}; AGENTAUTH_ERRORS is "x"; only "json" has an effect`,
    );
    for (const value of ["00", "nono", "yes", "1"]) expect(env({ AGENTAUTH_NO_INPUT: value }).state).toBe("ok");
  });

  it("are every one that the command line reads", () => {
    const sources = readdirSync("src/cli", { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    const read = sources.flatMap(({ parentPath, name }) => [
      ...readFileSync(join(parentPath, name), "utf8").matchAll(/\benv\["(AGENTAUTH_\w+)"\]/g),
    ]);
    const names = [...new Set(read.map(([, name]) => name))];
    expect(names.length).toBeGreaterThan(4);
    expect(names.filter((name) => !KNOWN_VARIABLES.includes(name ?? ""))).toEqual([]);
  });

  it("NODE_TLS_REJECT_UNAUTHORIZED=0 is a failure with its remedy", () => {
    expect(look(MACHINE_CHECKS.tls, { env: { NODE_TLS_REJECT_UNAUTHORIZED: "0" } })).toMatchObject({
      state: "failed",
      hint: expect.stringMatching(/^unset NODE_TLS_REJECT_UNAUTHORIZED; .*--ca-file/),
    });
    const verified = ok("certificates are verified");
    expect(look(MACHINE_CHECKS.tls, { env: { NODE_TLS_REJECT_UNAUTHORIZED: "1" } })).toEqual(verified);
  });
});

describe("the keychain", () => {
  const keyring = { value: "keyring", source: "profile work", fallback: "none" } as const;
  const silent = { get: () => new Promise<undefined>(() => {}), set: async () => {} };
  const refusing = {
    get: () =>
      Promise.reject(new AgentAuthError("store_failed", "it is locked", { class: "store", hint: "unlock it" })),
    set: async () => {},
  };

  it.each([
    ["has a key", async () => "key", ", and has the key for this folder"],
    ["has none", async () => undefined, "; the first login creates a key"],
  ])("that %s is in order", async (_what, get, reported) => {
    const finding = await checkKeychain(keyring, { get, set: async () => {} }, true);
    expect(finding).toEqual(ok(`answers${reported}`));
  });

  it("that says no is a failure of the store, and a warning where files may take its place", async () => {
    const run = () => checkKeychain(keyring, refusing, true);
    const { results, exitCode } = await runChecks([["store", { keychain: run }]], {} as Subject, live());
    expect([exitCode, results]).toEqual([
      8,
      [{ name: "keychain", state: "failed", found: "it is locked", hint: "unlock it" }],
    ]);
    expect(await checkKeychain({ ...keyring, fallback: "file" }, refusing, true)).toEqual(
      warning("it is locked: logins are stored unsealed, because of store_fallback", "unlock it"),
    );
  });

  it("is not asked where it is not used, or where the user may not be asked", async () => {
    const unused = skipped("not used: AGENTAUTH_STORE=keyring seals logins with a key in the keychain");
    expect(await checkKeychain({ ...keyring, value: "file" }, silent, true)).toEqual(unused);
    expect(await checkKeychain(undefined, silent, true)).toEqual(unused);
    const unasked = skipped("not checked: the keychain may prompt, and prompts are disabled");
    expect(await checkKeychain(keyring, silent, false)).toEqual(unasked);
    const parts = { store: keyring, home: at("/home"), env: {} };
    expect(await look(STORE_CHECKS.keychain, { ...parts, options: { input: false } })).toEqual(unasked);
  });
});

describe("connections", () => {
  const good = "test/fixtures/self-signed.pem";
  const connections = (options: Subject["options"], env = {}, settings = {}) =>
    look(MACHINE_CHECKS.connections, {
      ...{ options, env, settings },
      context: { io: { env }, redactor: new Redactor() },
    } as unknown as Partial<Subject>);
  const system = { useSystemCa: at("yes", "profile work") };

  it("name the proxy and the authorities, which are PEM files that can be read", () => {
    expect(connections({ caFile: good }, { NODE_EXTRA_CA_CERTS: good, HTTPS_PROXY: "http://p.example" })).toEqual(
      ok(`by a proxy; trusted: Node's built-in list, ${good} (--ca-file), ${good} (NODE_EXTRA_CA_CERTS)`),
    );
    expect(connections({})).toEqual(ok("without a proxy; trusted: Node's built-in list"));
    const bad = join(temporaryFolder(), "x.pem");
    writeFileSync(bad, "nothing");
    expect(() => connections({ caFile: bad })).toThrow(`--ca-file "${bad}" contains no PEM certificate`);
    expect(() => connections({}, { HTTP_PROXY: "ftp://x.example" })).toThrow("HTTP_PROXY");
  });

  it.runIf("getCACertificates" in tls)("count the authorities of the system", () => {
    expect(connections({}, {}, system).found).toMatch(/list, \d+ of the system \(profile work\)$/);
  });

  it.skipIf("getCACertificates" in tls)("say which Node can read the authorities of the system", () => {
    expect(() => connections({}, {}, system)).toThrow("profile work");
  });
});

describe("the files of the store", () => {
  const FILE = { value: "file", source: "default", fallback: "none" } as const;
  const id = "a".repeat(40);
  const files = (home: string, value: "file" | "keyring") =>
    look(STORE_CHECKS.files, { home: at(home), store: { ...FILE, value } });
  const logins = (store: Subject["store"], home: string, profile: string) =>
    look(STORE_CHECKS.store, { ...{ store, home: at(home) }, settings: { profile: at(profile) } } as Partial<Subject>);

  function homeWith(folder: string, name: string, text: string, mode = 0o600): { home: string; path: string } {
    const home = temporaryFolder();
    const path = join(home, folder, name);
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    writeFileSync(path, text);
    chmodSync(path, mode);
    return { home, path };
  }

  it("that cannot be read as what they are have a command that sets them aside", () => {
    const { home, path } = homeWith("grants", `${id}/${id}/1.json`, "{");
    expect(files(home, "file")).toMatchObject({
      state: "failed",
      found: expect.stringMatching(/^1 of 1 file cannot be used: .*is not valid JSON/),
      hint: `mv ${path} ${path}.broken`,
    });
  });

  it.skipIf(ON_WINDOWS)("that others can read, or that are links, are failures", () => {
    const open = homeWith("tokens", "work", "planted-token", 0o644);
    const finding = files(open.home, "file");
    expect(finding).toMatchObject({ state: "failed", hint: `chmod 600 ${open.path}` });
    expect(JSON.stringify(finding)).not.toContain("planted");
    const linked = homeWith("clients", "x.json", "{}");
    symlinkSync(linked.path, join(linked.home, "clients", "y.json"));
    expect(files(linked.home, "file").found).toContain("is a symbolic link");
  });

  it.skipIf(ON_WINDOWS)("are named, each with its command; those of other names are none of ours", () => {
    const { home, path } = homeWith("grants", `${id}/${id}/1.json`, "{");
    const others = [2, 3, 4, 5].map((n) => {
      const other = join(dirname(path), `${n}.json`);
      writeFileSync(other, n === 2 ? '{"schema":1,"kind":"sealed"}' : "{", { mode: n === 3 ? 0o644 : 0o600 });
      return other;
    });
    writeFileSync(join(dirname(path), "6.json.broken"), "");
    mkdirSync(join(home, "tokens"), { mode: 0o700 });
    for (const name of ["work", "x.tmp", "y.tmp-1"]) writeFileSync(join(home, "tokens", name), "", { mode: 0o600 });
    const found = files(home, "file");
    expect({ ...found, found: found.found.replaceAll(home, "") }).toEqual({
      state: "failed",
      found: expect.stringMatching(/^5 of 6 files cannot be used: \S+: .*; \S+: .*; .* can be read by others.*$/),
      hint: [path, ...others].map((one, n) => (n === 2 ? `chmod 600 ${one}` : `mv ${one} ${one}.broken`)).join(" && "),
    });
    rmSync(join(home, "grants"), { recursive: true });
    expect(files(home, "file")).toEqual(ok("1 file, all can be used"));
    expect(files(temporaryFolder(), "file")).toEqual(ok("none yet"));
  });

  it("that are sealed belong to another store", () => {
    const sealed = JSON.stringify({
      schema: 1,
      kind: "sealed",
      alg: "A256GCM",
      key: "01234567",
      nonce: Buffer.alloc(12).toString("base64url"),
      data: Buffer.alloc(32).toString("base64url"),
    });
    const { home } = homeWith("grants", `${id}/${id}/1.json`, sealed);
    expect(files(home, "file")).toEqual(
      warning("1 of 1 file are sealed, and only the keyring store can open them", "set AGENTAUTH_STORE=keyring"),
    );
    expect(files(home, "keyring")).toEqual(ok("1 file, all can be used (1 sealed)"));
  });

  it.skipIf(ON_WINDOWS)("in a folder that others can enter are refused, as the store does", async () => {
    const home = temporaryFolder();
    mkdirSync(join(home, "grants"));
    chmodSync(join(home, "grants"), 0o755);
    await expect(logins(FILE, home, "default")).rejects.toMatchObject({ class: "store" });
    for (const folder of ["clients", "claims"]) {
      const other = temporaryFolder();
      mkdirSync(join(other, folder));
      chmodSync(join(other, folder), 0o755);
      await expect(logins(FILE, other, "default")).rejects.toMatchObject({ class: "store" });
    }
  });

  it.skipIf(ON_WINDOWS)("in a folder that cannot be read are not taken for none", () => {
    const home = temporaryFolder();
    symlinkSync("grants", join(home, "grants"));
    expect(() => files(home, "file")).toThrow(
      expect.objectContaining({
        class: "store",
        message: expect.stringContaining(`the folder ${join(home, "grants")} cannot be read`),
      }),
    );
  });

  it("are counted, but not where nothing is kept", async () => {
    const home = temporaryFolder();
    expect((await logins(FILE, home, "work")).found).toBe(`file (default): 0 logins of profile "work", in ${home}`);
    expect(await logins({ ...FILE, value: "memory", source: "AGENTAUTH_STORE" }, home, "x")).toEqual(
      ok("memory (AGENTAUTH_STORE): nothing is stored after a command ends"),
    );
    await fileStore(home).save(madeGrant(), undefined);
    await fileStore(home).save(madeGrant({ profile: "work" }), undefined);
    await fileStore(home).save(madeGrant({ profile: "play" }), undefined);
    const counted = '1 login of profile "work", 2 of other profiles, in';
    expect((await logins(FILE, home, "work")).found).toBe(`file (default): ${counted} ${home}`);
    expect((await logins({ ...FILE, value: "keyring" }, home, "work")).found).toBe(
      `keyring (default): 3 logins in ${home}`,
    );
    const store = { list: () => fileStore(home).list(), location: "the engine" };
    const parts = { store: { ...FILE, value: "redis" }, engine: () => ({ store }), home: at("/nowhere") };
    const settings = { profile: at("work") };
    expect(await look(STORE_CHECKS.store, { ...parts, settings } as unknown as Partial<Subject>)).toEqual(
      ok(`redis (default): ${counted} the engine`),
    );
  });

  it("kept without their seal where the keychain fails are a warning", async () => {
    const choice = { value: "keyring", source: "profile work", fallback: "file" } as const;
    const home = temporaryFolder();
    expect(await logins(choice, home, "work")).toEqual(
      warning(
        `keyring (profile work): 0 logins in ${home}; without the keychain, logins are stored unsealed (store_fallback of profile work)`,
        "agentauth config unset store_fallback",
      ),
    );
    expect(await logins({ ...choice, fallback: "none" }, home, "work")).toEqual(
      ok(`keyring (profile work): 0 logins in ${home}`),
    );
  });
});

it("a report masks what is known, what looks like a secret, and what is quoted with an @", () => {
  const redactor = new Redactor();
  redactor.add("planted-value");
  const found = 'x planted-value, "user:planted/pw@host", https://u:planted@h.example, Bearer planted2planted';
  const report = redactReport(
    {
      version: "1",
      node: "v1",
      platform: "x",
      checks: [{ name: "a", state: "ok", found, hint: "planted-value" }],
      settings: [{ name: "b", value: "planted-value", source: "planted-value" }],
    },
    redactor,
  );
  expect(JSON.stringify(report)).not.toContain("planted");
});

describe("the engine of the store", () => {
  const driver = (health: object) => ({ health: async () => ({ facts: {}, clockAheadMs: 0, ...health }) });
  const engineWith = (health: object) =>
    look(STORE_CHECKS.engine, {
      engine: () => ({ kind: "redis", driver: driver(health), ring: { current: "k", ids: ["k"] } }),
      context: { signal: live() },
    } as unknown as Partial<Subject>);

  it("is a failure for its errors, else a warning for its risks", async () => {
    expect(await engineWith({ risks: ["a"], errors: ["c", "d"] })).toEqual(failed("c; d", "agentauth store health"));
    expect(await look(STORE_CHECKS.engine, { engine: undefined })).toBeUndefined();
  });
});

it("an API token that is empty is a failure, and another one is hidden from then on", () => {
  const redactor = new Redactor();
  const tokenOf = (text: string) => {
    const settings = { apiToken: { source: "--token", read: () => text } };
    return look(MACHINE_CHECKS.api_token, { settings, context: { redactor } } as unknown as Partial<Subject>);
  };
  expect(tokenOf("")).toEqual(failed("the token from --token is empty", "agentauth config set api_token -"));
  expect(tokenOf("planted-token")).toEqual(ok("can be read (--token)"));
  expect(redactor.redact("planted-token")).not.toContain("planted");
});
