import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { CONFIG_RUNS } from "../../src/cli/commands/config/run.js";
import type { ConfigOptions } from "../../src/cli/commands/config/setting-input.js";
import { changeConfig } from "../../src/cli/config/change.js";
import { checkSetting, PROFILE_KEYS, type Profile } from "../../src/profile/profile-settings.js";
import { startRun } from "../cli/run-support.js";
import { temporaryFolder } from "../helpers/folder.js";

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

  it("with --show-origin keeps the tab between what decided it and the value", async () => {
    const { io, context } = contextOf(homeWith(odd), true);
    await CONFIG_RUNS.get({ key: "pool", showOrigin: true } as ConfigOptions, context);
    expect(io.out()).toMatch(/^profile default: line 1 of \S+\ta\\e\[31mb/);
  });
});

describe("a setting", () => {
  it.each(Object.entries(PROFILE_KEYS))("says what it is about: %s", (_key, { about }) => {
    expect(about).toMatch(/^[A-Za-z].{9}/);
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

  it("that leaves them as they are writes nothing", async () => {
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
  });
});
