import { chmodSync, mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { ACCESS_TEXT, classifyAccess, homeAccess, repairHome } from "../../../src/cli/config/home-access.js";
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
