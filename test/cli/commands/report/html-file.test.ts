import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { devNull } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { checkHtmlFile, writeHtmlFile } from "../../../../src/cli/commands/report/html-file.js";
import type { AgentAuthError } from "../../../../src/errors.js";
import { temporaryFolder } from "../../../helpers/folder.js";
import { ON_WINDOWS } from "../../../helpers/systems.js";

const spy = vi.hoisted(() => ({ before: (_name: string, _args: readonly unknown[]) => {} }));

vi.mock("node:fs", async (original: () => Promise<typeof import("node:fs")>) => {
  const { spiedFs } = await import("../../../helpers/spied-fs.js");
  return spiedFs(await original(), (name, args) => spy.before(name, args));
});

beforeEach(() => {
  spy.before = () => {};
});

describe("the file of a page", () => {
  it("is written whole, for everyone to read, and leaves nothing beside it", () => {
    const folder = temporaryFolder();
    const path = join(folder, "out.html");
    checkHtmlFile(path, false);
    writeHtmlFile(path, "page", false);
    expect(readFileSync(path, "utf8")).toBe("page");
    expect(statSync(path).mode & 0o777).toBe(0o644 & ~process.umask());
    expect(readdirSync(folder)).toEqual(["out.html"]);
  });

  it("takes the place of no other file, not even of one that has just been created", () => {
    const folder = temporaryFolder();
    const path = join(folder, "out.html");
    checkHtmlFile(path, false);
    writeFileSync(path, "somebody's");
    for (const attempt of [() => checkHtmlFile(path, false), () => writeHtmlFile(path, "page", false)]) {
      expect(attempt).toThrow(
        expect.objectContaining({ class: "usage", message: expect.stringMatching(/already exists$/) }),
      );
    }
    expect([readFileSync(path, "utf8"), readdirSync(folder)]).toEqual(["somebody's", ["out.html"]]);
  });

  it("takes the place of another one with --force, and of a link but not of what it leads to", () => {
    const folder = temporaryFolder();
    const path = join(folder, "out.html");
    writeFileSync(join(folder, "other"), "somebody's");
    symlinkSync("other", path);
    checkHtmlFile(path, true);
    writeHtmlFile(path, "page", true);
    expect([readFileSync(path, "utf8"), readFileSync(join(folder, "other"), "utf8")]).toEqual(["page", "somebody's"]);
  });

  it("is refused by name before anything is read where it cannot be", () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, "sub"));
    writeFileSync(join(folder, "file"), "");
    const refused = (path: string) => {
      try {
        checkHtmlFile(path, true);
      } catch (error) {
        const { message, hint } = error as AgentAuthError;
        return [message, hint].map((text) => text?.replaceAll(folder, ""));
      }
      return "taken";
    };
    const other = "give another file, or - for standard output";
    expect(refused(join(folder, "sub"))).toEqual([
      '--html "/sub" is a folder',
      `give a file: --html ${join("/sub", "report.html")}`,
    ]);
    if (!ON_WINDOWS) expect(refused(devNull)).toEqual(['--html "/dev/null" is not a file', other]);
    expect(refused("")).toEqual(['--html "" is not a file name', "give a file, or - for standard output"]);
    expect(refused(join(folder, "gone", "out.html"))).toEqual([
      '--html "/gone/out.html" is in a folder that does not exist',
      other,
    ]);
    expect(refused(join(folder, "file", "out.html"))).toEqual([
      '--html "/file/out.html" is in a folder that is a file',
      other,
    ]);
    spy.before = (name) => {
      if (name === "accessSync") throw Object.assign(new Error("no"), { code: "EACCES" });
    };
    expect(refused(join(folder, "out.html"))).toEqual(['--html "/out.html" cannot be written (EACCES)', other]);
    spy.before = (name) => {
      if (name === "accessSync") throw new Error("no");
    };
    expect(refused(join(folder, "out.html"))).toEqual(['--html "/out.html" cannot be written ()', other]);
  });

  it("is not made where the disk is full, and what was there stays", () => {
    const folder = temporaryFolder();
    const path = join(folder, "out.html");
    writeFileSync(path, "before");
    spy.before = (name) => {
      if (name === "renameSync") throw Object.assign(new Error("full"), { code: "ENOSPC" });
    };
    expect(() => writeHtmlFile(path, "page", true)).toThrow(
      expect.objectContaining({
        class: "store",
        message: expect.stringContaining(`the report cannot be written to "${path}"`),
        hint: "check the disk of the file, or give - for standard output",
      }),
    );
    expect([readFileSync(path, "utf8"), readdirSync(folder)]).toEqual(["before", ["out.html"]]);
  });

  it("has its name only once it is whole, also without --force", () => {
    const path = join(temporaryFolder(), "out.html");
    const written: unknown[] = [];
    spy.before = (name, [target, , options]) => void (name === "writeFileSync" && written.push(target, options));
    writeHtmlFile(path, "page", false);
    expect(written).toEqual([expect.stringMatching(/\.tmp$/), { flag: "wx", mode: 0o644, flush: true }]);
  });

  it("is written where the file system has no hard links, and still takes the place of no other", () => {
    const folder = temporaryFolder();
    spy.before = (name) => {
      if (name === "linkSync") throw Object.assign(new Error("no links"), { code: "EPERM" });
    };
    writeHtmlFile(join(folder, "out.html"), "page", false);
    expect(readFileSync(join(folder, "out.html"), "utf8")).toBe("page");
    expect(() => writeHtmlFile(join(folder, "out.html"), "other", false)).toThrow(/already exists$/);
    expect([readFileSync(join(folder, "out.html"), "utf8"), readdirSync(folder)]).toEqual(["page", ["out.html"]]);
  });
});
