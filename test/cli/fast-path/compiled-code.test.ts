import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { compiledCode } from "../../../src/cli/fast-path/compiled-code.js";
import { decodeParts, encodeParts } from "../../../src/cli/fast-path/compiled-parts.js";
import { VERSION } from "../../../src/http/user-agent.js";
import { ON_WINDOWS } from "../../helpers/systems.js";
import { folder } from "../../store/stores.js";

const native = createRequire(import.meta.url);
const MAIN = "main-AAAAAAAA.cjs";
const OTHER = "other-BBBBBBBB.cjs";

/** A folder with a module that requires another one, whose functions are called. */
function build(other = "exports.answer = () => 42;"): string {
  const root = folder();
  writeFileSync(join(root, "entry.cjs"), `module.exports = { run: require("./chunks/${MAIN}").run };`);
  mkdirSync(join(root, "chunks"));
  writeFileSync(join(root, "chunks", MAIN), `exports.run = () => require("./${OTHER}").answer();`);
  writeFileSync(join(root, "chunks", OTHER), other);
  return root;
}

/** One start of the command: its result, and whether there was code to store. */
function start(home: string, root: string, { word = "status", env = {} } = {}) {
  const code = compiledCode(word, { AGENTAUTH_HOME: home, ...env }, native);
  if (code === undefined) return undefined;
  const { run } = code.load(join(root, "entry.cjs")) as { run: () => unknown };
  const result = run();
  const before = inodes(home);
  code.save();
  return { result, isStored: inodes(home) !== before };
}

const own = (home: string) => join(home, "compiled", VERSION);
const inodes = (home: string) =>
  existsSync(own(home))
    ? readdirSync(own(home))
        .map((name) => statSync(join(own(home), name)).ino)
        .join()
    : "";

function onlyFile(home: string): string {
  const [name = "", ...more] = readdirSync(own(home));
  expect(more).toEqual([]);
  return join(own(home), name);
}

describe("compiled code of the command line", () => {
  it("is stored once for a command, and used by the next start", () => {
    const [home, root] = [folder(), build()];
    expect(start(home, root)).toEqual({ result: 42, isStored: true });
    expect(start(home, root)).toEqual({ result: 42, isStored: false });
    const file = onlyFile(home);
    expect(file).toContain(`status-${process.version}`);
    if (!ON_WINDOWS) expect(statSync(file).mode & 0o777).toBe(0o600);
    // The name of the entry says nothing about its content.
    expect([...decodeParts(readFileSync(file)).keys()].sort()).toEqual([MAIN, OTHER]);
  });

  it("gets the chunks that a later start needs too, and loses those that the build no longer has", () => {
    const [home, root] = [folder(), build()];
    const names = () => [...decodeParts(readFileSync(onlyFile(home))).keys()].sort();
    const third = "third-CCCCCCCC.cjs";
    start(home, root);
    writeFileSync(join(root, "chunks", MAIN), `exports.run = () => require("./${third}");`);
    writeFileSync(join(root, "chunks", third), "module.exports = 3;");
    expect(start(home, root)).toEqual({ result: 3, isStored: true });
    expect(names()).toEqual([MAIN, OTHER, third]);
    rmSync(join(root, "chunks", third));
    writeFileSync(join(root, "chunks", MAIN), "exports.run = () => 4;");
    expect(start(home, root)).toEqual({ result: 4, isStored: true });
    expect(names()).toEqual([MAIN, OTHER]);
  });

  it("is separate for each command, and one for all that begin with a flag or another word", () => {
    const [home, root] = [folder(), build()];
    for (const word of ["status", "devices", "--json", "../../x", "", "https://mcp.example/mcp"])
      start(home, root, { word });
    const names = readdirSync(own(home)).map((name) => name.slice(0, name.indexOf("-")));
    expect(names.sort()).toEqual(["devices", "options", "status"]);
  });

  it("is compiled again where V8 does not accept it, or the file is incomplete", () => {
    const home = folder();
    start(home, build());
    expect(start(home, build("exports.answer = () => 'changed';"))).toEqual({ result: "changed", isStored: true });
    const file = onlyFile(home);
    const whole = readFileSync(file);
    for (const content of [
      whole.subarray(0, whole.length / 2),
      whole.subarray(16),
      Buffer.alloc(0),
      Buffer.from("[]"),
    ]) {
      writeFileSync(file, content);
      expect(start(home, build())?.result).toBe(42);
      expect(decodeParts(readFileSync(file)).size).toBe(2);
    }
  });

  it("replaces that of another version", () => {
    const [home, root] = [folder(), build()];
    mkdirSync(join(home, "compiled", "0.0.0"), { recursive: true });
    start(home, root);
    expect(readdirSync(join(home, "compiled"))).toEqual([VERSION]);
  });

  it("loads packages, modules of Node and modules that require each other, as require() does", () => {
    const root = build(
      `exports.answer = () => [
        require("node:os").EOL, require("jose").base64url.encode("a"), typeof require("./${MAIN}").run, require("../late.cjs"),
      ];`,
    );
    writeFileSync(join(root, "late.cjs"), "module.exports = module.id;");
    const late = join(root, "late.cjs");
    expect(start(folder(), root)?.result).toEqual([native("node:os").EOL, "YQ", "function", late]);
  });

  it("names the place of an error as require() does", () => {
    const root = build("exports.answer = () => new Error('here').stack;");
    const at = (stack: unknown) => /other-BBBBBBBB\.cjs:\d+:\d+/.exec(String(stack))?.[0];
    expect(at(start(folder(), root)?.result)).toBe(at(native(join(root, "entry.cjs")).run()));
  });

  it("is not kept in a folder that is not there, or with NODE_DISABLE_COMPILE_CACHE=1", () => {
    const [home, root] = [folder(), build()];
    expect(start(join(home, "absent"), root)).toBeUndefined();
    expect(start(home, root, { env: { NODE_DISABLE_COMPILE_CACHE: "1" } })).toBeUndefined();
    expect(readdirSync(home)).toEqual([]);
  });

  it.skipIf(ON_WINDOWS)("is not used where others can write", () => {
    const [home, root] = [folder(), build()];
    const isUsed = [0o755, 0o775, 0o757].map((mode) => {
      chmodSync(home, mode);
      return start(home, root) !== undefined;
    });
    expect(isUsed).toEqual([true, false, false]);
  });

  it("is no trouble where it cannot be stored", () => {
    const [home, root] = [folder(), build()];
    writeFileSync(join(home, "compiled"), "a file");
    expect(start(home, root)).toEqual({ result: 42, isStored: false });
    expect(readdirSync(home)).toEqual(["compiled"]);
  });

  it("has its parts at multiples of eight bytes", () => {
    const parts = new Map([1, 8, 13, 0].map((length, nth) => [`part ${nth}`, Buffer.alloc(length, nth + 1)]));
    const decoded = decodeParts(encodeParts(parts));
    expect([...decoded].map(([name, data]) => [name, Buffer.from(data)])).toEqual([...parts]);
    const offsets = [...decoded.values()].map(
      ({ byteOffset }) => byteOffset - (decoded.get("part 0")?.byteOffset ?? 0),
    );
    expect(offsets).toEqual([0, 8, 16, 32]);
  });

  it("is refused where bytes are missing in the middle, which V8 would not notice", () => {
    const file = encodeParts(new Map([["one", Buffer.alloc(64, 1)]]));
    expect(() => decodeParts(Buffer.concat([file.subarray(0, 16), file.subarray(24)]))).toThrow(RangeError);
  });
});
