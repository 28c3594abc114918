import { chmodSync, mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  ACCESS_TEXT,
  classifyAccess,
  firstSteps,
  homeAccess,
  repairHome,
} from "../../../src/cli/config/home-access.js";
import { linesOf, runCli, temporaryFolder } from "../../helpers/cli.js";
import { ON_WINDOWS } from "../../helpers/systems.js";
import { folder } from "../../store/stores.js";

const modeOf = (path: string) => statSync(path).mode & 0o777;

/** A folder as we make it, with a mode that was set later. */
function home(mode: number): string {
  const path = folder();
  mkdirSync(join(path, "grants"));
  writeFileSync(join(path, "config.json"), "{}");
  chmodSync(path, mode);
  return path;
}

describe.skipIf(ON_WINDOWS)("the repair of a folder that others can read", () => {
  it("makes one that we made private again", () => {
    const path = home(0o755);
    expect([repairHome(path), modeOf(path), repairHome(path)]).toEqual([true, 0o700, false]);
  });

  it("leaves one alone that holds anything else, or nothing", () => {
    const shared = home(0o755);
    writeFileSync(join(shared, "notes.txt"), "");
    const empty = folder();
    chmodSync(empty, 0o755);
    for (const path of [shared, empty]) expect([repairHome(path), modeOf(path)]).toEqual([false, 0o755]);
  });

  it("leaves one alone that others can write in, and one that a link stands for", () => {
    const open = home(0o777);
    expect([repairHome(open), modeOf(open)]).toEqual([false, 0o777]);
    const linked = home(0o755);
    const link = join(folder(), "link");
    symlinkSync(linked, link);
    expect([repairHome(link), modeOf(linked)]).toEqual([false, 0o755]);
  });

  it.each(
    "config.json sandbox.json agent-sessions.json grants clients bindings claims pending tokens logins run".split(" "),
  )("knows %s for one of ours", (name) => {
    const path = folder();
    mkdirSync(join(path, name));
    chmodSync(path, 0o755);
    expect([repairHome(path), modeOf(path)]).toEqual([true, 0o700]);
  });

  it("does nothing where there is no folder", () => {
    expect(repairHome(join(folder(), "absent"))).toBe(false);
  });
});

describe.skipIf(ON_WINDOWS)("the access to a folder", () => {
  const mine = process.getuid?.() ?? 0;
  it.each([
    [{ uid: mine, mode: 0o700 }, "private"],
    [{ uid: mine, mode: 0o750 }, "readable"],
    [{ uid: mine, mode: 0o770 }, "writable"],
    [{ uid: mine + 1, mode: 0o700 }, "foreign"],
  ] as const)("%j: %s", (stat, access) => {
    expect(classifyAccess(stat)).toBe(access);
  });

  it.each([
    [{ uid: 0, mode: 0o700 }, "private"],
    [{ uid: mine, mode: 0o720 }, "writable"],
    [{ uid: mine, mode: 0o702 }, "writable"],
    [{ uid: mine, mode: 0o710 }, "readable"],
    [{ uid: mine, mode: 0o701 }, "readable"],
    [{ uid: mine, mode: 0o704 }, "readable"],
  ] as const)("%j: %s, by each of its bits", (stat, access) => {
    expect(classifyAccess(stat)).toBe(access);
  });

  it("is known of one that is there, and of one that is not", () => {
    const path = home(0o700);
    expect([homeAccess(path), homeAccess(join(path, "absent"))]).toEqual(["private", "absent"]);
  });

  it("is said in words", () => {
    expect(ACCESS_TEXT).toEqual({
      private: "readable by you alone",
      unchecked: "agentauth doctor shows who can read it",
      readable: "can be read by others",
      writable: "can be changed by others",
      foreign: "belongs to another user",
      absent: "does not exist yet",
    });
  });

  it("is not known of one out of reach", () => {
    const file = join(folder(), "file");
    writeFileSync(file, "");
    expect(homeAccess(join(file, "below"))).toBeUndefined();
  });
});

const run = (args: readonly string[], home: string, env: Record<string, string> = {}) =>
  runCli(args, { env: { AGENTAUTH_HOME: home, ...env } });

describe("the first steps", () => {
  it("are printed beside the help where nothing is set up, and leave a line of 24 for the prompt", async () => {
    const home = join(temporaryFolder(), "home");
    for (const columns of ["80", "100"]) {
      const { code, stdout, stderr } = await run([], home, { COLUMNS: columns });
      expect(code).toBe(0);
      expect(stdout).toMatch(/^Usage: agentauth/);
      expect(stdout).toContain("agentauth login <mcp_url>");
      for (const command of ["agentauth demo", "agentauth config set base_url"]) expect(stderr).toContain(command);
      // The first steps begin with an empty line.
      expect(linesOf(stdout).length + 1 + linesOf(stderr).length).toBeLessThanOrEqual(23);
    }
  });

  it("are not printed for --help, with a setting, or with a service in the environment", async () => {
    const home = join(temporaryFolder(), "home");
    expect((await run(["--help"], home)).stderr).toBe("");
    expect((await run([], home, { AGENTAUTH_BASE_URL: "https://agentauth.example" })).stderr).toBe("");
    await run(["config", "set", "pool", "p"], home);
    expect((await run([], home)).stderr).toBe("");
  });

  it("are two lines, unless there are settings or logins, or a folder of them that cannot be read", () => {
    const steps =
      "Nothing is set up here yet. Without an account: agentauth demo\nFor lists of a service: agentauth config set base_url <url>";
    const of = (arrange: (home: string) => void, env: Record<string, string> = {}) => {
      const home = temporaryFolder();
      arrange(home);
      return firstSteps({ AGENTAUTH_HOME: home, ...env });
    };
    expect(of(() => {})).toBe(steps);
    expect(of(() => {}, { AGENTAUTH_BASE_URL: "" })).toBe(steps);
    expect(of(() => {}, { AGENTAUTH_BASE_URL: "https://a.example" })).toBeUndefined();
    expect(of((home) => mkdirSync(join(home, "grants")))).toBe(steps);
    expect(of((home) => mkdirSync(join(home, "grants", "a"), { recursive: true }))).toBeUndefined();
    expect(of((home) => writeFileSync(join(home, "grants"), ""))).toBeUndefined();
    expect(of((home) => writeFileSync(join(home, "config.json"), "{}"))).toBeUndefined();
  });
});
