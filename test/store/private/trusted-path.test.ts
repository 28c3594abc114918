import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import type { AgentAuthError } from "../../../src/errors.js";
import { pasting } from "../../../src/redact.js";
import { readTrustedFile, resolveTrusted, writeTrustedFile } from "../../../src/store/private/private-file.js";
import { temporaryFolder } from "../../helpers/folder.js";
import { ON_WINDOWS } from "../../helpers/systems.js";
import { onSystem } from "../../platform/support.js";

const OTHER = 12_345;
const isRoot = process.getuid?.() === 0;

/** A file two folders below one of the test, and the folders from the outermost in. */
function made(): { path: string; folders: [string, string, string] } {
  const outer = realpathSync(temporaryFolder());
  const folders: [string, string, string] = [outer, join(outer, "a b"), join(outer, "a b", "home")];
  mkdirSync(folders[2], { recursive: true });
  const path = join(folders[2], "config.json");
  writeFileSync(path, "text", { mode: 0o644 });
  return { path, folders };
}

function failure(path: string): AgentAuthError {
  try {
    readTrustedFile(path);
  } catch (error) {
    return error as AgentAuthError;
  }
  throw new Error("the file was read");
}

describe.skipIf(ON_WINDOWS)("a file that only its user and root can change", () => {
  it("is read, behind links too; a missing one is none", () => {
    const { path, folders } = made();
    const link = join(folders[1], "link");
    symlinkSync("home/../home/./config.json", link);
    symlinkSync(folders[1], join(folders[0], "folder"));
    expect([path, link, join(folders[0], "folder", "link")].map((one) => readTrustedFile(one))).toEqual([
      ...["text", "text", "text"],
    ]);
    expect(resolveTrusted(join(folders[0], "folder", "link"))).toBe(path);
    symlinkSync("nothing/at/all", join(folders[0], "dangling"));
    for (const missing of ["dangling", "nothing", "nothing/below"])
      expect(readTrustedFile(join(folders[0], missing))).toBeUndefined();
  });

  it("is written where the link leads, and the link stays", () => {
    const { path, folders } = made();
    const link = join(folders[0], "link");
    symlinkSync(path, link);
    writeTrustedFile(link, "other");
    expect([readTrustedFile(path), readTrustedFile(link)]).toEqual(["other", "other"]);
    chmodSync(folders[1], 0o777);
    expect(() => writeTrustedFile(link, "third")).toThrow(expect.objectContaining({ code: "store_failed" }));
  });

  it.each(["a loop of links", "a path below a file", "a pipe", "a large file"])("is not %s", (what) => {
    const { path, folders } = made();
    rmSync(path);
    if (what.startsWith("a loop")) symlinkSync(path, path);
    else if (what === "a pipe") execFileSync("mkfifo", [path]);
    else writeFileSync(path, what === "a large file" ? "x".repeat(2 ** 20 + 1) : "");
    expect(failure(what.includes("below") ? join(path, "x") : path)).toMatchObject({
      code: "store_failed",
      class: "store",
      message: expect.stringContaining(folders[2]),
    });
  });

  describe("is refused where others can write, and the command of the hint repairs it:", () => {
    it.each([
      ["the file", 0o666],
      ["the file", 0o620],
      ["its folder", 0o777],
      ["its folder", 0o775],
      ["the folder above", 0o707],
      ["the outermost folder", 0o772],
    ])("%s with mode %o", (what, mode) => {
      const { path, folders } = made();
      const target =
        what === "the file" ? path : folders[["the outermost folder", "the folder above", "its folder"].indexOf(what)];
      chmodSync(target ?? "", mode);
      const link = join(realpathSync(temporaryFolder()), "link");
      symlinkSync(path, link);
      for (const way of [path, link]) {
        const { code, message, hint = "" } = failure(way);
        expect([code, hint]).toEqual(["store_failed", expect.stringMatching(/^chmod go-w /)]);
        expect(message).toContain(`can be written by others (mode 0${mode.toString(8)}, owner: you)`);
      }
      execFileSync("sh", ["-c", failure(path).hint ?? ""]);
      expect([readTrustedFile(path), readTrustedFile(link)]).toEqual(["text", "text"]);
    });

    it("the folder of a link on the way", () => {
      const { path, folders } = made();
      const shared = join(folders[0], "shared");
      mkdirSync(shared);
      chmodSync(shared, 0o777);
      symlinkSync(path, join(shared, "second"));
      symlinkSync("shared/second", join(folders[0], "first"));
      expect(failure(join(folders[0], "first"))).toMatchObject({ message: expect.stringContaining(shared) });
    });
  });

  it("may be in a sticky folder, where others can add names alone", () => {
    const { path, folders } = made();
    chmodSync(folders[1], 0o1777);
    expect(readTrustedFile(path)).toBe("text");
  });

  it("may be below folders that the system has above that of the user", () => {
    const { path, folders } = made();
    chmodSync(folders[0], 0o777);
    expect(failure(path).code).toBe("store_failed");
    vi.stubEnv("HOME", folders[1]);
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(readTrustedFile(path)).toBe("text");
    chmodSync(folders[1], 0o777);
    expect(failure(path).message).toContain(folders[1]);
  });
});

describe.runIf(isRoot)("a file that another user owns", () => {
  it.each(["file", "folder", "folder above"])("is refused with the owner, and root can take it: %s", (what) => {
    const { path, folders } = made();
    const target = what === "file" ? path : what === "folder" ? folders[2] : folders[0];
    chownSync(target, OTHER, OTHER);
    const { code, message, hint = "" } = failure(path);
    expect([code, message]).toEqual(["store_failed", expect.stringContaining(`another user (uid ${OTHER})`)]);
    execFileSync("sh", ["-c", hint]);
    expect(readTrustedFile(path)).toBe("text");
  });

  it("is refused as a link in a sticky folder, and as a file or folder there", () => {
    const { path, folders } = made();
    const sticky = folders[0];
    chmodSync(sticky, 0o1777);
    const link = join(sticky, "link");
    symlinkSync(path, link);
    expect(readTrustedFile(link)).toBe("text");
    execFileSync("chown", ["-h", String(OTHER), link]);
    expect(failure(link).message).toContain(`${link} belongs to another user`);
    chownSync(folders[1], OTHER, OTHER);
    expect(failure(path).message).toContain(`${folders[1]} belongs to another user`);
  });

  it("is not taken from the user who called sudo", () => {
    onSystem({});
    const { path } = made();
    chownSync(path, OTHER, OTHER);
    for (const [uid, hint] of [
      [OTHER, `run it without sudo: '${path}' is for ada`],
      [undefined, `run it without sudo: '${path}' is for ada`],
      [OTHER + 1, `chown 0 '${path}'`],
    ] as const) {
      pasting.caller = { name: "ada", uid };
      expect(failure(path).hint).toBe(hint);
    }
  });

  it("needs root to be repaired by a user who is not", () => {
    const { path } = made();
    const user = vi.spyOn(process, "getuid").mockReturnValue(OTHER);
    onTestFinished(() => user.mockRestore());
    chmodSync(path, 0o666);
    expect(failure(path)).toMatchObject({
      message: expect.stringContaining("owner: root"),
      hint: `sudo chmod go-w '${path}'`,
    });
    chownSync(path, OTHER + 1, OTHER + 1);
    expect(failure(path).hint).toBe(`sudo chown ${OTHER} '${path}'`);
  });
});
