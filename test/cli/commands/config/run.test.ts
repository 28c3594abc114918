import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { describe, expect, vi } from "vitest";
import { readHiddenLine } from "../../../../src/cli/commands/config/run.js";
import { tokenPath } from "../../../../src/cli/config/effective.js";
import { readSecretFile } from "../../../../src/profile/secrets.js";
import { writeSandboxState } from "../../../../src/profile/settings-file.js";
import { linesOf, temporaryFolder } from "../../../helpers/cli.js";
import { fixedText } from "../../../helpers/fixed-text.js";
import { ON_WINDOWS } from "../../../helpers/systems.js";
import { onSystem } from "../../../platform/support.js";
import { configTest, modeOf } from "./support.js";

const it = configTest();

describe("settings", () => {
  it("are set, read, listed with their source, and unset", async ({ run, set }) => {
    await set("pool", "pool_x");
    expect(await run(["config", "get", "pool"])).toMatchObject({ code: 0, stdout: "pool_x\n", stderr: "" });
    const rows = JSON.parse((await run(["config", "list", "-o", "json"])).stdout) as {
      key: string;
      value?: string;
      source?: string;
    }[];
    expect(rows.find(({ key }) => key === "pool")).toEqual({
      key: "pool",
      value: "pool_x",
      source: expect.stringMatching(/^profile default: line 6 of /),
    });
    const table = linesOf((await run(["config", "list", "-o", "table"])).stdout);
    expect(table[0]).toMatch(/^SETTING +VALUE +SOURCE$/);
    expect(table.find((line) => line.startsWith("pool "))).toMatch(/^pool +pool_x +profile default: line 6 of /);
    expect(await run(["config", "unset", "pool"])).toMatchObject({
      code: 0,
      stderr: "pool is no longer set in profile default\n",
    });
    expect(await run(["config", "get", "pool"])).toMatchObject({ code: 2, stdout: "" });
    expect(await run(["config", "unset", "pool"])).toMatchObject({
      code: 0,
      stderr: "pool was not set in profile default\n",
    });
  });

  it.for<[string, string[], Record<string, string>]>([
    ["a profile", [], {}],
    ["a profile and the environment", [], { AGENTAUTH_BASE_URL: "https://env.example", AGENTAUTH_STORE: "memory" }],
    ["a token of the environment", [], { AGENTAUTH_API_TOKEN: "tok_0123456789" }],
    ["the running sandbox", ["--profile", "sandbox"], {}],
  ])(
    "are read one by one as config list shows them: of %s",
    async ([_what, flags, env], { testbed, home, run, set }) => {
      const { baseUrl, mcpUrl, ids } = testbed.sandbox;
      await set("base_url", "https://profile.example");
      await run(["config", "set", "api_token", "-"], { stdin: "tok_0123456789\n" });
      writeSandboxState(home, {
        ...{ pid: process.pid, base_url: baseUrl, api_token: "sandbox_token", control_token: "c", mcp_url: mcpUrl },
        ...{ account_id: ids.account, domain_id: ids.domain, pool_id: ids.pool },
      });
      const { stdout } = await run(["config", "list", "--json", ...flags], { env });
      const rows = JSON.parse(stdout) as { key: string; value?: string }[];
      expect(rows.find(({ key }) => key === "base_url")?.value).toMatch(/^http/);
      for (const { key, value } of rows.filter((row) => row.key !== "output")) {
        const got = await run(["config", "get", key, ...flags], { env });
        expect([key, got.code, got.stdout]).toEqual([key, value === undefined ? 2 : 0, value ? `${value}\n` : ""]);
      }
    },
  );

  it("are found with config path", async ({ home, run }) => {
    expect((await run(["config", "path"])).stdout).toBe(`${join(home, "config.json")}\n`);
  });

  it.skipIf(ON_WINDOWS)("can be read by the user alone, whatever the umask", async ({ home, run }) => {
    await run(["config", "set", "pool", "p"]);
    expect([modeOf(home), modeOf(join(home, "config.json"))]).toEqual(["700", "600"]);
  });

  it.for([
    ["base_url", "http://agentauth.example"],
    ["base_url", "https://user:pass-word@agentauth.example"],
    ["api_token", "hunter2-hunter2"],
    ["output", "xml"],
    ["output", "jsn"],
    ["store", "keychain"],
    ["client_cert", ""],
    ["account", ""],
    ["auth_header", "X Key"],
    ["sorting", "jsn"],
    ["basurl", "x"],
    ["__proto__", "x"],
  ] as const)("refuse %s %s", async ([key, value], { home, run }) => {
    const { code, stdout, stderr } = await run(["config", "set", key, value]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).not.toMatch(/hunter2|pass-word/);
    expect(fixedText(stderr)).toMatchSnapshot();
    expect(existsSync(join(home, "config.json"))).toBe(false);
  });

  it.for([
    ["a syntax error", '{\n  "profile": "default",\n}'],
    ["a name that comes twice", '{"profiles": {\n "default": {"pool": "a",\n "pool": "b"}}}'],
    ["an unknown key", '{"profils": {}}'],
    ["an unknown setting", '{"profiles": {"default": {"url": "x"}}}'],
    ["a value of the wrong kind", '{"profiles": {"default": {"pool": 7}}}'],
    ["a value that cannot be", '{"profiles": {"default": {"base_url": "nowhere"}}}'],
    ["a newer schema", '{"schema": 2}'],
    ["a list", "[]"],
    ["a profile of the sandbox's name", '{"profiles": {"sandbox": {}}}'],
    ["a token in clear", '{"profiles": {"default": {"api_token": "hunter2-hunter2"}}}'],
    ["a profile name that is none", '{"profile": "a/b"}'],
    ["profiles that are a list", '{"profiles": []}'],
    ["a profile with a name that is none", '{"profiles": {"a/b": {}}}'],
    ["a profile that is no object", '{"profiles": {"work": 7}}'],
  ] as const)(
    "with %s make every command exit with 2 and name the file",
    async ([, text], { home, run, writeSettings }) => {
      writeSettings(text);
      const [list, set] = [await run(["devices", "list", "--pool", "p"]), await run(["config", "set", "pool", "p"])];
      expect(set).toEqual(list);
      expect([list.code, list.stdout]).toEqual([2, ""]);
      expect(list.stderr).toContain(join(home, "config.json"));
      expect(list.stderr).not.toContain("hunter2");
      expect(fixedText(list.stderr)).toMatchSnapshot();
      expect(readFileSync(join(home, "config.json"), "utf8")).toBe(text);
    },
  );
});

