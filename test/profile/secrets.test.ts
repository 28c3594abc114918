import { execFileSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { AgentAuthError } from "../../src/errors.js";
import { readSecretFile, writeSecretFile } from "../../src/profile/secrets.js";
import { temporaryFolder } from "../helpers/cli.js";
import { ON_WINDOWS } from "../helpers/systems.js";

const root = process.getuid?.() === 0;
let folder: string;
let path: string;

beforeEach(() => {
  folder = temporaryFolder();
  path = join(folder, "secret");
});

function make(content: string | Buffer, mode = 0o600): void {
  writeFileSync(path, content);
  chmodSync(path, mode);
}

function failure(work: () => unknown): AgentAuthError {
  try {
    work();
  } catch (error) {
    if (error instanceof AgentAuthError) return error;
    throw error;
  }
  throw new Error("expected a failure");
}

describe("reading", () => {
  it.each([
    ["tok", "tok"],
    ["tok\n", "tok"],
    ["tok\r\n", "tok"],
    ["tok\n\n", "tok\n"],
    [" tok ", " tok "],
    ["", ""],
  ])("%j is %j", (content, expected) => {
    make(content);
    expect(readSecretFile(path)).toBe(expected);
  });

  it("a file that is not there names it and the reason", () => {
    expect(failure(() => readSecretFile(path))).toMatchObject({
      code: "store_failed",
      class: "store",
      message: `the file ${path} cannot be read (ENOENT)`,
    });
  });

  it.skipIf(ON_WINDOWS).each([0o640, 0o604, 0o644, 0o660, 0o666, 0o620, 0o602, 0o610, 0o601, 0o777])(
    "mode %o is refused, with the command that repairs it",
    (mode) => {
      make("tok", mode);
      const { message, hint, class: kind } = failure(() => readSecretFile(path));
      expect([kind, message]).toEqual(["store", `the file ${path} can be read by others`]);
      execFileSync("sh", ["-c", hint ?? ""]);
      expect(readSecretFile(path)).toBe("tok");
    },
  );

  it.skipIf(ON_WINDOWS).each([0o600, 0o400, 0o700])("mode %o is good", (mode) => {
    make("tok", mode);
    expect(readSecretFile(path)).toBe("tok");
  });

  it.skipIf(ON_WINDOWS)("a symbolic link is refused, wherever it leads", () => {
    make("tok");
    for (const [name, target] of [
      ["a", path],
      ["b", "/dev/zero"],
      ["c", join(folder, "nothing")],
    ] as const) {
      symlinkSync(target, join(folder, name));
      expect(failure(() => readSecretFile(join(folder, name)))).toMatchObject({
        class: "store",
        message: expect.stringContaining("is a symbolic link (ELOOP)"),
      });
    }
  });

  it.skipIf(ON_WINDOWS)("a hard link is refused", () => {
    make("tok");
    linkSync(path, join(folder, "second"));
    expect(failure(() => readSecretFile(path)).message).toContain("has another name too (a hard link)");
  });

  it.skipIf(ON_WINDOWS)("a FIFO, a device and a folder are refused, and nothing waits for them", () => {
    execFileSync("mkfifo", ["-m", "600", path]);
    mkdirSync(join(folder, "folder"), { mode: 0o700 });
    for (const odd of [path, "/dev/zero", join(folder, "folder")]) {
      expect(failure(() => readSecretFile(odd))).toMatchObject({
        class: "store",
        message: expect.stringContaining("is not an ordinary file"),
      });
    }
  });

  it("64 KiB are read, one byte more is refused", () => {
    make("x".repeat(64 * 1024));
    expect(readSecretFile(path)).toHaveLength(64 * 1024);
    make("x".repeat(64 * 1024 + 1));
    expect(failure(() => readSecretFile(path)).message).toContain("is larger than 65536 bytes");
  });

  it.runIf(root)("another user's file is refused, with the command that repairs it", () => {
    make("tok");
    chownSync(path, 12_345, 12_345);
    const { message, hint } = failure(() => readSecretFile(path));
    expect([message, hint]).toEqual([`the file ${path} belongs to another user`, `chown "$USER" ${path}`]);
  });
});

describe("writing", () => {
  it.skipIf(ON_WINDOWS)("makes a folder and a file for no other user, whatever the umask", () => {
    const before = process.umask(0);
    try {
      const deep = join(folder, "a", "b", "secret");
      writeSecretFile(deep, "tok");
      const modes = [join(folder, "a"), join(folder, "a", "b"), deep].map((made) =>
        (statSync(made).mode & 0o777).toString(8),
      );
      expect(modes).toEqual(["700", "700", "600"]);
    } finally {
      process.umask(before);
    }
  });

  it.skipIf(ON_WINDOWS)("takes the place of a link, and leaves what it led to as it was", () => {
    const target = join(folder, "target");
    writeFileSync(target, "theirs");
    symlinkSync(target, path);
    writeSecretFile(path, "tok");
    expect([readFileSync(target, "utf8"), readSecretFile(path)]).toEqual(["theirs", "tok"]);
  });

  it("replaces a file whole and leaves nothing beside it", () => {
    make("a long old secret", 0o644);
    writeSecretFile(path, "new");
    expect([readSecretFile(path), readdirSync(folder)]).toEqual(["new", ["secret"]]);
  });

  it("that fails names the file and leaves nothing beside it", () => {
    mkdirSync(path);
    expect(failure(() => writeSecretFile(path, "tok"))).toMatchObject({
      class: "store",
      message: expect.stringContaining(`the file ${path} cannot be written`),
    });
    expect(readdirSync(folder)).toEqual(["secret"]);
  });

  it("under a file that is no folder says what to do", () => {
    make("x");
    const error = failure(() => writeSecretFile(join(path, "below", "secret"), "tok"));
    expect(error).toMatchObject({ class: "store", hint: expect.stringContaining("AGENTAUTH_HOME") });
  });
});
