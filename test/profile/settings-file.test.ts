import { spawnSync } from "node:child_process";
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { SORTING_ENCODINGS } from "../../src/api/types.js";
import { CONFIG_RUNS, type ConfigOptions } from "../../src/cli/commands/config/run.js";
import { changeConfig } from "../../src/profile/change-config.js";
import { checkSetting, PROFILE_KEYS, type Profile, toAuthorizationParams } from "../../src/profile/profile-settings.js";
import {
  type Config,
  checkProfileName,
  chosenProfile,
  isProfileName,
  locationIn,
  profileNames,
  readConfig,
  writeConfig,
  writtenProfile,
} from "../../src/profile/settings-file.js";
import { startRun } from "../cli/run-support.js";
import { temporaryFolder } from "../helpers/folder.js";
import { ON_WINDOWS } from "../helpers/systems.js";

function contextOf(home: string, tty: boolean) {
  return startRun({ tty, env: { AGENTAUTH_HOME: home } });
}

/** A folder of settings as an editor may have left it. */
function homeWith(pool: string): string {
  const home = temporaryFolder();
  writeFileSync(join(home, "config.json"), JSON.stringify({ profiles: { default: { pool } } }));
  return home;
}

describe("config get", () => {
  const odd = "a\u001b[31mb\u202ec";

  it.each([
    [true, "a\\e[31mb\\u{202e}c\n"],
    [false, `${odd}\n`],
  ])("with a terminal there or not (%s) prints what is safe for it", async (tty, expected) => {
    const { io, context } = contextOf(homeWith(odd), tty);
    await CONFIG_RUNS.get({ key: "pool" } as ConfigOptions, context);
    expect(io.out()).toBe(expected);
  });
});

