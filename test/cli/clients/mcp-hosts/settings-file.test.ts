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
import { readHostFile, writeHostFile } from "../../../../src/cli/clients/mcp-hosts/settings-file.js";
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
      const file = readHostFile(join(at, "a", "b", "mcp.json"), project && at);
      expect(file).toMatchObject({ text: "", original: undefined, isShared: project !== undefined });
      expect(writeHostFile(file, "{}")).toBeUndefined();
      expect([modeOf(join(at, "a")), modeOf(join(at, "a", "b")), modeOf(file.path)]).toEqual([
        ofFolder,
        ofFolder,
        ofFile,
      ]);
      expect([readFileSync(file.path, "utf8"), readdirSync(join(at, "a", "b"))]).toEqual(["{}", ["mcp.json"]]);
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
    const file = readHostFile(path, at);
    expect([file.text, file.target]).toEqual(["{}", path]);
    expect(writeHostFile(file, '{"a":1}')).toBe(`${path}.agentauth.bak`);
    expect([readFileSync(path, "utf8"), readFileSync(`${path}.agentauth.bak`, "utf8")]).toEqual([
      '\uFEFF{"a":1}',
      "\uFEFF{}",
    ]);
    if (!ON_WINDOWS) expect([modeOf(path), modeOf(`${path}.agentauth.bak`)]).toEqual(["640", "640"]);
    expect(readdirSync(at).sort()).toEqual(["mcp.json", "mcp.json.agentauth.bak"]);
  });

  it("is read up to 8 MiB", () => {
    const at = folder();
    const path = join(at, "mcp.json");
    writeFileSync(path, Buffer.alloc(8 * 1024 * 1024, " "));
    expect(readHostFile(path).text).toHaveLength(8 * 1024 * 1024);
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
    expect(found).toMatchSnapshot();
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
    expect(refused).toMatchSnapshot();
    expect(readHostFile(join(project, "own", "mcp.json"), project).target).toBe(join(project, "inside", "mcp.json"));
    expect(readHostFile(join(project, "mcp.json")).target).toBe(join(at, "outside", "mcp.json"));
  });

  it("is one that is read-only, or was changed since it was read", () => {
    const at = folder();
    const path = join(at, "mcp.json");
    writeFileSync(path, "{}");
    chmodSync(path, 0o444);
    expect(failure(at, () => writeHostFile(readHostFile(path), "[]"))[2]).toBe("chmod u+w <folder>/mcp.json");
    chmodSync(path, 0o600);
    const file = readHostFile(path);
    writeFileSync(path, "{ }");
    const changed = failure(at, () => writeHostFile(file, "[]"));
    expect(changed).toMatchSnapshot();
    expect(readFileSync(path, "utf8")).toBe("{ }");
  });
});
