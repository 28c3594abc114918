import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { changeConfig } from "../../src/profile/change-config.js";
import { temporaryFolder } from "../helpers/folder.js";

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
