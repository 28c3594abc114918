import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { shellWord } from "../../src/redact.js";
import { startUnicodeService } from "../cli/output/unicode-service.js";
import { BIN, cleanEnv, collect } from "../helpers/cli.js";
import { ON_LINUX } from "../helpers/systems.js";
import { unsafeCharacters } from "../helpers/unsafe.js";

const ESC = "\u001b";
const script = ON_LINUX && spawnSync("script", ["--version"]).status === 0;

async function onTerminal(args: readonly string[], env: Record<string, string>) {
  const command = [process.execPath, BIN, ...args].map(shellWord).join(" ");
  const child = spawn("script", ["-qec", command, "/dev/null"], { env: cleanEnv(env), stdio: "pipe" });
  const out = collect(child.stdout);
  const [code] = (await once(child, "close")) as [number | null];
  return { code, stdout: out() };
}

/** Without the pairs of marks that a table puts around a cell with right-to-left letters. */
function withoutIsolates(text: string): string {
  return text.replace(/\u2068([^\u2068\u2069\n]*)\u2069/g, "$1");
}

describe("a service whose every text is made of all of Unicode", () => {
  it.skipIf(!script)("is harmless on a terminal, where only our own colours are escape sequences", async () => {
    const { origin } = await startUnicodeService();
    const env = { AGENTAUTH_BASE_URL: origin, AGENTAUTH_API_TOKEN: "token-of-a-test", COLUMNS: "200", NO_COLOR: "1" };
    for (const format of ["table", "json", "csv"]) {
      const args = ["devices", "list", "--pool", "p", "-o", format];
      const { code, stdout } = await onTerminal(args, { ...env, TERM: "dumb" });
      expect([format, code, unsafeCharacters(withoutIsolates(stdout.replace(/\r+\n/g, "\n")))]).toEqual([
        format,
        0,
        [],
      ]);
    }
    const { stdout } = await onTerminal(["devices", "list", "--pool", "p"], { ...env, TERM: "xterm", NO_COLOR: "" });
    // Bold, dim, a colour or its end; a line of progress taken away. No address is made a link.
    const ours = new RegExp(`${ESC}\\[(?:1|2|3\\d|22|39)m|\r${ESC}\\[2K`, "g");
    expect(unsafeCharacters(withoutIsolates(stdout.replace(/\r+\n/g, "\n").replace(ours, "")))).toEqual([]);
  });
});
