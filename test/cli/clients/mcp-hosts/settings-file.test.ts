import { execFileSync } from "node:child_process";
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { changeHostFile, readHostFile } from "../../../../src/cli/clients/hosts.js";
import { temporaryFolder } from "../../../helpers/folder.js";
import { ON_WINDOWS } from "../../../helpers/systems.js";

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

/** A folder without links in its path. */
const folder = () => realpathSync(temporaryFolder());

/** What a call throws, with a placeholder for the folder. */
function failure(at: string, call: () => unknown) {
  try {
    call();
  } catch (error) {
    const { code, message, hint = "" } = error as { code: string; message: string; hint?: string };
    return [code, message, hint].map((text) => text.replaceAll(at, "<folder>"));
  }
  throw new Error("nothing was thrown");
}

describe.skipIf(ON_WINDOWS)("a new file", () => {
  it.each([
    [undefined, "700", "600"],
    ["project", "755", "644"],
  ])("is private unless it is of a project (%s)", (project, ofFolder, ofFile) => {
    const at = folder();
    const before = process.umask(0o022);
    try {
      const path = join(at, "a", "b", "mcp.json");
      expect(readHostFile(path, project && at)).toBe("");
      expect(changeHostFile(path, project && at, () => "{}")).toBeUndefined();
      expect([modeOf(join(at, "a")), modeOf(join(at, "a", "b")), modeOf(path)]).toEqual([ofFolder, ofFolder, ofFile]);
      expect([readFileSync(path, "utf8"), readdirSync(join(at, "a", "b"))]).toEqual(["{}", ["mcp.json"]]);
    } finally {
      process.umask(before);
    }
  });
});

describe("a file that is there", () => {
  it("keeps its byte order mark and its mode, and has its old content beside it", () => {
    const at = folder();
    const path = join(at, "mcp.json");
    writeFileSync(path, "\uFEFF{}");
    chmodSync(path, 0o640);
    expect(readHostFile(path, at)).toBe("{}");
    const backup = changeHostFile(path, at, (text) => text.replace("}", '"a":1}')) ?? "";
    expect(backup).toMatch(/mcp\.json\.\d{8}T\d{9}Z\.agentauth\.bak$/);
    expect([readFileSync(path, "utf8"), readFileSync(backup, "utf8")]).toEqual(['\uFEFF{"a":1}', "\uFEFF{}"]);
    if (!ON_WINDOWS) expect([modeOf(path), modeOf(backup)]).toEqual(["640", "640"]);
    expect(readdirSync(at)).toHaveLength(2);
  });

  it("is read up to 8 MiB", () => {
    const at = folder();
    const path = join(at, "mcp.json");
    writeFileSync(path, Buffer.alloc(8 * 1024 * 1024, " "));
    expect(readHostFile(path)).toHaveLength(8 * 1024 * 1024);
  });
});

describe.skipIf(ON_WINDOWS)("what is no file of a host", () => {
  it("is refused, and says what helps", () => {
    const at = folder();
    const path = (name: string) => join(at, name);
    mkdirSync(path("folder"));
    execFileSync("mkfifo", [path("pipe")]);
    writeFileSync(path("bytes"), Buffer.from([0xff]));
    writeFileSync(path("large"), Buffer.alloc(8 * 1024 * 1024 + 1));
    writeFileSync(path("file"), "{}");
    symlinkSync("nowhere", path("dangling"));
    symlinkSync("loop", path("loop"));
    const found = ["folder", "pipe", "bytes", "large", "dangling", "loop", "file/below"].map((name) => [
      name,
      ...failure(at, () => readHostFile(path(name))),
    ]);
    expect(found.map(([name, code, message]) => [name, code, message?.replace(/^.*? (?=is|cannot)/, "")])).toEqual([
      ["folder", "usage", "is not an ordinary file of at most 8388608 bytes"],
      ["pipe", "usage", "is not an ordinary file of at most 8388608 bytes"],
      ["bytes", "usage", "is not UTF-8 text"],
      ["large", "usage", "is not an ordinary file of at most 8388608 bytes"],
      ["dangling", "usage", "is a symbolic link that leads nowhere"],
      ["loop", "usage", "is a symbolic link that leads nowhere"],
      ["file/below", "store_failed", "cannot be read (ENOTDIR)"],
    ]);
  });

  it("is what leads out of a project, by the file or a folder above it", () => {
    const at = folder();
    const project = join(at, "project");
    mkdirSync(join(project, "inside"), { recursive: true });
    mkdirSync(join(at, "outside"));
    writeFileSync(join(at, "outside", "mcp.json"), "{}");
    symlinkSync(join(at, "outside"), join(project, "folder"));
    symlinkSync(join(at, "outside", "mcp.json"), join(project, "mcp.json"));
    symlinkSync(join(project, "inside"), join(project, "own"));
    const refused = ["folder/mcp.json", "folder/new/mcp.json", "mcp.json"].map((name) =>
      failure(at, () => readHostFile(join(project, name), project)),
    );
    for (const [code, message] of refused)
      expect([code, message]).toEqual(["usage", expect.stringContaining("leads out of")]);
    changeHostFile(join(project, "own", "mcp.json"), project, () => "[]");
    expect(readFileSync(join(project, "inside", "mcp.json"), "utf8")).toBe("[]");
    expect(readHostFile(join(project, "mcp.json"))).toBe("{}");
  });

  it("is one that is read-only, which stays as it is", () => {
    const at = folder();
    const path = join(at, "mcp.json");
    writeFileSync(path, "{}");
    chmodSync(path, 0o444);
    expect(failure(at, () => changeHostFile(path, undefined, () => "[]"))[2]).toBe("chmod u+w <folder>/mcp.json");
    expect([readFileSync(path, "utf8"), readdirSync(at)]).toEqual(["{}", ["mcp.json"]]);
  });
});
