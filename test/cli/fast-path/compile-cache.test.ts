import { chmodSync, chownSync, existsSync, lstatSync, mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { enableCompileCache } from "../../../src/cli/main.js";
import { ON_WINDOWS } from "../../helpers/systems.js";
import { onSystem } from "../../platform/support.js";
import { folder } from "../../store/stores.js";

/** The folders that Node is asked to use. */
function enabled(env: Record<string, string>): string[] {
  const folders: string[] = [];
  enableCompileCache(env, { enableCompileCache: (path) => folders.push(path) });
  return folders;
}

/** An environment whose cache folder is made by `arrange`, and that folder. */
function withFolder(arrange: (path: string) => void) {
  const caches = folder();
  const path = join(caches, "agentauth");
  arrange(path);
  return { path, env: { HOME: folder(), XDG_CACHE_HOME: caches } };
}

function makeFolder(path: string, mode: number): void {
  mkdirSync(path);
  chmodSync(path, mode);
}

describe("the folder of compiled code", () => {
  beforeEach(() => onSystem({ name: "linux" }));

  it.each([
    ["linux", {}, ".cache/agentauth"],
    ["linux", { XDG_CACHE_HOME: "" }, ".cache/agentauth"],
    ["linux", { XDG_CACHE_HOME: "$/caches" }, "caches/agentauth"],
    ["darwin", { XDG_CACHE_HOME: "$/caches" }, "Library/Caches/agentauth"],
    ["win32", {}, "AppData/Local/agentauth-cache"],
    ["win32", { LOCALAPPDATA: "$/local" }, "local/agentauth-cache"],
  ] as const)("is among the user's caches on %s, with %j", (name, set, expected) => {
    onSystem({ name });
    const home = folder();
    const env = Object.fromEntries(Object.entries(set).map(([key, value]) => [key, value.replace("$", home)]));
    expect(enabled({ HOME: home, USERPROFILE: home, ...env })).toEqual([join(home, expected)]);
  });

  it.skipIf(ON_WINDOWS)("is made for its user alone", () => {
    const home = folder();
    const [path = ""] = enabled({ HOME: home });
    expect([join(path, ".."), path].map((one) => statSync(one).mode & 0o777)).toEqual([0o700, 0o700]);
  });

  it.skipIf(ON_WINDOWS).each([
    ["others can write in", (path: string) => makeFolder(path, 0o722)],
    ["others can read", (path: string) => makeFolder(path, 0o755)],
    ["a link stands for", (path: string) => symlinkSync(folder(), path)],
    ["a link to nothing stands for", (path: string) => symlinkSync(`${path}-absent`, path)],
    ["is a file", (path: string) => writeFileSync(path, "")],
  ])("is not used if it is one that %s", (_, arrange) => {
    const { env, path } = withFolder(arrange);
    const before = lstatSync(path).mode;
    expect(enabled(env)).toEqual([]);
    expect(lstatSync(path).mode).toBe(before);
  });

  it.skipIf(ON_WINDOWS)("is not used if another user owns it", () => {
    const { env, path } = withFolder((one) => makeFolder(one, 0o700));
    expect(enabled(env)).toEqual([path]);
    const { uid } = statSync(path);
    // What root owns is not foreign to anybody.
    if (uid === 0) chownSync(path, 1, 1);
    const other = vi.spyOn(process, "getuid").mockReturnValue(uid + 2);
    onTestFinished(() => other.mockRestore());
    expect(enabled(env)).toEqual([]);
  });

  it("is never in the settings folder or in the working folder", () => {
    const home = folder();
    expect(enabled({ HOME: home, AGENTAUTH_HOME: join(home, ".cache") })).toEqual([]);
    expect(enabled({ HOME: home, XDG_CONFIG_HOME: home, XDG_CACHE_HOME: home })).toEqual([]);
    expect(enabled({ HOME: home, XDG_CACHE_HOME: "caches" })).toEqual([]);
    expect([".cache", "agentauth"].filter((name) => existsSync(join(home, name)))).toEqual([]);
  });

  it.each(["NODE_COMPILE_CACHE", "NODE_DISABLE_COMPILE_CACHE"])(
    "is not made where %s says otherwise, or Node has no cache",
    (name) => {
      const home = folder();
      expect(enabled({ HOME: home, [name]: "1" })).toEqual([]);
      enableCompileCache({ HOME: home }, {});
      expect(existsSync(join(home, ".cache"))).toBe(false);
    },
  );

  it("may fail", () => {
    const home = folder();
    writeFileSync(join(home, ".cache"), "a file");
    expect(enabled({ HOME: home })).toEqual([]);
    const refuse = () => {
      throw new Error("no");
    };
    expect(() => enableCompileCache({ HOME: folder() }, { enableCompileCache: refuse })).not.toThrow();
  });
});
