import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { changeConfig, removeOwnToken, storeToken, tokenPath } from "../../../src/cli/config/change.js";
import { temporaryFolder } from "../../helpers/folder.js";

const never = new AbortController().signal;

describe("a change of the settings file", () => {
  it("is written, with the folder, unless there is none", async () => {
    const home = join(temporaryFolder(), "home");
    await changeConfig(home, () => undefined, never);
    expect([readdirSync(home).includes("config.json"), statSync(home).mode & 0o777]).toEqual([false, 0o700]);
    await changeConfig(home, (config) => ({ ...config, profile: "work" }), never);
    expect(JSON.parse(readFileSync(join(home, "config.json"), "utf8"))).toMatchObject({ profile: "work" });
  });

  it("comes after another one that is under way", async () => {
    const home = temporaryFolder();
    const add = (name: string) =>
      changeConfig(home, (config) => ({ ...config, profiles: { ...config.profiles, [name]: { pool: name } } }), never);
    await Promise.all(["a", "b", "c"].map(add));
    const { profiles } = JSON.parse(readFileSync(join(home, "config.json"), "utf8"));
    expect(Object.keys(profiles).sort()).toEqual(["a", "b", "c"]);
  });

  it("is not begun with a file that is broken, and ends with the signal", async () => {
    const home = join(temporaryFolder(), "home");
    mkdirSync(home);
    writeFileSync(join(home, "config.json"), "{");
    await expect(changeConfig(home, (config) => config, never)).rejects.toMatchObject({ code: "usage" });
    expect(readdirSync(home)).toEqual(["config.json"]);
    const ended = AbortSignal.abort(new Error("enough"));
    await expect(changeConfig(temporaryFolder(), (config) => config, ended)).rejects.toThrow();
  });
});

describe("the file of a token", () => {
  it("has a name that no two profiles share, and that no system takes for a device", () => {
    const names = ["work", "Work", "con", "../x"].map((profile) => tokenPath("/home", profile));
    expect(new Set(names).size).toBe(4);
    for (const name of names) expect(name).toMatch(/^[/\\]home[/\\]tokens[/\\][\da-f]{40}$/);
  });

  it("is removed with its profile, unless it is the user's or another profile has it", async () => {
    const home = temporaryFolder();
    const reference = storeToken(home, "work", "tok");
    const path = tokenPath(home, "work");
    expect([reference, readFileSync(path, "utf8"), statSync(path).mode & 0o777]).toEqual([
      `file:${path}`,
      "tok\n",
      0o600,
    ]);
    removeOwnToken(home, "work", undefined);
    removeOwnToken(home, "work", "file:/elsewhere");
    removeOwnToken(home, "other", reference);
    expect(existsSync(path)).toBe(true);
    await changeConfig(home, (config) => ({ ...config, profiles: { copy: { api_token: reference } } }), never);
    removeOwnToken(home, "work", reference);
    expect(existsSync(path)).toBe(true);
    await changeConfig(home, (config) => ({ ...config, profiles: { copy: { api_token: "env:X" } } }), never);
    removeOwnToken(home, "work", reference);
    expect(existsSync(path)).toBe(false);
    removeOwnToken(home, "work", reference);
  });
});
