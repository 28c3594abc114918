import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect } from "vitest";
import type { DoctorReport } from "../../../../src/cli/commands/doctor/run.js";
import { FORMATS } from "../../../../src/profile/settings.js";
import { type RunOptions, runCli, temporaryFolder, unsafeIn } from "../../../helpers/cli.js";
import { fixedText } from "../../../helpers/fixed-text.js";
import { ON_LINUX } from "../../../helpers/systems.js";
import { testbedTest } from "../../../helpers/testbed-test.js";

const it = testbedTest({ devices: 3 });
let home: string;
beforeEach(() => {
  home = join(temporaryFolder(), "below", "home");
});

function run(args: readonly string[] = [], env: RunOptions["env"] = {}) {
  return runCli(["doctor", ...args], { env: { AGENTAUTH_HOME: home, ...env } });
}

async function report(args: readonly string[] = [], env: RunOptions["env"] = {}) {
  const { code, stdout } = await run(["--json", "--all", ...args], env);
  const { checks, settings } = JSON.parse(stdout) as DoctorReport;
  return {
    code,
    check: (name: string) => checks.find((one) => one.name === name),
    setting: (name: string) => settings.find((one) => one.name === name),
  };
}

function makeHome(mode = 0o700): void {
  mkdirSync(home, { recursive: true });
  chmodSync(home, mode);
}

describe("doctor", () => {
  it("on a fresh machine finds nothing wrong, and changes nothing", async () => {
    const { code, stdout, stderr } = await run();
    expect(code).toBe(0);
    expect(stdout).toMatch(/^agentauth \d+\.\d+\.\d+, Node v/);
    expect(stdout).toContain(`${home} (AGENTAUTH_HOME), does not exist yet`);
    expect(stdout).not.toMatch(/^failed/m);
    expect(stderr).toMatch(/^\d+ checks: 0 failed, .*\nready for tokens; lists need a base_url\n$/);
    expect(existsSync(home)).toBe(false);
  });

  it.each([
    [{ AGENTAUTH_BASE_URL: "https://agentauth.example" }, "ready for tokens and lists"],
    [{ NODE_TLS_REJECT_UNAUTHORIZED: "0", AGENTAUTH_STORE: "cloud" }, "not ready: tls, store"],
  ])("ends with its verdict: %o", async (env, verdict) => {
    expect((await run([], env)).stderr).toContain(`\n${verdict}\n`);
  });

  it.each<[string, string[], Record<string, string>]>([
    ["from nowhere", [], {}],
    ["from flags", ["--timeout", "7", "--retries", "0", "--proxy", "http://u:secret-1@p.example:1"], {}],
    [
      "from the environment",
      [],
      {
        ...{ HTTPS_PROXY: "http://p.example:1", HTTP_PROXY: "http://p.example:2", NO_PROXY: "a.example" },
        ...{ NODE_EXTRA_CA_CERTS: "/nowhere.pem", AGENTAUTH_STORE: "memory" },
      },
    ],
  ])("names every setting that is in force, and where it is from: %s", async (_what, args, env) => {
    const { stdout } = await run(["--json", "--all", ...args], env);
    const { settings } = JSON.parse(stdout) as DoctorReport;
    expect(settings.map(({ name, value, source }) => fixedText(`${name} = ${value} (${source})`))).toMatchSnapshot();
  });

  it("takes the home from the platform where no variable names it", async () => {
    const config = temporaryFolder();
    const { setting } = await report([], { AGENTAUTH_HOME: "", XDG_CONFIG_HOME: config });
    if (ON_LINUX) {
      expect(setting("home")).toEqual({ name: "home", value: join(config, "agentauth"), source: "XDG_CONFIG_HOME" });
    } else {
      expect(setting("home")?.source).not.toBe("AGENTAUTH_HOME");
    }
  });

  it("refuses an address that is none, and a format that is none", async () => {
    expect(await run(["nowhere"])).toMatchObject({ code: 2, stdout: "" });
    expect(await run(["-o", "xml"])).toMatchObject({ code: 2, stdout: "" });
    expect(await run(["--show-secrets"])).toMatchObject({ code: 2, stdout: "" });
  });

  it("prints what jq makes of the report", async () => {
    const { code, stdout } = await run(["--jq", '.checks[] | select(.name == "node").state']);
    expect([code, stdout]).toEqual([0, "ok\n"]);
  });
});

describe("what doctor prints has no secrets", () => {
  const PLANTED = {
    AGENTAUTH_API_TOKEN: "planted-api-token",
    AGENTAUTH_CLIENT_SECRET: "planted-client-secret",
    AGENTAUTH_ID_TOKEN: "planted-id-token",
    AGENTAUTH_FOO: "planted-stranger",
    HTTPS_PROXY: "http://user:planted-proxy@127.0.0.1:9",
    HTTP_PROXY: "planted-user:planted%2Dproxy2@127.0.0.1:9",
  };
  const WRONG = {
    ...PLANTED,
    AGENTAUTH_BASE_URL: "https://user:planted-url@host.example",
    HTTPS_PROXY: "socks5://user:planted-proxy@host.example",
    AGENTAUTH_STORE: "vault",
  };

  it.each([...FORMATS].flatMap((format) => [[format, "right", PLANTED] as const, [format, "wrong", WRONG] as const]))(
    "as %s, with settings that are %s",
    async (format, _what, env) => {
      makeHome();
      const url = "http://127.0.0.1:9/mcp";
      for (const more of [[], ["--online", "--retries", "0", "--debug"], [url, "--debug", "--retries", "0"]]) {
        const { code, stdout, stderr } = await run(["-o", format, ...more], env);
        expect(code).not.toBe(1);
        expect(stdout).not.toBe("");
        expect(stdout + stderr).not.toContain("planted");
        expect(stdout).not.toMatch(/\n {4}at /);
      }
    },
  );

  it("also where the settings file has an address with a password, or a token in clear", async () => {
    makeHome();
    const profiles = (entries: object) => JSON.stringify({ profiles: { default: entries } });
    for (const text of [
      profiles({ base_url: "https://user:planted/pw@host.example" }),
      profiles({ base_url: "user:planted-pw@host.example" }),
      profiles({ api_token: "planted-token" }),
    ]) {
      writeFileSync(join(home, "config.json"), text);
      const { code, stdout, stderr } = await run();
      expect(code).toBe(2);
      expect(stdout + stderr).not.toContain("planted");
    }
  });

  it("has no character that a terminal acts on, whatever the variables hold", async () => {
    const env = { NODE_EXTRA_CA_CERTS: "\u001b[31mx\u202e", NO_PROXY: "a\u0007b", AGENTAUTH_ERRORS: "\u009b1m" };
    const { stdout, stderr } = await run([], env);
    expect(unsafeIn(stdout + stderr)).toEqual([]);
    expect(stdout).toContain("\\e[31mx");
  });
});