describe("settings that are changed at once", () => {
  it("do not wait for a process that was killed", async ({ home, run, set }) => {
    await set("pool", "p");
    mkdirSync(join(home, "claims"), { recursive: true, mode: 0o700 });
    const holder = { pid: 4_194_000, boot: "another", space: "", started: "1" };
    const claim = { id: "0123456789ab", holder, at: 0, deadline: 0, duration: 10, extend: false };
    const name = createHash("sha256").update("settings file").digest("hex").slice(0, 40);
    writeFileSync(join(home, "claims", `${name}.1.claim`), JSON.stringify(claim), { mode: 0o600 });
    await set("pool", "q");
    expect((await run(["config", "get", "pool"])).stdout).toBe("q\n");
  });
});

describe("config list", () => {
  it("names the flag, the variable, the line of the settings file, or that it is the default", async ({
    home,
    run,
    set,
  }) => {
    await set("pool", "pool_x");
    await set("base_url", "https://profile.example");
    const path = join(home, "config.json");
    const origin = async (key: string, args: string[] = [], env: Record<string, string> = {}) =>
      linesOf((await run(["config", "list", ...args], { env })).stdout).find((line) => line.startsWith(`${key}\t`));
    const flag = "https://flag.example";
    expect(await origin("profile")).toBe(`profile\tdefault\tline 3 of ${path}`);
    expect(await origin("pool")).toBe(`pool\tpool_x\tprofile default: line 6 of ${path}`);
    expect(await origin("store")).toBe("store\tfile\tdefault");
    expect(await origin("store", [], { AGENTAUTH_STORE: "memory" })).toBe("store\tmemory\tAGENTAUTH_STORE");
    expect(await origin("base_url", ["--base-url", flag])).toBe(`base_url\t${flag}\t--base-url`);
    const secrets = { AGENTAUTH_API_TOKEN: "tok_0123456789", AGENTAUTH_STORE_URL: "redis://u:planted@h" };
    expect(await origin("api_token", [], secrets)).toBe("api_token\t(set)\tAGENTAUTH_API_TOKEN");
    expect(await origin("store_url", [], secrets)).toBe("store_url\t(set)\tAGENTAUTH_STORE_URL");
    expect(await origin("account")).toBe("account\t\t");
  });
});