describe("a setting", () => {
  it("says what it is about", () => {
    expect(Object.entries(PROFILE_KEYS).map(([key, { description }]) => `${key}: ${description}`)).toMatchSnapshot();
  });

  it("says which values it can have, where they are few", () => {
    const choices = Object.entries(PROFILE_KEYS).filter(([, { values }]) => typeof values !== "function");
    expect(Object.fromEntries(choices.map(([key, { values }]) => [key, values]))).toEqual({
      sorting: SORTING_ENCODINGS,
      output: ["table", "wide", "plain", "json", "ndjson", "csv", "id"],
      store: ["file", "keyring", "memory", "redis", "postgres"],
      store_fallback: ["none", "file"],
      use_system_ca: ["yes", "no"],
    });
  });

  const REFERENCE = "must be env:NAME, file:PATH or exec:COMMAND";
  const HEADER = 'must be a header name, or "Name: Scheme"';
  const ISSUER = "must be an https address without a query (http to this machine alone), as the issuer has it";

  it.each<[keyof Profile, string, string]>([
    ["auth_header", "", `"" ${HEADER}`],
    ["auth_header", "X Key", `"X Key" ${HEADER}`],
    ["auth_header", " X-Key", `" X-Key" ${HEADER}`],
    ["auth_header", "Authorization:", `"Authorization:" ${HEADER}`],
    ["auth_header", "Authorization: To ken", `"Authorization: To ken" ${HEADER}`],
    ["sorting", "yaml", `"yaml" must be one of ${SORTING_ENCODINGS.join(", ")}`],
    ["issuer", "somewhere", `"somewhere" ${ISSUER}`],
    ["issuer", "http://as.example", `"http://as.example" ${ISSUER}`],
    ["issuer", "ftp://127.0.0.1", `"ftp://127.0.0.1" ${ISSUER}`],
    ["issuer", "https://as.example?a", `"https://as.example?a" ${ISSUER}`],
    ["issuer", "https://as.example#a", `"https://as.example#a" ${ISSUER}`],
    ["issuer", "https://:b@as.example", `"https://********@as.example" ${ISSUER}`],
    ["issuer", "https://a@as.example", `"https://********@as.example" ${ISSUER}`],
    ["authorize_params", "", '"" must be name=value, with & between several'],
    ["account", " ", '" " must not be empty'],
    ["domain", "", '"" must not be empty'],
    ["pool", "", '"" must not be empty'],
    ["store_tenant", "", '"" must not be empty'],
    ["client_cert", "", '"" must not be empty'],
    ["client_key", "", '"" must not be empty'],
    ["output", "xml", '"xml" must be one of table, wide, plain, json, ndjson, csv, id'],
    ["use_system_ca", "maybe", '"maybe" must be one of yes, no'],
    ["client_metadata_url", "http://c.example/a", '"http://c.example/a" must be an https address'],
    ["client_metadata_url", "https://c.example/", '"https://c.example/" must have a path'],
    ["store", "disk", '"disk" must be one of file, keyring, memory, redis, postgres'],
    ["store_fallback", "", '"" must be one of none, file'],
    ["audit", "audit.log", '"audit.log" must be file:PATH'],
    ["audit", "file:", '"file:" must be file:PATH'],
    ["audit", "x file:a", '"x file:a" must be file:PATH'],
    ["api_token", "tok", `${REFERENCE}, never the token itself`],
    ["store_url", "redis://r.example", `${REFERENCE}, never the address itself`],
    ["store_keys", "k", `${REFERENCE}, or none, never the keys themselves`],
  ])("%s is refused as %j, with the rule", (key, value, rule) => {
    expect(() => checkSetting(key, value)).toThrow(
      expect.objectContaining({ code: "usage", class: "usage", message: `${key} ${rule}` }),
    );
  });

  it.each<[keyof Profile, string]>([
    ["auth_header", "X-Api-Key"],
    ["auth_header", "Authorization: Token"],
    ["auth_header", "Authorization:Token"],
    ["issuer", "http://127.0.0.1:8080"],
    ["issuer", "https://as.example/tenant"],
    ["authorize_params", "access_type=offline&prompt=consent"],
    ["store_keys", "none"],
    ["store_keys", "env:KEYS"],
    ["store_url", "exec:vault read url"],
    ["api_token", "file:/run/token"],
    ["client_metadata_url", "https://c.example/a.json"],
    ["audit", "file:a"],
    ["use_system_ca", "no"],
    ["store_takeover", "fast"],
    ["pool", "p"],
  ])("%s can be %j", (key, value) => {
    expect(() => checkSetting(key, value)).not.toThrow();
  });

  it("is suggested where a word is near, and not where none is", () => {
    expect(() => checkSetting("output", "jsn")).toThrow(expect.objectContaining({ hint: "did you mean json?" }));
    for (const [key, value] of [
      ["output", "something"],
      ["pool", ""],
    ] as const)
      expect(() => checkSetting(key, value)).toThrow(expect.not.objectContaining({ hint: expect.any(String) }));
  });

  it("has parameters for the authorization request", () => {
    const value = "access_type=offline&prompt=consent";
    expect(toAuthorizationParams({ authorizeParam: { value, source: "x" } })).toEqual({
      access_type: "offline",
      prompt: "consent",
    });
    expect(toAuthorizationParams({ authorizeParam: undefined })).toEqual({});
  });

  it.each<[keyof Profile, string]>([
    ["api_token", "agentauth config set api_token - reads a token from stdin"],
    ["store_url", "agentauth config set store_url file:<path>, with the address in a file that only you can read"],
    ["store_keys", "agentauth store keys <path> makes a key ring; agentauth config set store_keys file:<path>"],
  ])("that is a secret is not repeated, and the hint is how to set it: %s", (key, hint) => {
    expect(() => checkSetting(key, "redis://:PLANTED@redis.example")).toThrow(
      expect.objectContaining({ code: "usage", hint, message: expect.not.stringContaining("PLANTED") }),
    );
  });
});

it("a wrong base address is named as it was given, once", () => {
  expect(() => checkSetting("base_url", "ftp://x.example", "base_url of profile p")).toThrow(
    expect.objectContaining({
      code: "usage",
      message: expect.stringMatching(/^base_url of profile p "ftp:[^"]*" must /),
    }),
  );
});

