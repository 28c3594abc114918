import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { BIN, cleanEnv, runProcess, temporaryFolder } from "../helpers/cli.js";

const dist = join(dirname(dirname(BIN)), "dist");
/** The first steps are printed only where nothing is set up. */
const SET_UP = { AGENTAUTH_BASE_URL: "https://agentauth.example" };
const COMMAND_LINES = [[], ["--help"], ["-h"], ["help"]];

/** A copy of the built program of which nothing is left but what answers the simplest questions. */
function quickPartOnly(): string {
  const copy = temporaryFolder();
  mkdirSync(join(copy, "dist/cli"), { recursive: true });
  writeFileSync(join(copy, "package.json"), '{"type":"module"}');
  cpSync(dirname(BIN), join(copy, "bin"), { recursive: true });
  for (const file of ["main.cjs", "help-80.txt", "help-100.txt"]) {
    cpSync(join(dist, "cli", file), join(copy, "dist/cli", file));
  }
  return join(copy, "bin/agentauth.cjs");
}

describe("the help of the program itself", () => {
  it.each(["", "80", "100", "250", "60", "99"])("is what the parser prints, for COLUMNS=%s", async (COLUMNS) => {
    const env = { COLUMNS, ...SET_UP };
    // Two words are left to the parser.
    const parsed = await runProcess(["--help", "--help"], { env });
    expect(parsed).toMatchObject({ code: 0, stderr: "" });
    for (const words of COMMAND_LINES) expect(await runProcess(words, { env })).toEqual(parsed);
  });

  it.each(["", "80", "100", "250"])("loads nothing of the program, for COLUMNS=%s", (COLUMNS) => {
    const quick = quickPartOnly();
    for (const words of COMMAND_LINES) {
      const run = spawnSync(process.execPath, [quick, ...words], {
        env: cleanEnv({ COLUMNS, ...SET_UP }),
        encoding: "utf8",
      });
      const width = COLUMNS === "" || COLUMNS === "80" ? 80 : 100;
      expect({ code: run.status, stdout: run.stdout, stderr: run.stderr }).toEqual({
        code: 0,
        stdout: readFileSync(join(dist, "cli", `help-${width}.txt`), "utf8"),
        stderr: "",
      });
    }
  });

  it("succeeds where the reader has closed the pipe, and reports an output that cannot be written", () => {
    const closed = spawnSync("sh", ["-c", `"$0" "$1" --help | true; echo $?`, process.execPath, BIN], {
      env: cleanEnv(),
      encoding: "utf8",
    });
    expect([closed.stdout, closed.stderr]).toEqual(["0\n", ""]);
  });
});