describe("what comes first", () => {
  it("a flag, then the environment, then the profile", async ({ run, set }) => {
    await set("base_url", "https://profile.example");
    await set("pool", "pool_p");
    await set("base_url", "https://other.example", "--profile", "other");
    const sourceOf = async (args: string[], env: Record<string, string>, key: string) => {
      const { stdout } = await run(["config", "list", "-o", "json", ...args], { env });
      const rows = JSON.parse(stdout) as { key: string; value?: string; source?: string }[];
      const row = rows.find((one) => one.key === key);
      return [row?.value, row?.source?.split(":")[0]];
    };
    const env = { AGENTAUTH_BASE_URL: "https://env.example" };
    expect(await sourceOf(["--base-url", "https://flag.example"], env, "base_url")).toEqual([
      "https://flag.example",
      "--base-url",
    ]);
    expect(await sourceOf([], env, "base_url")).toEqual(["https://env.example", "AGENTAUTH_BASE_URL"]);
    expect(await sourceOf([], { AGENTAUTH_BASE_URL: "" }, "base_url")).toEqual([
      "https://profile.example",
      "profile default",
    ]);
    expect(await sourceOf([], { AGENTAUTH_PROFILE: "other" }, "base_url")).toEqual([
      "https://other.example",
      "profile other",
    ]);
    expect(await sourceOf(["--profile", "default"], { AGENTAUTH_PROFILE: "other" }, "base_url")).toEqual([
      "https://profile.example",
      "profile default",
    ]);
    expect(await sourceOf([], {}, "output")).toEqual(["json", "--output"]);
  });

  it("the profile's format, unless a flag names one", async ({ testbed, run, set }) => {
    await set("base_url", testbed.sandbox.baseUrl);
    await set("pool", testbed.sandbox.ids.pool);
    await set("output", "ndjson");
    const env = { AGENTAUTH_API_TOKEN: testbed.sandbox.apiToken };
    const first = await run(["devices", "list", "--limit", "1", "-q"], { env });
    expect(JSON.parse(first.stdout)).toMatchObject({ type: "device" });
    expect((await run(["devices", "list", "-o", "id"], { env })).stdout.split("\n")).toHaveLength(6);
  });
});

describe("a setting", () => {
  it.for<[string, string[], Record<string, string>]>([
    ["--profile", ["--profile", "a/b"], {}],
    ["AGENTAUTH_PROFILE", [], { AGENTAUTH_PROFILE: "a/b" }],
  ])("is refused for a name from %s that no profile can have", async ([source, flags, env], { run }) => {
    expect(await run(["config", "set", "pool", "p", ...flags], { env })).toMatchObject({
      code: 2,
      stderr: `error: ${source} "a/b" is not a valid profile name\nhint: use letters, digits, "-", "_" and "."\n`,
    });
  });

  it("that names a file is stored as an absolute path, with ~ as the user's folder", async ({ run }) => {
    const user = temporaryFolder();
    await run(["config", "set", "client_cert", "~/cert.pem"], { env: { HOME: user } });
    expect((await run(["config", "get", "client_cert"])).stdout).toBe(`${join(user, "cert.pem")}\n`);
  });

  it("is printed with its control characters escaped on a terminal alone", async ({ run, writeSettings }) => {
    writeSettings(JSON.stringify({ profiles: { default: { pool: "a\u001b[31m" } } }));
    expect((await run(["config", "get", "pool"])).stdout).toBe("a\u001b[31m\n");
    expect((await run(["config", "get", "pool"], { tty: true })).stdout).toBe("a\\e[31m\n");
  });

  it("refuses the profile of the sandbox", async ({ run }) => {
    const { code, stderr } = await run(["config", "set", "pool", "p", "--profile", "sandbox"]);
    expect([code, stderr]).toEqual([
      2,
      "error: the profile sandbox is reserved for the running sandbox and cannot be changed\n" +
        "hint: select another profile with --profile\n",
    ]);
  });

  it.for([
    ["https://issuer.example/path?x=1"],
    ["https://issuer.example/path#part"],
    ["https://user:word@issuer.example"],
    ["https://user@issuer.example"],
    ["https://:word@issuer.example"],
    ["http://issuer.example"],
    ["issuer.example"],
  ] as const)("refuses the issuer %s", async ([value], { run }) => {
    const { code, stderr } = await run(["config", "set", "issuer", value]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("must be an https address without a query")]);
    expect(fixedText(stderr)).toMatchSnapshot();
  });

  it.for(["https://issuer.example/path", "http://127.0.0.1:9000"])(
    "accepts the issuer %s",
    async (value, { run, set }) => {
      await set("issuer", value);
      expect((await run(["config", "get", "issuer"])).stdout).toBe(`${value}\n`);
    },
  );

  it("has no line of a settings file where there is no file", async ({ run }) => {
    const { code, stdout } = await run(["config", "list", "-o", "json"]);
    expect([code, JSON.parse(stdout)[0]]).toEqual([0, { key: "profile", value: "default", source: "default" }]);
  });
});

