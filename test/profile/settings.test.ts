import { mkdirSync } from "node:fs";
import { homedir } from "node:os";
import { join, normalize, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { homeFolder, locateHome, userFolder } from "../../src/profile/settings.js";
import { temporaryFolder } from "../helpers/folder.js";
import { onSystem } from "../platform/support.js";

describe("the folder of the user", () => {
  it.each([
    ["linux", "/home/ada"],
    ["darwin", "/home/ada"],
    ["win32", "C:\\Users\\ada"],
  ] as const)("on %s is what its variable says", (name, folder) => {
    onSystem({ name });
    expect(userFolder({ HOME: "/home/ada", USERPROFILE: "C:\\Users\\ada" })).toBe(folder);
    expect(userFolder({})).toBe(homedir());
  });
});

describe("the home folder", () => {
  it.each([
    ["AGENTAUTH_HOME", { AGENTAUTH_HOME: "a", XDG_CONFIG_HOME: "/b" }, "linux", resolve("a")],
    ["XDG_CONFIG_HOME", { XDG_CONFIG_HOME: "/b", HOME: "/h" }, "linux", "/b/agentauth"],
    ["default", { APPDATA: "c", HOME: "/h" }, "linux", "/h/.config/agentauth"],
    ["default", { XDG_CONFIG_HOME: "", HOME: "/h" }, "linux", "/h/.config/agentauth"],
    ["default", { XDG_CONFIG_HOME: "/b", HOME: "/h" }, "darwin", "/h/Library/Application Support/agentauth"],
    ["LOCALAPPDATA", { LOCALAPPDATA: "c", APPDATA: "d", XDG_CONFIG_HOME: "/b" }, "win32", "c/agentauth"],
    ["default", { USERPROFILE: "/u", HOME: "/h" }, "win32", "/u/AppData/Local/agentauth"],
  ] as const)("comes from %s where %j is set on %s", (source, env, name, value) => {
    onSystem({ name });
    expect(locateHome(env)).toEqual({ source, value: normalize(value) });
    expect(homeFolder(env)).toBe(normalize(value));
  });

  it("files are in the local profile, also beside a folder in the roaming one", () => {
    onSystem({ name: "win32" });
    const folder = temporaryFolder();
    const env = { LOCALAPPDATA: join(folder, "Local"), APPDATA: join(folder, "Roaming") };
    const local = { value: join(folder, "Local", "agentauth"), source: "LOCALAPPDATA" };
    mkdirSync(join(folder, "Roaming", "agentauth"), { recursive: true });
    expect(locateHome(env)).toEqual(local);
  });
});
