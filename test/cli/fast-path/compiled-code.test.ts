import { chmodSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { keepCompiledCode } from "../../../src/cli/fast-path/compiled-code.js";
import { VERSION } from "../../../src/http/user-agent.js";
import { ON_WINDOWS } from "../../helpers/systems.js";
import { folder } from "../../store/stores.js";

/** The folders that Node was asked to use. */
function enabled(home: string): string[] {
  const asked: string[] = [];
  keepCompiledCode({ AGENTAUTH_HOME: home }, (path) => asked.push(path));
  return asked;
}

describe("the folder of compiled code", () => {
  it("is named after this version", () => {
    const home = folder();
    expect(enabled(home)).toEqual([join(home, "compiled", VERSION)]);
  });

  it("is not made in a folder that does not exist, or is none", () => {
    const home = folder();
    const file = join(home, "file");
    writeFileSync(file, "");
    for (const path of [join(home, "absent"), file]) enabled(path);
    expect(existsSync(join(home, "absent"))).toBe(false);
    expect(enabled(join(home, "absent"))).toEqual([]);
  });

  it("replaces that of another version, and stays the next time", () => {
    const home = folder();
    const [old, own] = [join(home, "compiled", "0.0.0"), join(home, "compiled", VERSION)];
    mkdirSync(old, { recursive: true });
    enabled(home);
    expect(existsSync(old)).toBe(false);
    mkdirSync(own, { recursive: true });
    writeFileSync(join(own, "code"), "");
    enabled(home);
    expect(existsSync(join(own, "code"))).toBe(true);
  });

  it.skipIf(ON_WINDOWS)("is not used where others can write", () => {
    const home = folder();
    const modes = [0o755, 0o775, 0o757].map((mode) => {
      chmodSync(home, mode);
      return enabled(home).length;
    });
    expect(modes).toEqual([1, 0, 0]);
  });

  it("is no trouble for a Node that keeps none, or cannot", () => {
    const home = folder();
    const fail = () => {
      throw new Error("EROFS");
    };
    expect(() => keepCompiledCode({ AGENTAUTH_HOME: home }, fail)).not.toThrow();
    rmSync(home, { recursive: true });
    expect(() => keepCompiledCode({ AGENTAUTH_HOME: home }, undefined)).not.toThrow();
  });
});