describe("settings that cannot be", () => {
  it.for(["", "\0\0"])(
    "holds nothing (%j) is an error with its remedy, and is replaced by config set",
    async (text, { home, run, writeSettings }) => {
      const file = join(home, "config.json");
      writeSettings(text);
      const { code, stderr } = await run(["config", "list"]);
      expect([code, stderr]).toEqual([2, expect.stringContaining(`\nhint: move it away: mv ${file} ${file}.broken\n`)]);
      const set = await run(["config", "set", "pool", "p"]);
      expect(set).toMatchObject({
        code: 0,
        stderr: `warning: the file ${file} held nothing, and counts as missing: it is kept as ${file}.broken\npool is set in profile default\n`,
      });
      expect(readFileSync(`${file}.broken`, "utf8")).toBe(text);
      expect((await run(["config", "get", "pool"])).stdout).toBe("p\n");
    },
  );

  it("read are an error of the store", async ({ home, run }) => {
    mkdirSync(join(home, "config.json"), { recursive: true });
    const { code, stderr } = await run(["config", "list"]);
    expect([code, stderr]).toEqual([8, expect.stringContaining("config.json is not an ordinary file")]);
  });
});

describe("text that Windows wrote", () => {
  it("has its byte order mark left out, on stdin, in the settings and in a token's file", async ({ home, run }) => {
    expect((await run(["config", "set", "api_token", "-"], { stdin: "\ufefftok_0123456789\r\n" })).code).toBe(0);
    expect(readFileSync(tokenPath(home, "default"), "utf8")).toBe("tok_0123456789\n");
    const path = join(home, "config.json");
    writeFileSync(path, `\ufeff${readFileSync(path, "utf8")}`);
    expect((await run(["config", "get", "api_token"])).code).toBe(0);
    writeFileSync(tokenPath(home, "default"), "\ufefftok_0123456789\r\n");
    expect(readSecretFile(tokenPath(home, "default"))).toBe("tok_0123456789");
  });

  it("is named where it is UTF-16", async ({ home, run }) => {
    mkdirSync(home, { recursive: true, mode: 0o700 });
    writeFileSync(join(home, "config.json"), Buffer.from("\ufeff{}", "utf16le"));
    const { code, stderr } = await run(["config", "list"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("config.json is UTF-16\nhint: save it as UTF-8")]);
  });

  it.for([
    ["win32", true],
    ["linux", false],
  ] as const)("names the user's folder by ~\\ on Windows alone: %s", async ([name, isHome], { run, set }) => {
    onSystem({ name });
    await set("client_cert", "~\\x.pem");
    expect((await run(["config", "get", "client_cert"])).stdout.includes("~")).toBe(!isHome);
  });
});

describe("the API token from a terminal", () => {
  it("is asked for", async ({ run }) => {
    const { code, stderr } = await run(["config", "set", "api_token", "-"], {
      tty: { stdin: true },
      stdin: "tok_0123456789\n",
    });
    expect([code, stderr]).toEqual([
      0,
      "paste the API token, which is not shown, then press Enter\napi_token is set in profile default\n",
    ]);
  });

  it.for<[string, string[], Record<string, string>]>([
    ["--no-input", ["--no-input"], {}],
    ["AGENTAUTH_NO_INPUT", [], { AGENTAUTH_NO_INPUT: "1" }],
  ])("is not asked for with %s", async ([, flags, env], { run }) => {
    expect(await run(["config", "set", "api_token", "-", ...flags], { env, tty: { stdin: true } })).toMatchObject({
      code: 2,
      stderr:
        "error: the API token must come from stdin, which is a terminal, and prompts are disabled\n" +
        "hint: agentauth config set api_token - < token.txt\n",
    });
  });
});

const never = new AbortController().signal;

describe("a hidden line", () => {
  it("ends with Enter, though the input stays open", async () => {
    const stream = new PassThrough();
    stream.write("tok_0123456789\rnot read");
    expect(await readHiddenLine({ stream }, () => {}, never)).toBe("tok_0123456789");
    expect(stream.isPaused()).toBe(true);
  });

  it("ends with the input", async () => {
    const stream = new PassThrough();
    stream.end();
    expect(await readHiddenLine({ stream }, () => {}, never)).toBe("");
  });

  it("reports Ctrl-C, and ends by the signal", async () => {
    const stream = new PassThrough();
    const controller = new AbortController();
    const onInterrupt = vi.fn(() => controller.abort(new Error("interrupted")));
    stream.write("tok\u0003");
    await expect(readHiddenLine({ stream }, onInterrupt, controller.signal)).rejects.toThrow();
    expect(onInterrupt).toHaveBeenCalledTimes(1);
  });
});
