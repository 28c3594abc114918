import { existsSync, readFileSync, statSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { removeOwnToken, storeToken, tokenPath } from "../../../src/cli/config/effective.js";
import { changeConfig } from "../../../src/profile/settings-file.js";
import { temporaryFolder } from "../../helpers/folder.js";

const never = new AbortController().signal;

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
