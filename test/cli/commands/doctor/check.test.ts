import { X509Certificate } from "node:crypto";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import tls from "node:tls";
import { describe, expect, it } from "vitest";
import type { ManagementClient } from "../../../../src/api/client.js";
import {
  type CheckFinding,
  failed,
  ok,
  runChecks,
  skipped,
  warning,
} from "../../../../src/cli/commands/doctor/check.js";
import { checkDisk, checkWriting, HOME_CHECKS } from "../../../../src/cli/commands/doctor/home-checks.js";
import {
  checkNode,
  checkPackage,
  KNOWN_VARIABLES,
  MACHINE_CHECKS,
  NODE_FLOOR,
  OPTIONAL_PACKAGES,
} from "../../../../src/cli/commands/doctor/machine-checks.js";
import {
  NETWORK_CHECKS,
  proxiesOf,
  proxySecrets,
  shownProxy,
} from "../../../../src/cli/commands/doctor/network-checks.js";
import { LOGIN_CHECKS, ONLINE_CHECKS } from "../../../../src/cli/commands/doctor/online-checks.js";
import { smallestList } from "../../../../src/cli/commands/doctor/service-reply.js";
import { SETTINGS_CHECKS } from "../../../../src/cli/commands/doctor/settings-checks.js";
import { checkKeychain, STORE_CHECKS } from "../../../../src/cli/commands/doctor/store-checks.js";
import type { KnownSettings, Subject } from "../../../../src/cli/commands/doctor/subject.js";
import { redactReport } from "../../../../src/cli/commands/doctor/text.js";
import { AgentAuthError } from "../../../../src/errors.js";
import type { Settings } from "../../../../src/profile/settings.js";
import { Redactor } from "../../../../src/redact.js";
import { fileStore } from "../../../../src/store/file/file.js";
import { hasOpenssl, makeAuthority } from "../../../helpers/certificates.js";
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
      {},
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
    const { results, exitCode } = await runChecks([["unavailable", { service: run }]], {}, live());
    expect([results, exitCode]).toEqual([
      [{ name: "service", state: "failed", found: "what is wrong", hint: "what helps" }],
      code,
    ]);
  });
});

it.each([
  ["usage", "agentauth config list --show-origin shows where it is set"],
  ["store", "set AGENTAUTH_HOME to a folder that you can write to"],
  ["unavailable", "run it again with --verbose, which logs each request"],
] as const)("a check of %s without a hint of its own gets that of what it is about", async (area, hint) => {
  const run = () => {
    throw new AgentAuthError("not_permitted", "no", { class: "remote" });
  };
  const { results } = await runChecks([[area, { service: run }]], {}, live());
  expect(results).toEqual([{ name: "service", state: "failed", found: "no", hint }]);
});

it.each([
  ["unavailable", 3],
  ["store", 1],
  ["usage", 1],
] as const)("what goes over the network is waited for together, the rest one by one: %s", async (area, together) => {
  const running = new Set<string>();
  let most = 0;
  const check = (name: string) => async () => {
    running.add(name);
    await new Promise((resolve) => setTimeout(resolve, 5));
    most = Math.max(most, running.size);
    running.delete(name);
    return ok(name);
  };
  const { results } = await runChecks([[area, { a: check("a"), b: check("b"), c: check("c") }]], {}, live());
  expect([most, results.map(({ name }) => name)]).toEqual([together, ["a", "b", "c"]]);
});

