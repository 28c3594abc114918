import { chmodSync, chownSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { userInfo } from "node:os";
import { join, normalize, resolve } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { collectRepeated } from "../../src/cli/flags/values.js";
import { createAgentClient, createManagementClient, defaultStore } from "../../src/node.js";
import { parseSeconds, readAuthorizeParam, shortText, wholeNumber } from "../../src/profile/login-settings.js";
import { requireBaseUrl, serviceOptions } from "../../src/profile/service-settings.js";
import {
  expandUserFolder,
  findHome,
  homeFolder,
  isWithin,
  type Settings,
  userFolder,
} from "../../src/profile/settings.js";
import { runCli, temporaryFolder } from "../helpers/cli.js";
import { sendJson, startServer } from "../helpers/server.js";
import { ON_WINDOWS } from "../helpers/systems.js";
import { onSystem } from "../platform/support.js";

describe("the folder of the user", () => {
  it.each([
    ["linux", "/home/ada"],
    ["darwin", "/home/ada"],
    ["win32", "C:\\Users\\ada"],
  ] as const)("on %s is what its variable says", (name, folder) => {
    onSystem({ name });
    expect(userFolder({ HOME: "/home/ada", USERPROFILE: "C:\\Users\\ada" })).toBe(folder);
  });

  it.each([{}, { HOME: "" }, { HOME: "here" }])("is that of the system with %j", (env) => {
    onSystem({ name: "linux" });
    expect(userFolder(env)).toBe(userInfo().homedir);
  });

  it("is meant by ~/ at the beginning of a path alone", () => {
    onSystem({ name: "linux" });
    const env = { HOME: "/h" };
    const paths = ["~/a/~/b", "~", "~ada/a", "a/~/b"];
    expect(paths.map((path) => expandUserFolder(path, env))).toEqual(["/h/a/~/b", "~", "~ada/a", "a/~/b"]);
  });
});

describe("the home folder", () => {
  it.each([
    ["AGENTAUTH_HOME", { AGENTAUTH_HOME: "/a", XDG_CONFIG_HOME: "/b" }, "linux", resolve("/a")],
    ["AGENTAUTH_HOME", { AGENTAUTH_HOME: "~/a", HOME: "/h" }, "linux", resolve("/h/a")],
    ["XDG_CONFIG_HOME", { XDG_CONFIG_HOME: "/b", HOME: "/h" }, "linux", "/b/agentauth"],
    ["default", { APPDATA: "c", HOME: "/h" }, "linux", "/h/.config/agentauth"],
    ["default", { AGENTAUTH_HOME: "", XDG_CONFIG_HOME: "", HOME: "/h" }, "linux", "/h/.config/agentauth"],
    ["default", { XDG_CONFIG_HOME: "b", HOME: "/h" }, "linux", "/h/.config/agentauth"],
    ["default", { XDG_CONFIG_HOME: "~/b", HOME: "/h" }, "linux", "/h/.config/agentauth"],
    ["default", { XDG_CONFIG_HOME: "/b", HOME: "/h" }, "darwin", "/h/Library/Application Support/agentauth"],
    // Outside AppData, which each packaged program sees in another way.
    [
      "default",
      { LOCALAPPDATA: "c", APPDATA: "d", XDG_CONFIG_HOME: "/b", USERPROFILE: "/u" },
      "win32",
      "/u/.agentauth",
    ],
    ["default", { USERPROFILE: "/u", HOME: "/h" }, "win32", "/u/.agentauth"],
    ["AGENTAUTH_HOME", { AGENTAUTH_HOME: "/a", USERPROFILE: "/u" }, "win32", resolve("/a")],
  ] as const)("comes from %s where %j is set on %s", (source, env, name, value) => {
    onSystem({ name });
    expect(findHome(env)).toEqual({ source, value: normalize(value) });
    expect(homeFolder(env)).toBe(normalize(value));
  });

  it.each(["a", "./a", "~", "~ada/a"])("is refused as AGENTAUTH_HOME=%s, which is relative", (value) => {
    onSystem({ name: "linux" });
    const env = { AGENTAUTH_HOME: value, HOME: "/h" };
    expect(() => findHome(env)).toThrow(
      expect.objectContaining({ code: "usage", class: "usage", message: expect.stringContaining(`"${value}"`) }),
    );
  });

  it("has what lies below it", () => {
    const home = resolve("/h");
    const paths = [home, join(home, "a"), `${home}a`, join(home, "..", "b"), resolve("/")];
    expect(paths.map((path) => isWithin(home, path))).toEqual([true, true, false, false, false]);
  });
});

describe("a number of seconds", () => {
  it.each([
    ["1", 1],
    ["0.5", 0.5],
    [".5", 0.5],
    ["2.", 2],
    ["86400", 86_400],
  ])("%s", (text, expected) => {
    expect(parseSeconds(text)).toBe(expected);
  });

  it.each(["", "0", "0.0", "-1", "1e3", "x1", "1x", ".", "86400.1", "1.2.3", "Infinity"])("refuses %j", (text) => {
    expect(() => parseSeconds(text)).toThrow("must be a number of seconds above 0 and at most 86400");
  });
});

describe("a whole number", () => {
  it.each([
    ["2", 2],
    ["64", 64],
    ["007", 7],
  ])("%s", (text, expected) => {
    expect(wholeNumber(2, 64)(text)).toBe(expected);
    expect(wholeNumber(2)(text)).toBe(expected);
  });

  it.each(["", "1", "65", "-3", "2.5", "1e1", "x3", "3x", " 3", "9007199254740993"])("refuses %j", (text) => {
    expect(() => wholeNumber(2, 64)(text)).toThrow(/^must be a whole number of at least 2 and at most 64$/);
    if (text !== "65") expect(() => wholeNumber(2)(text)).toThrow(/^must be a whole number of at least 2$/);
  });
});

it("a text that others show is short, and has characters that are seen", () => {
  const parse = shortText(5);
  expect(["a", "abcde", "a b"].map(parse)).toEqual(["a", "abcde", "a b"]);
  for (const text of ["", "  ", "abcdef", "a\u001b", "a\u202e"])
    expect(() => parse(text)).toThrow(/^must be a text of 1 to 5 visible characters$/);
});

describe("a parameter of the authorization request", () => {
  it("is added to those before it", () => {
    expect(readAuthorizeParam("prompt=consent")).toEqual({ prompt: "consent" });
    expect(readAuthorizeParam("a=b=c", { prompt: "consent", a: "x" })).toEqual({ prompt: "consent", a: "b=c" });
    expect(readAuthorizeParam("a=", { b: "1" })).toEqual({ b: "1", a: "" });
  });

  it.each(["prompt", "=consent", ""])("refuses %j", (text) => {
    expect(() => readAuthorizeParam(text)).toThrow(/^must be name=value, or name= to leave the parameter out$/);
  });

  it.each(["client_id", "redirect_uri", "resource", "scope", "login_hint", "dpop_jkt", "state", "code_challenge"])(
    "refuses %s, with the flag for it where there is one",
    (name) => {
      expect(() => readAuthorizeParam(`${name}=x`)).toThrowErrorMatchingSnapshot();
    },
  );
});

it("a flag that may be repeated has all of its values", () => {
  expect([collectRepeated("a"), collectRepeated("b", ["a"])]).toEqual([["a"], ["a", "b"]]);
});

const WITHOUT = "without a service: agentauth demo";
const NO_BASE_URL = "agentauth config set base_url <url>";

describe("without a base URL", () => {
  const from = (value: string) => ({ value, source: "the test" });
  const profile = from("default");
  const apiToken = { read: () => "tok", source: "the test" };

  it.each<[string, Parameters<typeof requireBaseUrl>[0], string, string]>([
    [
      "and without a token, both are named in order",
      { profile, baseUrl: undefined, apiToken: undefined, clientCert: undefined },
      "no service is configured: the base URL is not set (AGENTAUTH_BASE_URL), no API token is set (AGENTAUTH_API_TOKEN)",
      `1. ${NO_BASE_URL}; 2. agentauth config set api_token - < token.txt; ${WITHOUT}`,
    ],
    [
      "but with a token, it alone is",
      { profile, baseUrl: undefined, apiToken, clientCert: undefined },
      "no service is configured: the base URL is not set (AGENTAUTH_BASE_URL)",
      `${NO_BASE_URL}; ${WITHOUT}`,
    ],
    [
      "but with a client certificate, it alone is",
      { profile, baseUrl: undefined, apiToken: undefined, clientCert: from("/cert.pem") },
      "no service is configured: the base URL is not set (AGENTAUTH_BASE_URL)",
      `${NO_BASE_URL}; ${WITHOUT}`,
    ],
    [
      "in the profile of the sandbox, there is none",
      { profile: from("sandbox"), baseUrl: undefined, apiToken: undefined, clientCert: undefined },
      "no sandbox is running",
      "agentauth sandbox start",
    ],
  ])("%s", (_what, settings, message, hint) => {
    onSystem({}, "sh");
    expect(() => requireBaseUrl(settings)).toThrow(expect.objectContaining({ code: "usage", message, hint }));
  });
});

it.each([
  ["X-Api-Key", "x-api-key", "tok"],
  ["Authorization: Token", "authorization", "Token tok"],
  ["Authorization:Token", "authorization", "Token tok"],
])("the header of the token is the one that the setting %s names", (value, name, expected) => {
  const headers = new Headers();
  expect(serviceOptions({} as Settings)).toEqual({});
  const settings = { authHeader: { value, source: "the test" } } as Partial<Settings> as Settings;
  serviceOptions(settings).auth?.(headers, "tok");
  expect(headers.get(name)).toBe(expected);
});

it("the token and the order of a list are those of the settings", () => {
  const read = () => "tok";
  const settings = { apiToken: { read, source: "x" }, sorting: { value: "json", source: "x" } };
  expect(serviceOptions(settings as Partial<Settings> as Settings)).toEqual({ token: read, sorting: "json" });
});

const isRoot = process.getuid?.() === 0;
const MCP = "http://127.0.0.1:1/mcp";

/** A folder with settings that run a program and send a private file to another server. */
async function plantedHome() {
  const thief = await startServer((response) => sendJson(response, {}));
  const home = temporaryFolder();
  const ran = join(home, "..", `${home.slice(-6)}-ran`);
  const secret = join(home, "secret");
  writeFileSync(secret, "private", { mode: 0o600 });
  const exec = `exec:touch ${ran}`;
  const planted = {
    default: {
      base_url: thief.origin,
      api_token: exec,
      store: "redis",
      store_url: exec,
      store_keys: exec,
    },
    file: { base_url: thief.origin, api_token: `file:${secret}` },
  };
  writeFileSync(join(home, "config.json"), JSON.stringify({ profiles: planted }));
  return { home, config: join(home, "config.json"), ran, thief };
}

type Planted = Awaited<ReturnType<typeof plantedHome>>;

const UNSAFE: [what: string, spoil: (planted: Planted) => void, isPossible?: boolean][] = [
  ["that others can write", ({ config }) => chmodSync(config, 0o666)],
  ["in a folder that others can write", ({ home }) => chmodSync(home, 0o777)],
  ["of another user", ({ config }) => chownSync(config, 12_345, 12_345), isRoot],
  ["in a folder of another user", ({ home }) => chownSync(home, 12_345, 12_345), isRoot],
];

const COMMANDS = [
  ["status"],
  ["token", MCP, "--no-login"],
  ["logout", "--all"],
  ["logout", MCP],
  ["broker", "--listen", "unix:/nowhere/socket", "--grant", `a=${MCP}`],
  ["devices", "list", "--pool", "p"],
  ["devices", "list", "--pool", "p", "--profile", "file"],
  ["config", "get", "base_url"],
  ["config", "set", "pool", "p"],
  ["store", "health"],
  ["exec", MCP, "--", "true"],
  ["mcp", "tools", MCP],
  ["doctor"],
];

describe.skipIf(ON_WINDOWS)("a settings file", () => {
  it.each(UNSAFE.filter(([, , isPossible = true]) => isPossible))(
    "%s is believed by no command and no client",
    async (_what, spoil) => {
      const planted = await plantedHome();
      spoil(planted);
      const { home, ran, thief } = planted;
      for (const args of COMMANDS) {
        const { code, stdout, stderr } = await runCli(args, { env: { AGENTAUTH_HOME: home } });
        expect([args, code]).toEqual([args, 8]);
        expect(stdout + stderr).toMatch(/\bch(?:mod|own) .*\/f-/);
      }
      vi.stubEnv("AGENTAUTH_HOME", home);
      onTestFinished(() => void vi.unstubAllEnvs());
      for (const build of [createAgentClient, createManagementClient, defaultStore])
        expect(() => build()).toThrow(expect.objectContaining({ code: "store_failed", class: "store" }));
      expect([existsSync(ran), thief.requests.length]).toEqual([false, 0]);
    },
  );

  it("is believed where only this user can change it, also behind a link", async () => {
    const { home, ran, thief } = await plantedHome();
    const linked = join(temporaryFolder(), "home");
    mkdirSync(linked);
    symlinkSync(join(home, "config.json"), join(linked, "config.json"));
    await runCli(["devices", "list", "--pool", "p", "--profile", "file"], { env: { AGENTAUTH_HOME: linked } });
    expect(thief.requests[0]?.headers["authorization"]).toBe("Bearer private");
    await runCli(["devices", "list", "--pool", "p"], { env: { AGENTAUTH_HOME: linked } });
    expect(existsSync(ran)).toBe(true);
  });
});