describe("a change of the settings file", () => {
  const live = () => new AbortController().signal;

  it("sees what others wrote, one after the other", async () => {
    const home = homeWith("0");
    const count = (step: number) =>
      changeConfig(
        home,
        (config) => {
          const pool = String(Number(config.profiles["default"]?.pool) + step);
          return { ...config, profiles: { default: { pool } } };
        },
        live(),
      );
    await Promise.all([1, 2, 3, 4, 5, 6, 7, 8].map(count));
    expect(JSON.parse(readFileSync(join(home, "config.json"), "utf8"))).toMatchObject({
      profiles: { default: { pool: "36" } },
    });
  });

  it("that leaves them as they are writes nothing, and makes the folder", async () => {
    const none = join(temporaryFolder(), "home");
    await changeConfig(none, () => undefined, live());
    expect([readdirSync(none).includes("config.json"), statSync(none).mode & 0o777]).toEqual([false, 0o700]);
    const home = homeWith("p");
    const before = readFileSync(join(home, "config.json"), "utf8");
    await changeConfig(home, () => undefined, live());
    expect(readFileSync(join(home, "config.json"), "utf8")).toBe(before);
  });

  it("of a broken file is refused before anything is made", async () => {
    const home = join(temporaryFolder(), "home");
    mkdirSync(home);
    writeFileSync(join(home, "config.json"), "{");
    await expect(changeConfig(home, (config) => config, live())).rejects.toMatchObject({ class: "usage" });
    expect(readFileSync(join(home, "config.json"), "utf8")).toBe("{");
    expect(readdirSync(home)).toEqual(["config.json"]);
    const ended = AbortSignal.abort(new Error("enough"));
    await expect(changeConfig(temporaryFolder(), (config) => config, ended)).rejects.toThrow();
  });

  it("is written for people to read, by no other user, and names with dots are names", () => {
    const home = join(temporaryFolder(), "home");
    const config: Config = { schema: 1, profile: "a.b", profiles: { "a.b": { pool: "p" } } };
    writeConfig(home, config);
    const path = join(home, "config.json");
    expect(readFileSync(path, "utf8")).toBe(`${JSON.stringify(config, null, 2)}\n`);
    expect(readConfig(home)).toEqual(config);
    if (!ON_WINDOWS) expect((statSync(path).mode & 0o777).toString(8)).toBe("600");
  });

  it("that is wrong, or cannot be written, is an error that names the file", () => {
    const home = temporaryFolder();
    const path = join(home, "config.json");
    const config: Config = { schema: 1, profile: "default", profiles: {} };
    expect(() => writeConfig(home, { ...config, profile: "a b" })).toThrow(
      expect.objectContaining({
        code: "usage",
        message: `the settings file ${path}: profile "a b" is not a valid profile name`,
      }),
    );
    expect(readdirSync(home)).toEqual([]);
    mkdirSync(join(path, "x"), { recursive: true });
    expect(() => writeConfig(home, config)).toThrow(
      expect.objectContaining({
        code: "store_failed",
        message: expect.stringContaining(`the file ${path} cannot be written`),
      }),
    );
  });
});