it("a check that breaks off has failed without a stack, and the others are asked", async () => {
  const run = () => {
    throw new TypeError("undefined is no function");
  };
  const after = ["store", { b: () => ok("fine") }] as const;
  const { results } = await runChecks([["usage", { a: run }], after], {}, live());
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
  await expect(runChecks([["unavailable", { a: run }]], {}, controller.signal)).rejects.toMatchObject({
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

describe("the home folder", () => {
  it("need not be there, and is not made", () => {
    const home = join(temporaryFolder(), "below", "home");
    expect(look(HOME_CHECKS.home, { home: at(home) })).toMatchObject({
      state: "ok",
      found: expect.stringContaining("does not exist yet"),
    });
    expect(checkWriting(home)).toEqual(skipped("the folder does not exist yet"));
    let measured = "";
    checkDisk(home, (path) => {
      measured = path;
      return { bavail: 1, bsize: 1, blocks: 1 };
    });
    expect(measured).toBe(dirname(dirname(home)));
    expect(checkDisk(home).state).toBe("ok");
    expect(existsSync(home)).toBe(false);
  });

  it("cannot be below a file, or be one", () => {
    const file = join(temporaryFolder(), "file");
    writeFileSync(file, "");
    const found = (value: string) => look(HOME_CHECKS.home, { home: at(value, "AGENTAUTH_HOME") });
    expect(found(file)).toEqual(
      failed(`${file} (AGENTAUTH_HOME) is not a folder`, "set AGENTAUTH_HOME to another path"),
    );
    const below = join(file, "home");
    expect(found(below)).toEqual(
      failed(
        `${below} (AGENTAUTH_HOME) cannot be created: ${file} is not a folder`,
        "set AGENTAUTH_HOME to a folder that you can write to",
      ),
    );
  });

  it.skipIf(ON_WINDOWS)("that cannot be examined is a failure of the store", () => {
    const loop = join(temporaryFolder(), "loop");
    symlinkSync("loop", loop);
    expect(() => look(HOME_CHECKS.home, { home: at(loop) })).toThrow(
      expect.objectContaining({
        class: "store",
        message: expect.stringMatching(`^${loop} cannot be examined`),
        hint: "set AGENTAUTH_HOME to a folder that you can write to",
      }),
    );
  });

  it("is no relative path", () => {
    const env = { AGENTAUTH_HOME: "x/agentauth" };
    expect(() => look(HOME_CHECKS.home, { home: undefined, env })).toThrow(expect.objectContaining({ code: "usage" }));
    expect(look(HOME_CHECKS.disk, { home: undefined, env })).toMatchObject({ state: "skipped" });
  });

  it("says whether the sandbox runs in it", () => {
    const home = temporaryFolder();
    const found = () => look(HOME_CHECKS.sandbox, { home: at(home) });
    expect(found()).toEqual(ok("not running"));
    const ids = { account_id: "a", domain_id: "d", pool_id: "p", mcp_url: "http://127.0.0.1:1/mcp" };
    const state = { pid: process.pid, base_url: "http://127.0.0.1:1", api_token: "t", control_token: "c", ...ids };
    writeFileSync(join(home, "sandbox.json"), JSON.stringify(state), { mode: 0o600 });
    expect(found()).toEqual(ok(`running at http://127.0.0.1:1 (process ${process.pid}); --profile sandbox uses it`));
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
    expect(look(HOME_CHECKS.home, { home: at(home) })).toEqual(
      state === "ok" ? ok(`${home} (default)`) : { state, ...said },
    );
  });

  it.runIf(process.getuid?.() === 0)("of another user is a failure", () => {
    const home = temporaryFolder();
    chownSync(home, 4711, 4711);
    expect(look(HOME_CHECKS.home, { home: at(home) })).toEqual(
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
      "whoever it does not say",
      undefined,
      (where) => ok(`${where}; who can read it is not checked: its list of access cannot be read`),
    ],
  ])("is read by %s", (_whom, answer, finding) => {
    onSystem({ name: "win32", run: () => answer }, "powershell");
    const home = temporaryFolder();
    expect(look(HOME_CHECKS.home, { home: at(home) })).toEqual(finding(`${home} (default)`));
  });

  it("has programs with endings", () => {
    onSystem({ name: "win32" });
    const folder = temporaryFolder();
    for (const name of ["one.EXE", "two.CMD", "three.BAT", "four"]) writeFileSync(join(folder, name), "");
    const isFound = (program: string, more = {}) =>
      look(MACHINE_CHECKS.browser, { env: { PATH: folder, BROWSER: program, ...more } }).state === "ok";
    expect(["one", "two", "three", "four", "five"].map((name) => isFound(name))).toEqual([
      true,
      true,
      false,
      true,
      false,
    ]);
    expect(["one", "three", "four"].map((name) => isFound(name, { PATHEXT: ".COM;.BAT" }))).toEqual([
      false,
      true,
      true,
    ]);
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

  it.each([
    [255 / 256, failed("the disk is full: 0 MiB are free", "free some disk space")],
    [1, warning("1 MiB are free", "free some disk space")],
    [49.99609375, warning("49 MiB are free", "free some disk space")],
    [50, ok("50 MiB are free")],
    [5000, ok("5,000 MiB are free")],
  ])("with %d MiB of room is judged", (room, finding) => {
    const read = () => ({ bavail: room * 256, bsize: 4096, blocks: 1e6 });
    expect(checkDisk("/", read)).toEqual(finding);
  });

  it("is not held against a file system without a size", () => {
    expect(checkDisk("/", () => ({ bavail: 0, bsize: 4096, blocks: 0 }))).toEqual(
      ok("this file system does not report its free space"),
    );
  });
});

describe("variables", () => {
  const variables = (env: Record<string, string>, config: KnownSettings["config"] = NO_CONFIG) =>
    look(MACHINE_CHECKS.variables, { env, known: { config } as KnownSettings });
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
    expect(look(NETWORK_CHECKS.tls, { env: { NODE_TLS_REJECT_UNAUTHORIZED: "0" } })).toMatchObject({
      state: "failed",
      hint: expect.stringMatching(/^unset NODE_TLS_REJECT_UNAUTHORIZED; .*--ca-file/),
    });
    const verified = ok("certificates are verified");
    expect(look(NETWORK_CHECKS.tls, { env: { NODE_TLS_REJECT_UNAUTHORIZED: "1" } })).toEqual(verified);
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
    const { results, exitCode } = await runChecks([["store", { keychain: run }]], {}, live());
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
    const unasked = skipped("not checked: the keychain may prompt, and --no-input is set");
    expect(await checkKeychain(keyring, silent, false)).toEqual(unasked);
    const parts = { store: keyring, home: at("/home"), env: {} };
    expect(await look(STORE_CHECKS.keychain, { ...parts, noInput: "--no-input" })).toEqual(unasked);
  });
});

describe("a proxy", () => {
  it.each([
    ["http://user:planted-pw@proxy.example:3128/x?y=planted-q", "http://********@proxy.example:3128"],
    ["user:planted-pw@proxy.example", "http://********@proxy.example"],
    ["planted-user@proxy.example", "http://********@proxy.example"],
    ["https://proxy.example", "https://proxy.example"],
    ["socks5://u:planted-pw@proxy.example", undefined],
    ["http://us er:planted-pw@proxy.example", "http://********@proxy.example"],
    ["http://user:planted/pw@proxy.example", undefined],
    ["http://:planted-pw@proxy.example", "http://********@proxy.example"],
    ["proxy.example:3128", "http://proxy.example:3128"],
  ])("%s is shown as %s", (value, shown) => {
    expect(shownProxy(value)).toBe(shown);
    const redactor = new Redactor();
    for (const secret of proxySecrets(value)) redactor.add(secret);
    if (value.includes("planted-pw")) expect(redactor.redact(`it is ${value}`)).not.toContain("planted-pw");
  });

  it("comes from the flag, else from the variable that requests go by", () => {
    const env = { HTTPS_PROXY: "http://upper.example", https_proxy: "http://lower.example", NO_PROXY: "x.example" };
    expect(proxiesOf({}, env)).toEqual({
      https: { value: "http://lower.example", source: "https_proxy" },
      http: undefined,
      except: { value: "x.example", source: "NO_PROXY" },
    });
    expect(proxiesOf({ proxy: "http://flag.example" }, env).http).toEqual({
      value: "http://flag.example",
      source: "--proxy",
    });
  });

  it("has its password for a secret, as written and decoded, or all that is no address", () => {
    expect(proxySecrets("http://user:a%2Fb@proxy.example")).toEqual(["a%2Fb", "a/b"]);
    expect(proxySecrets("http://user@proxy.example")).toEqual([]);
    expect(proxySecrets("socks5://proxy.example")).toEqual(["socks5://proxy.example"]);
  });

  it("is named once for each variable, with what chose it", () => {
    const proxy = (env: Record<string, string>, flag?: string) =>
      look(NETWORK_CHECKS.proxy, { options: { proxy: flag }, env } as Partial<Subject>);
    expect(proxy({})).toEqual(ok("none"));
    expect(proxy({}, "http://u:p@p.example")).toEqual(ok("http://********@p.example (--proxy)"));
    expect(proxy({ HTTPS_PROXY: "http://a.example", HTTP_PROXY: "http://b.example" })).toEqual(
      ok("http://a.example (HTTPS_PROXY), http://b.example (HTTP_PROXY)"),
    );
    expect(proxy({ HTTPS_PROXY: "http://a.example", HTTP_PROXY: "ftp://b.example" })).toEqual(
      failed("HTTP_PROXY is not an http:// or https:// URL", "correct or unset HTTP_PROXY"),
    );
  });

  it("that cannot be one is a failure that does not quote it", () => {
    const finding = look(NETWORK_CHECKS.proxy, {
      options: {},
      env: { HTTP_PROXY: "ftp://u:planted-pw@x" },
    } as Partial<Subject>);
    expect(finding).toEqual(failed("HTTP_PROXY is not an http:// or https:// URL", "correct or unset HTTP_PROXY"));
  });
});

it("authorities are PEM files that can be read", () => {
  const folder = temporaryFolder();
  const good = "test/fixtures/self-signed.pem";
  const bad = join(folder, "x.pem");
  writeFileSync(bad, "nothing");
  const authorities = (caFile: string | undefined, env: Record<string, string>) =>
    look(NETWORK_CHECKS.authorities, { options: { caFile }, known: { settings: {} }, env } as Partial<Subject>);
  expect(authorities(good, { NODE_EXTRA_CA_CERTS: good })).toEqual(
    ok(`Node's built-in list, ${good} (--ca-file), ${good} (NODE_EXTRA_CA_CERTS)`),
  );
  expect(() => authorities(bad, {})).toThrow(`--ca-file "${bad}" contains no PEM certificate`);
  const none = join(folder, "none");
  expect(authorities(undefined, { NODE_EXTRA_CA_CERTS: none })).toEqual(
    warning(
      `NODE_EXTRA_CA_CERTS "${none}" cannot be read: Node continues without it`,
      "correct or unset NODE_EXTRA_CA_CERTS",
    ),
  );
  const known = { settings: { useSystemCa: at("yes", "profile work") } };
  const parts = { options: {}, known, env: {} } as unknown as Partial<Subject>;
  const ofSystem = () => look(NETWORK_CHECKS.authorities, parts).found;
  if ("getCACertificates" in tls)
    expect(ofSystem()).toMatch(/^Node's built-in list, \d+ of the system \(profile work\)$/);
  else expect(ofSystem).toThrow("profile work");
  known.settings.useSystemCa.value = "no";
  expect(ofSystem()).toBe("Node's built-in list");
});

describe.skipIf(!hasOpenssl("client certificates"))("a client certificate", () => {
  const authority = makeAuthority();
  const { cert, key } = authority.sign({ name: "mine", subject: "/O=Testers/CN=the agent", days: 30 });
  chmodSync(key, 0o600);
  const { validTo } = new X509Certificate(readFileSync(cert));
  const known = { settings: { clientCert: at(cert, "--client-cert"), clientKey: at(key, "--client-key") } };
  const name = `"O=Testers, CN=the agent" in ${cert} (--client-cert)`;

  it.each([
    [15, ok(`${name}, valid until ${validTo}`)],
    [14, ok(`${name}, valid until ${validTo}`)],
    [13, warning(`${name}, valid until ${validTo}`, "get a new certificate")],
    [0, warning(`${name}, valid until ${validTo}`, "get a new certificate")],
    [-1, failed(`${name} expired on ${validTo}`, "get a new certificate")],
  ])("that is valid for %i days more", async (days, finding) => {
    const context = { now: () => Date.parse(validTo) - days * 86_400_000 };
    expect(await look(NETWORK_CHECKS.client_cert, { known, env: {}, context } as unknown as Partial<Subject>)).toEqual(
      finding,
    );
    const none = { known: { settings: {} }, env: {}, context } as unknown as Partial<Subject>;
    expect(await look(NETWORK_CHECKS.client_cert, none)).toEqual(ok("none"));
  });
});

describe("the browser", () => {
  const browser = (env: Record<string, string>, noInput?: string) => look(MACHINE_CHECKS.browser, { env, noInput });

  it("is the command in BROWSER, if there is one", () => {
    const env = { PATH: process.env["PATH"] ?? "", BROWSER: "node --flag" };
    expect(browser(env)).toMatchObject({
      state: "ok",
      found: expect.stringMatching(/^node \(BROWSER/),
    });
    const absent = { state: "warning", hint: "correct or unset BROWSER" };
    expect(browser({ ...env, BROWSER: "no-such-browser %s" })).toMatchObject({
      ...absent,
      found: expect.stringMatching(/^BROWSER names "no-such-browser", which is not found( \(|$)/),
    });
    expect(browser({ BROWSER: "node" })).toMatchObject(absent);
    expect(browser({ ...env, BROWSER: "node/" })).toMatchObject(absent);
    expect(browser({ PATH: dirname(process.execPath), BROWSER: dirname(process.execPath) })).toMatchObject(absent);
    expect(browser({ ...env, BROWSER: process.execPath }).state).toBe("ok");
    expect(browser({ ...env, BROWSER: "none" }).found).toMatch(/^not opened: BROWSER is none/);
    const everywhere = { ...env, SSH_TTY: "/dev/pts/1", CI: "true", WSL_DISTRO_NAME: "x", BROWSER: "none" };
    expect(browser(everywhere).found).toMatch(/\(over SSH,.* in CI\b/);
    expect(browser({ ...everywhere, BROWSER: "node" }).found).toMatch(/^node \(BROWSER\) \(over SSH,/);
    expect(browser({ ...everywhere, BROWSER: "gone" }).found).toMatch(/not found \(over SSH,/);
  });

  it("is not opened over SSH, nor where the user may not be asked", () => {
    expect(browser({ SSH_TTY: "/dev/pts/1", DISPLAY: ":0" })).toMatchObject({
      state: "warning",
      found: expect.stringMatching(/^no browser can be opened here \(over SSH/),
      hint: "log in with --flow paste, or --flow device if the issuer supports it",
    });
    expect(browser({ DISPLAY: ":0" }, "--no-input")).toEqual(ok("not opened: --no-input"));
  });
});

describe("an optional package", () => {
  const failing = (code: string) => () => {
    throw Object.assign(new Error("planted"), { code });
  };
  const missing = failing("MODULE_NOT_FOUND");
  const broken = failing("ERR_DLOPEN_FAILED");
  const one = { name: "pkg", version: "1.2.3", serves: "--jq" };

  it.each([
    ["missing", missing, false, "skipped", "not installed: --jq needs it"],
    ["missing and wanted", missing, true, "failed", "not installed: --jq needs it"],
    ...([false, true] as const).map(
      (wanted) =>
        [
          ...["broken", broken, wanted, wanted ? "failed" : "warning"],
          "installed, but it cannot be loaded (ERR_DLOPEN_FAILED): --jq needs it",
        ] as const,
    ),
    [...(["silent", failing(""), false, "warning"] as const), "installed, but it cannot be loaded (): --jq needs it"],
  ] as const)("that is %s", (_what, load, wanted, state, found) => {
    const hint = "npm install pkg@1.2.3 (add --global if agentauth is installed globally)";
    expect(checkPackage(one, wanted, load)).toEqual({ state, found, hint });
  });

  it("that can be loaded is in order, and one that says nothing is not", () => {
    expect(checkPackage(one, true, () => ({}))).toEqual(ok("installed"));
    const silent = () => {
      throw new Error("planted");
    };
    expect(checkPackage(one, false, silent).found).toContain("(no reason reported)");
  });

  it("is named with the release that package.json has", () => {
    const { optionalDependencies } = JSON.parse(readFileSync("package.json", "utf8")) as {
      optionalDependencies: Record<string, string>;
    };
    expect(Object.fromEntries(Object.values(OPTIONAL_PACKAGES).map(({ name, version }) => [name, version]))).toEqual(
      optionalDependencies,
    );
  });
});

describe("the files of the store", () => {
  const FILE = { value: "file", source: "default", fallback: "none" } as const;
  const id = "a".repeat(40);
  const files = (home: string, value: "file" | "keyring") =>
    look(STORE_CHECKS.files, { home: at(home), store: { ...FILE, value } });
  const leftovers = (home: string) =>
    look(STORE_CHECKS.leftovers, { home: at(home), context: { now: Date.now } } as Partial<Subject>);
  const logins = (store: Subject["store"], home: string, profile: string) =>
    look(STORE_CHECKS.store, {
      store,
      home: at(home),
      known: { settings: { profile: at(profile) } },
    } as Partial<Subject>);

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

  it.skipIf(ON_WINDOWS)(
    "are named up to the third, each with its command; those of other names are none of ours",
    () => {
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
        found: expect.stringMatching(
          /^5 of 6 files cannot be used: \S+: .*; \S+: .*; .* can be read by others.*; and 2 more$/,
        ),
        hint: [`mv ${path} ${path}.broken`, `mv ${others[0]} ${others[0]}.broken`, `chmod 600 ${others[1]}`].join(
          " && ",
        ),
      });
      rmSync(join(home, "grants"), { recursive: true });
      expect(files(home, "file")).toEqual(ok("1 file, all can be used"));
      expect(files(temporaryFolder(), "file")).toEqual(ok("none yet"));
    },
  );

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

  it("that a killed command left are reported when they are old", () => {
    const { home, path } = homeWith("grants", `${id}/${id}/next.0123456789ab.tmp`, "");
    expect(leftovers(home)).toEqual(ok("none"));
    utimesSync(path, 1, 1);
    expect(leftovers(home)).toEqual(warning("1 temporary files of commands that were killed", `rm ${path}`));
    const more = ["a.tmp", join("claims", "b c.tmp-x1"), join("clients", "d.tmp"), join("tokens", "e.tmp")].map(
      (name) => {
        const one = join(home, name);
        mkdirSync(dirname(one), { recursive: true });
        writeFileSync(one, "");
        utimesSync(one, 1, 1);
        return one;
      },
    );
    for (const name of ["a.tmp.json", "b.temp", "c.tmp-!"]) {
      writeFileSync(join(home, name), "");
      utimesSync(join(home, name), 1, 1);
    }
    mkdirSync(join(home, "z.tmp"));
    utimesSync(join(home, "z.tmp"), 1, 1);
    expect(leftovers(home)).toEqual(
      warning("5 temporary files of commands that were killed", `rm ${more[0]} '${more[1]}' ${path}`),
    );
    const aged = (ms: number) => {
      const parts = { home: at(home), context: { now: () => 1000 + ms } } as unknown as Partial<Subject>;
      return look(STORE_CHECKS.leftovers, parts).state;
    };
    expect([aged(600_000), aged(600_001)]).toEqual(["ok", "warning"]);
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
    for (const check of [() => files(home, "file"), () => leftovers(home)]) {
      expect(check).toThrow(
        expect.objectContaining({
          class: "store",
          message: expect.stringContaining(`the folder ${join(home, "grants")} cannot be read`),
        }),
      );
    }
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
    const parts = { store: { ...FILE, value: "redis" }, engine: { open: () => ({ store }) }, home: at("/nowhere") };
    const known = { settings: { profile: at("work") } };
    expect(await look(STORE_CHECKS.store, { ...parts, known } as unknown as Partial<Subject>)).toEqual(
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
  const REPORT = {
    ...{ store: "redis", location: "here", usable: true, facts: { version: "7", durability: "always" } },
    ...{ clock_ahead_ms: 0, risks: [], errors: [], current_key: "k2", keys: ["k1", "k2"], keys_in_use: [] },
  };
  const k1 = { key: "k1", records: 3 };
  const k2 = { key: "k2", records: 1 };

  it.each<["engine" | "engine clock" | "key ring", object, CheckFinding]>([
    ["engine", {}, { state: "ok", found: "version 7, durability always" }],
    [
      "engine",
      { risks: ["a", "b"] },
      { state: "warning", found: "a; b (version 7, durability always)", hint: "agentauth store health" },
    ],
    [
      "engine",
      { risks: ["a"], errors: ["c", "d"] },
      { state: "failed", found: "c; d (version 7, durability always)", hint: "correct the settings of the engine" },
    ],
    ["engine clock", {}, { state: "ok", found: "the clock of this machine is 0 ms ahead of the engine's" }],
    [
      "engine clock",
      { clock_ahead_ms: -9999 },
      { state: "ok", found: "the clock of this machine is 9999 ms behind the engine's" },
    ],
    [
      "engine clock",
      { clock_ahead_ms: 10_000 },
      {
        state: "warning",
        found: "the clock of this machine is 10000 ms ahead of the engine's",
        hint: "synchronize both clocks",
      },
    ],
    ["key ring", {}, { state: "ok", found: 'seals with "k2"; records: none' }],
    ["key ring", { keys_in_use: [k2] }, { state: "ok", found: 'seals with "k2"; records: 1 with "k2"' }],
    [
      "key ring",
      { keys_in_use: [k1, k2] },
      {
        state: "warning",
        found: 'seals with "k2"; records: 3 with "k1", 1 with "k2"',
        hint: "agentauth store reseal",
      },
    ],
    [
      "key ring",
      { keys: ["k2"], keys_in_use: [k1] },
      { state: "failed", found: 'seals with "k2"; records: 3 with "k1"', hint: "add the missing keys to store_keys" },
    ],
    [
      "key ring",
      { current_key: null },
      {
        state: "warning",
        found: "store_keys is none: logins are not sealed",
        hint: "agentauth store keys <path>",
      },
    ],
  ])("%s of %j", async (name, over, finding) => {
    const engine = { report: async () => ({ ...REPORT, ...over }) };
    expect(await look(STORE_CHECKS[name], { engine } as unknown as Partial<Subject>)).toEqual(finding);
    expect(await look(STORE_CHECKS[name], { engine: undefined } as Partial<Subject>)).toBeUndefined();
  });

  it("is no failure of the keys where it does not answer", async () => {
    const engineOf = (error: unknown) =>
      ({ engine: { report: () => Promise.reject(error) } }) as unknown as Partial<Subject>;
    const silent = new AgentAuthError("store_unavailable", "x", { class: "unavailable" });
    expect(await look(STORE_CHECKS["key ring"], engineOf(silent))).toEqual({
      state: "skipped",
      found: "the engine does not answer",
    });
    await expect(look(STORE_CHECKS.engine, engineOf(silent))).rejects.toBe(silent);
    const refused = new AgentAuthError("store_failed", "x", { class: "store" });
    await expect(look(STORE_CHECKS["key ring"], engineOf(refused))).rejects.toBe(refused);
  });
});

describe("the login at an MCP server", () => {
  const url = "https://mcp.example/m c";
  const LOGIN = { state: "valid", refreshable: true, expires_at: "2026-01-31T12:00:00Z", reason: null };
  const logIn = "agentauth login 'https://mcp.example/m c'";

  it.each<[string, object[], CheckFinding]>([
    ["none", [], warning("not logged in", logIn)],
    ["valid", [LOGIN], ok("valid until 2026-01-31T12:00:00Z, refreshable")],
    [
      "without an end",
      [{ ...LOGIN, expires_at: null, refreshable: false }],
      ok("valid until the issuer revokes it, not refreshable"),
    ],
    ["expired", [{ ...LOGIN, state: "expired" }], ok("expired 2026-01-31T12:00:00Z, refreshable")],
    [
      "lost",
      [{ ...LOGIN, state: "expired", refreshable: false }],
      warning("expired 2026-01-31T12:00:00Z, not refreshable", logIn),
    ],
    [
      "rejected",
      [{ ...LOGIN, reason: "invalid_grant" }],
      warning("the issuer rejected the login: invalid_grant", logIn),
    ],
  ])("that is %s", async (_what, logins, finding) => {
    const asked: unknown[] = [];
    const status = async (...args: unknown[]) => {
      asked.push(...args);
      return logins;
    };
    const parts = { url, server: { agent: async () => ({ status }) } } as unknown as Partial<Subject>;
    expect(await look(LOGIN_CHECKS.login, parts)).toEqual(finding);
    expect(asked).toEqual([url]);
    expect(await look(LOGIN_CHECKS.login, { ...parts, url: undefined } as Partial<Subject>)).toBeUndefined();
  });
});

describe("the issuer of an MCP server", () => {
  const discovered = (result: object) => {
    const parts = {
      url: "https://mcp.example/mcp/",
      server: { agent: async () => ({ discover: async () => result }) },
    };
    return look(ONLINE_CHECKS.discovery, parts as unknown as Partial<Subject>);
  };

  it("is named with the number of requests, and need not be", async () => {
    const found = { server: "https://mcp.example/mcp", issuer: { issuer: "https://as.example" } };
    expect(await discovered({ found, trace: [1, 2, 3] })).toEqual(
      ok("the issuer of https://mcp.example/mcp is https://as.example (3 requests)"),
    );
    const open = new AgentAuthError("login_not_required", "no", { class: "remote" });
    expect(await discovered({ error: open, trace: [] })).toEqual(ok("https://mcp.example/mcp/ requires no login"));
    const failure = new AgentAuthError("not_found", "no", { class: "remote" });
    await expect(discovered({ error: failure, trace: [] })).rejects.toBe(failure);
  });
});

it("an API token that is empty is a failure, and another one is hidden from then on", () => {
  const redactor = new Redactor();
  const tokenOf = (text: string) => {
    const known = { settings: { apiToken: { source: "--token", read: () => text } } };
    return look(SETTINGS_CHECKS.api_token, { known, context: { redactor } } as unknown as Partial<Subject>);
  };
  expect(tokenOf("")).toEqual(failed("the token from --token is empty", "agentauth config set api_token -"));
  expect(tokenOf("planted-token")).toEqual(ok("can be read (--token)"));
  expect(redactor.redact("planted-token")).not.toContain("planted");
});

describe("what a service replies", () => {
  const ASKED = { options: { online: true }, service: { settings: () => ({ baseUrl: at("https://x.example") }) } };
  const DATE = "Sat, 31 Jan 2026 12:00:00 GMT";
  const replied = (name: "service" | "clock" | "sorting", reply: object, parts: object = {}) =>
    look(ONLINE_CHECKS[name], { ...ASKED, reply: async () => reply, ...parts } as unknown as Partial<Subject>);

  it.each([
    [30, ok("agrees with the service within 30 s")],
    [-30, ok("agrees with the service within 30 s")],
    [31, warning("31 s ahead of the service", "set the clock of this machine, preferably by NTP")],
    [-31, warning("31 s behind the service", "set the clock of this machine, preferably by NTP")],
    [300, warning("300 s ahead of the service", "set the clock of this machine, preferably by NTP")],
    [301, failed("301 s ahead of the service", "set the clock of this machine, preferably by NTP")],
    [-301, failed("301 s behind the service", "set the clock of this machine, preferably by NTP")],
  ])("has its clock: %i s off", async (seconds, finding) => {
    const response = new Response(null, { headers: { date: DATE } });
    expect(await replied("clock", { response, now: Date.parse(DATE) + seconds * 1000 })).toEqual(finding);
  });

  it("is judged by what it has, and is not waited for where nothing is asked", async () => {
    const silent = skipped("the service did not send its time");
    expect(await replied("clock", { now: 0 })).toEqual(silent);
    expect(await replied("clock", { now: 0, response: new Response() })).toEqual(silent);
    expect(await replied("service", { result: "lists" })).toEqual(ok("https://x.example: lists"));
    await expect(replied("service", { result: "lists", error: new Error("no") })).rejects.toThrow("no");
    expect(await replied("sorting", { error: new Error("no") })).toEqual(skipped("the service cannot be asked"));
    expect(await replied("sorting", {})).toEqual(skipped("no account, domain or pool is set to list"));
    for (const sorting of [undefined, {}, { field: null }]) {
      expect(await replied("sorting", { page: { sorting } })).toEqual(
        skipped("the service does not name the order of its lists"),
      );
    }
    for (const name of ["service", "clock", "sorting"] as const) {
      expect(await replied(name, {}, { options: {} })).toEqual(
        skipped("no request was sent", "agentauth doctor --online sends one"),
      );
      expect(await replied(name, {}, { service: { settings: () => ({}) } })).toEqual(skipped("base_url is not set"));
    }
  });
});

describe("the smallest list of a service", () => {
  const PAGE = { pagination: {}, response: new Response() };
  const listOf = async (settings: object, item_count?: number) => {
    const asked: unknown[] = [];
    const list = (noun: string) => ({
      list: (scope: object, { signal: _, onEnd: __, ...options }: Record<string, unknown>) => {
        asked.push(noun, scope, options);
        return { firstPage: async () => ({ ...PAGE, pagination: { item_count } }) };
      },
    });
    const service = { domains: list("domains"), pools: list("pools"), devices: list("devices") };
    const { result, page } = await smallestList(service as unknown as ManagementClient, settings as Settings, live());
    expect(page).toBeDefined();
    return [result, ...asked.slice(0, 2)];
  };

  it("is that of the widest scope, of which one item is requested", async () => {
    const [account, domain, pool] = [at("acc"), at("dom"), at("pool")];
    expect(await listOf({ pool, domain, account }, 7)).toEqual([
      "lists the domains of the account (7)",
      "domains",
      { account_id: "acc" },
    ]);
    expect(await listOf({ pool, domain }, 0)).toEqual([
      "lists the pools of the domain (0)",
      "pools",
      { domain_id: "dom" },
    ]);
    expect(await listOf({ pool })).toEqual(["lists the devices of the pool (some)", "devices", { pool_id: "pool" }]);
  });

  it.each([
    ["bad_request", true],
    ["required_value", true],
    ["invalid_value", true],
    ["not_permitted", false],
  ])("where there is none, an answer with the code %s is a response: %j", async (code, isOne) => {
    const response = new Response();
    const error = new AgentAuthError(code as "not_permitted", "no", { class: "remote", response });
    const service = { get: () => Promise.reject(error) } as unknown as ManagementClient;
    const list = smallestList(service, {} as Settings, live());
    if (!isOne) return expect(list).rejects.toBe(error);
    expect(await list).toEqual({ result: "responds; no account, domain or pool is set to list", response });
    const other = new Error("no");
    const broken = { get: () => Promise.reject(other) } as unknown as ManagementClient;
    await expect(smallestList(broken, {} as Settings, live())).rejects.toBe(other);
  });
});
