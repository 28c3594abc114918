import { constants, readdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { checkWriting, HOME_CHECKS } from "../../../../src/cli/commands/doctor/home-checks.js";
import { temporaryFolder } from "../../../helpers/folder.js";
import { at, look } from "./support.js";

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
      found: "a file can take the name of another one: logins could be lost",
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

it("a home that is not there is a failure where it cannot be made", () => {
  const folder = temporaryFolder();
  failing("accessSync", "EACCES");
  const home = join(folder, "below", "home");
  expect(look(HOME_CHECKS.home, { home: at(home) })).toEqual({
    state: "failed",
    found: `${home} (default) does not exist, and ${folder} is not writable`,
    hint: "set AGENTAUTH_HOME to a folder that you can write to",
  });
  const asked: unknown[] = [];
  spy.before = (name, [, mode]) => void (name === "accessSync" && asked.push(mode));
  expect(look(HOME_CHECKS.home, { home: at(home) })).toEqual({
    state: "ok",
    found: `${home} (default), does not exist yet: created on first use`,
  });
  expect(asked).toEqual([constants.W_OK | constants.X_OK]);
});
