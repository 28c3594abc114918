import { homedir } from "node:os";
import { normalize, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { homeFolder, locateHome, userFolder } from "../../src/profile/settings.js";
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
    // Outside AppData, which each packaged program sees in another way.
    [
      "default",
      { LOCALAPPDATA: "c", APPDATA: "d", XDG_CONFIG_HOME: "/b", USERPROFILE: "/u" },
      "win32",
      "/u/.agentauth",
    ],
    ["default", { USERPROFILE: "/u", HOME: "/h" }, "win32", "/u/.agentauth"],
    ["AGENTAUTH_HOME", { AGENTAUTH_HOME: "a", USERPROFILE: "/u" }, "win32", resolve("a")],
  ] as const)("comes from %s where %j is set on %s", (source, env, name, value) => {
    onSystem({ name });
    expect(locateHome(env)).toEqual({ source, value: normalize(value) });
    expect(homeFolder(env)).toBe(normalize(value));
  });
});
