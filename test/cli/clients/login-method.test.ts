import { PassThrough } from "node:stream";
import { stripVTControlCharacters } from "node:util";
import { encode } from "uqr";
import { describe, expect, it } from "vitest";
import { confirm, loginDisplay, qrLines } from "../../../src/cli/clients/login-method.js";
import type { Io } from "../../../src/cli/io/io.js";
import { createMemoryIo } from "../../helpers/memory-io.js";

const never = new AbortController().signal;

describe("a yes/no question", () => {
  it.each([
    ["y\n", true],
    [" YES \r\n", true],
    ["y", true],
    ["n\n", false],
    ["\n", false],
    ["yesterday\n", false],
    ["no\ny\n", false],
    ["", false],
  ])("takes %j for %s", async (stdin, answer) => {
    expect(await confirm(createMemoryIo({ tty: true, stdin }), "Continue?", never)).toBe(answer);
  });

  it("is on stderr alone, also with --quiet, and acts on no terminal", async () => {
    const io = createMemoryIo({ tty: true, stdin: "y\n", quiet: true });
    await confirm(io, "first\nsecond \u001b[31m?", never);
    expect([io.out(), io.err()]).toEqual(["", "first\nsecond \\e[31m? [y/N] "]);
  });

  it("ends with the signal, and leaves the input to others", async () => {
    const stream = new PassThrough();
    const memory = createMemoryIo({ tty: true });
    const io: Io = { ...memory, stdin: { ...memory.stdin, stream } };
    const controller = new AbortController();
    const answer = confirm(io, "Continue?", controller.signal);
    controller.abort();
    await expect(answer).rejects.toMatchObject({ code: "aborted" });
    await expect(confirm(io, "Continue?", controller.signal)).rejects.toMatchObject({ code: "aborted" });
    expect(["data", "end", "error", "keypress"].map((name) => stream.listenerCount(name))).toEqual([0, 0, 0, 0]);
    const again = confirm(io, "Continue?", never);
    stream.write("y\n");
    expect(await again).toBe(true);
  });
});

const ADDRESS = "https://issuer.example/device?user_code=WDJB-MJHT";
const LINK = "http://127.0.0.1:40723/AbCdEfGhIjKl";

async function printed(env: Record<string, string>, columns = 80) {
  const io = createMemoryIo({ tty: true, columns, env: { TERM: "xterm-256color", ...env } });
  const isDrawn = await loginDisplay(io).qrCode(ADDRESS);
  return { isDrawn, text: io.err() };
}

/** What the blocks of a line show: rows of dark (1) and light (0) modules. */
function modulesOf(line: string): [string, string] {
  const blocks = stripVTControlCharacters(line);
  const row = (dark: string) => [...blocks].map((block) => (dark.includes(block) ? 1 : 0)).join("");
  return [row("▀█"), row("▄█")];
}

describe("a QR code", () => {
  it.each([ADDRESS, "https://a.example/", `https://a.example/${"x".repeat(200)}`])(
    "shows each module of %s",
    (text) => {
      const { columns, lines } = qrLines(text);
      const { data, size } = encode(text, { ecc: "L", border: 2 });
      const rows = lines.flatMap(modulesOf).slice(0, size);
      expect(rows).toEqual(data.map((row) => row.map((isDark) => (isDark ? 1 : 0)).join("")));
      expect(columns).toBe(size);
    },
  );

  it("is black on white with a margin, whatever the theme, and ends its colours on each line", () => {
    const { lines } = qrLines(ADDRESS);
    for (const line of lines) {
      expect(line.startsWith("\u001b[38;5;16;48;5;231m  ") && line.endsWith("  \u001b[0m")).toBe(true);
      expect(stripVTControlCharacters(line)).toMatch(/^[ ▀▄█]+$/);
    }
    expect(modulesOf(lines[0] ?? "").join("")).toMatch(/^0+$/);
  });

  it("is drawn on a terminal with UTF-8 and colours that is large enough", async () => {
    const { isDrawn, text } = await printed({ LANG: "de_DE.UTF-8" });
    expect([isDrawn, text.endsWith("\u001b[0m\n\n")]).toEqual([true, true]);
    expect(text.trimEnd().split("\n").length).toBeLessThan(24);
  });

  it.each<[string, Record<string, string>, number]>([
    ["NO_COLOR", { NO_COLOR: "1" }, 80],
    ["another encoding", { LC_ALL: "de_DE.ISO-8859-1" }, 80],
    ["the locale C", { LANG: "C" }, 80],
    ["a terminal without escape sequences", { TERM: "dumb" }, 80],
    ["too few columns", {}, 30],
    ["too few lines", { LINES: "12" }, 80],
  ])("is left out with %s", async (_, env, columns) => {
    expect(await printed(env, columns)).toEqual({ isDrawn: false, text: "" });
  });
});

describe("a link", () => {
  const shown = (env: Record<string, string>) => {
    const io = createMemoryIo({ tty: true, env: { TERM: "xterm-256color", ...env } });
    loginDisplay(io).link(LINK);
    return io.err();
  };
  const HYPERLINK = `  \u001b]8;;${LINK}\u001b\\${LINK}\u001b]8;;\u001b\\\n`;

  it.each([
    { VTE_VERSION: "7600" },
    { TERM_PROGRAM: "iTerm.app" },
    { TERM_PROGRAM: "vscode" },
    { TERM: "xterm-kitty" },
    { WT_SESSION: "x" },
    { KONSOLE_VERSION: "230800" },
    { FORCE_HYPERLINK: "1" },
  ])("is a hyperlink on a terminal that has them: %j", (env) => {
    expect(shown(env)).toBe(HYPERLINK);
  });

  it.each([
    {},
    { VTE_VERSION: "5000" },
    { TERM_PROGRAM: "Apple_Terminal" },
    { TERM: "dumb", VTE_VERSION: "7600" },
    { FORCE_HYPERLINK: "0", VTE_VERSION: "7600" },
  ])("is plain text on one that is not known to have them: %j", (env) => {
    expect(shown(env)).toBe(`  ${LINK}\n`);
  });
});