describe("a settings file that is wrong", () => {
  const known = Object.keys(PROFILE_KEYS).join(", ");
  const moveAway = "correct it, or move it away";

  it.each<[string, string, string]>([
    ["[]", "PATH", "it must be a JSON object"],
    ["null", "PATH", "it must be a JSON object"],
    ['{"a": 1}', "line 1 of PATH", 'unknown key "a"'],
    ['{\n  "schema": 2\n}', "line 2 of PATH", 'schema is "2"; this version reads 1'],
    ['{"profile": 7}', "line 1 of PATH", 'profile "7" is not a valid profile name'],
    ['{"profile": "a b"}', "line 1 of PATH", 'profile "a b" is not a valid profile name'],
    ['{"profiles": []}', "line 1 of PATH", "profiles must be an object"],
    ['{"profiles": {\n"a b": {}}}', "line 2 of PATH", '"a b" is not a valid profile name'],
    [
      '{\n"profile": "sandbox"}',
      "line 2 of PATH",
      "the profile sandbox cannot be the selected one: --profile sandbox uses it",
    ],
    ['{"profiles": {\n"sandbox": {}}}', "line 2 of PATH", "the profile sandbox is reserved for the running sandbox"],
    ['{"profiles": {\n"p": []}}', "line 2 of PATH", "profiles.p must be an object"],
    [
      '{"profiles": {"p": {\n\n"stoer": "file"}}}',
      "line 3 of PATH",
      `unknown key "profiles.p.stoer"; known are ${known}`,
    ],
    ['{"profiles": {"p": {\n"pool": 7}}}', "line 2 of PATH", 'profiles.p.pool is "7", not a string'],
    [
      '{"profile": "pool",\n"profiles": {"pool": {"account": "pool",\n"pool" : 7}}}',
      "line 3 of PATH",
      'profiles.pool.pool is "7", not a string',
    ],
    ['{"profiles": {"p": {\n"\\u0070ool": 7}}}', "PATH", 'profiles.p.pool is "7", not a string'],
  ])("as %s is refused with its line", (text, location, problem) => {
    const home = temporaryFolder();
    const path = join(home, "config.json");
    writeFileSync(path, text);
    expect(() => readConfig(home)).toThrow(
      expect.objectContaining({
        code: "usage",
        class: "usage",
        message: `the settings file ${location.replace("PATH", path)}: ${problem}`,
        hint: moveAway,
      }),
    );
  });

  it("for one setting says which rule it breaks", () => {
    const home = temporaryFolder();
    const path = join(home, "config.json");
    writeFileSync(path, '{"profiles": {"p": {\n"audit": "x"}}}');
    expect(() => readConfig(home)).toThrow(`profiles.p.audit in line 2 of ${path} "x" must be file:PATH`);
  });

  it("as text that is no JSON is refused with the reason, and so is one in UTF-16", () => {
    const home = temporaryFolder();
    const path = join(home, "config.json");
    writeFileSync(path, '{"profile": x}');
    expect(() => readConfig(home)).toThrow(
      expect.objectContaining({
        code: "usage",
        message: expect.stringContaining(`the settings file ${path}: it is not valid JSON: `),
        hint: moveAway,
      }),
    );
    writeFileSync(path, "\ufeff{}", "utf16le");
    expect(() => readConfig(home)).toThrow(`the settings file ${path} is UTF-16`);
  });

  it("because it cannot be read is an error of the store", () => {
    const home = temporaryFolder();
    const path = join(home, "config.json");
    mkdirSync(path);
    expect(() => readConfig(home)).toThrow(
      expect.objectContaining({
        code: "store_failed",
        message: `the settings file ${path} is not an ordinary file`,
      }),
    );
  });
});

describe.skipIf(ON_WINDOWS)("a settings file behind links", () => {
  const TEXT = '{"profiles": {"default": {"pool": "p"}}}';
  const poolIn = (home: string) => readConfig(home).profiles["default"]?.pool;

  /** What Kubernetes mounts: the files of a ConfigMap change together, by one link. */
  function configMap(mode: number): string {
    const home = temporaryFolder();
    mkdirSync(join(home, "..2026"));
    writeFileSync(join(home, "..2026", "config.json"), TEXT, { mode: 0o644 });
    symlinkSync("..2026", join(home, "..data"));
    symlinkSync("..data/config.json", join(home, "config.json"));
    chmodSync(home, mode);
    return home;
  }

  it("is that of a ConfigMap, also in a sticky volume", () => {
    for (const mode of [0o755, 0o1777]) expect(poolIn(configMap(mode))).toBe("p");
  });

  it.runIf(process.getuid?.() === 0)(
    "is that of a ConfigMap in a volume that all could write, mounted read-only",
    () => {
      const home = configMap(0o777);
      expect(() => readConfig(home)).toThrow(expect.objectContaining({ code: "store_failed" }));
      const file = join(process.cwd(), "src", "profile", "settings-file.ts");
      const script = `
      import { readConfig } from ${JSON.stringify(file)};
      console.log(readConfig(${JSON.stringify(home)}).profiles.default.pool);`;
      const mount = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"';
      const node = [process.execPath, "--import", "tsx", "--input-type=module", "-e", script];
      const run = spawnSync("unshare", ["-m", "sh", "-c", mount, home, ...node], { encoding: "utf8" });
      expect([run.stdout, run.stderr]).toEqual(["p\n", ""]);
    },
  );

  it("is a file among dotfiles, and a change goes there", () => {
    const [user, home] = [temporaryFolder(), join(temporaryFolder(), "agentauth")];
    const dotfiles = join(user, "dotfiles", "agentauth");
    mkdirSync(dotfiles, { recursive: true });
    writeFileSync(join(dotfiles, "settings.json"), TEXT, { mode: 0o644 });
    mkdirSync(home);
    symlinkSync(join(dotfiles, "settings.json"), join(home, "config.json"));
    symlinkSync(home, join(user, "linked"));
    expect([home, join(user, "linked")].map(poolIn)).toEqual(["p", "p"]);
    writeConfig(home, { schema: 1, profile: "default", profiles: { default: { pool: "q" } } });
    expect(lstatSync(join(home, "config.json")).isSymbolicLink()).toBe(true);
    expect(JSON.parse(readFileSync(join(dotfiles, "settings.json"), "utf8")).profiles.default.pool).toBe("q");
  });
});

