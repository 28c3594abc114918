import { readdirSync, renameSync } from "node:fs";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { checkWriting } from "../../../../src/cli/commands/doctor/store-checks.js";
import { temporaryFolder } from "../../../helpers/folder.js";

const spy = vi.hoisted(() => ({ before: (_name: string, _args: readonly unknown[]) => {} }));

vi.mock("node:fs", async (original: () => Promise<typeof import("node:fs")>) => {
  const { spiedFs } = await import("../../../helpers/spied-fs.js");
  return spiedFs(await original(), (name, args) => spy.before(name, args));
});

beforeEach(() => {
  spy.before = () => {};
});

/** Fails each call of a function of `node:fs`. */
function failing(function_: string, code: string): void {
  spy.before = (name) => {
    if (name === function_) throw Object.assign(new Error(code), { code });
  };
}

describe("writing", () => {
  it("says that each login is a folder where hard links are refused", () => {
    const home = temporaryFolder();
    failing("linkSync", "EPERM");
    expect(checkWriting(home)).toEqual({
      state: "ok",
      found: "files can be written; there are no hard links, so each login is a folder",
    });
    expect(readdirSync(home)).toEqual([]);
  });

  it("fails where a file takes the name of another one", () => {
    const home = temporaryFolder();
    // As a link that replaces the file with that name.
    spy.before = (name, [, to]) => {
      if (name === "linkSync" && readdirSync(String(to).replace(/[^/\\]+$/, "")).includes("probe")) {
        renameSync(String(to), `${to}.old`);
      }
    };
    expect(checkWriting(home)).toMatchObject({
      state: "failed",
      found: "rename over an existing file succeeds here, so two processes may overwrite each other",
      hint: expect.stringContaining("AGENTAUTH_HOME"),
    });
    expect(readdirSync(home)).toEqual([]);
  });

  it.each([
    ["ENOSPC", "free some disk space"],
    ["EDQUOT", "free some disk space"],
    ["EROFS", "set AGENTAUTH_HOME to a folder that you can write to"],
  ])("that fails with %s says what helps", (code, hint) => {
    const home = temporaryFolder();
    failing("openSync", code);
    expect(checkWriting(home)).toEqual({ state: "failed", found: `${home} is not writable (${code})`, hint });
    spy.before = () => {};
    expect(readdirSync(home)).toEqual([]);
  });
});
