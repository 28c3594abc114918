import { userInfo } from "node:os";
import { join, normalize, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { expandUserFolder, findHome, homeFolder, isWithin, userFolder } from "../../src/profile/settings.js";
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