describe("a settings file", () => {
  it("may begin with a byte order mark, and leave out what has a default", () => {
    const home = temporaryFolder();
    writeFileSync(join(home, "config.json"), "\ufeff{}");
    expect(readConfig(home)).toEqual({ schema: 1, profile: "default", profiles: {} });
  });

  it("names its own lines, and itself alone where a key is not in it", () => {
    const file = { path: "/c.json", text: '{"a": {\n"b": "c",\n"c": 1}}' };
    expect(locationIn(file)).toBe("/c.json");
    expect(locationIn(file, "a")).toBe("line 1 of /c.json");
    expect(locationIn(file, "a", "c")).toBe("line 3 of /c.json");
    expect(locationIn(file, "a", "d", "b")).toBe("/c.json");
  });
});

describe("the profile", () => {
  const config: Config = { schema: 1, profile: "default", profiles: { work: { pool: "p" } } };

  it("is that of the flag, of the variable, of the settings file, or the default", () => {
    const home = temporaryFolder();
    const file = { value: "default", source: "settings file" };
    expect(chosenProfile(["a", "--profile"], { AGENTAUTH_PROFILE: "b" }, config)).toEqual({
      value: "a",
      source: "--profile",
    });
    expect(chosenProfile([undefined, "--profile"], { AGENTAUTH_PROFILE: "b" }, config)).toEqual({
      value: "b",
      source: "AGENTAUTH_PROFILE",
    });
    expect(chosenProfile([undefined, "--profile"], {}, config)).toEqual(file);
    expect(checkProfileName(file, home)).toEqual({ value: "default", source: "default" });
    expect(checkProfileName({ value: "a", source: "--profile" }, home)).toEqual({ value: "a", source: "--profile" });
    writeFileSync(join(home, "config.json"), "{}");
    expect(checkProfileName(file, home)).toEqual(file);
  });

  it("can be named, once each", () => {
    const home = temporaryFolder();
    expect(profileNames({ ...config, profiles: { default: {}, work: {} } }, home)).toEqual(["default", "work"]);
    expect(profileNames({ ...config, profiles: {} }, home)).toEqual(["default"]);
  });

  it("has what was written, and nothing that every object has", () => {
    expect(writtenProfile("work", config)).toEqual({ name: "work", entries: { pool: "p" } });
    for (const name of ["default", "constructor"]) expect(writtenProfile(name, config)).toEqual({ name, entries: {} });
  });

  it.each(["a", "9", "a.b_c-D", "x".repeat(64)])("may be called %s", (name) => {
    expect(isProfileName(name)).toBe(true);
  });

  it.each(["", ".a", "_a", "a b", "a/b", "a\n", "\na", "x".repeat(65), "__proto__"])("may not be called %j", (name) => {
    expect(isProfileName(name)).toBe(false);
  });
});
