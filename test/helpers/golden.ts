import { existsSync, mkdirSync, readFileSync, renameSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { VitestSnapshotEnvironment } from "vitest/runtime";

/** The snapshots of one test file, or of one folder: texts as Vitest serializes them, by the names of the tests. */
type Texts = Map<string, string>;

const HEADER = "# Each text once, and below it the tests that compare it. Written by `npx vitest run <file> -u`.";

/**
 * Keeps the snapshots of all test files of a folder in one file, `texts.golden`, where a text that several tests compare
 * stands once. A line of a text begins with `| ` where it is a string, with `> ` where that ends with a line break, with
 * `* ` where it is an item of a list of strings (`3 × ` thrice), and with `: ` where it is another value; a line with `- `
 * names a test file, a test, and which of its comparisons it is.
 */
class GoldenTexts extends VitestSnapshotEnvironment {
  /** A path for each test file, since Vitest asks for each file by itself. */
  override async resolvePath(file: string): Promise<string> {
    return join(dirname(file), "texts.golden", basename(file).replace(/\.test\.ts$/, ""));
  }

  override async readSnapshotFile(path: string): Promise<string | null> {
    const { golden, file } = placeOf(path);
    const own = [...textsOf(golden)].filter(([name]) => name.startsWith(`${file}: `));
    if (own.length === 0) return null;
    const lines = own.map(([name, text]) => `exports[${quoted(name.slice(file.length + 2))}] = ${quoted(text)};`);
    return [this.getHeader(), ...lines].join("\n\n");
  }

  override saveSnapshotFile(path: string, snapshot: string): Promise<void> {
    const exports: Record<string, string> = {};
    new Function("exports", snapshot)(exports);
    return change(path, exports);
  }

  override removeSnapshotFile(path: string): Promise<void> {
    return change(path, {});
  }
}

function placeOf(path: string) {
  return { golden: dirname(path), file: basename(path) };
}

const quoted = (text: string) => JSON.stringify(text);

const textsOf = (golden: string) => parseGolden(existsSync(golden) ? readFileSync(golden, "utf8") : "");

/** Replaces the texts of one test file. Other files of the folder may be run at the same time. */
async function change(path: string, texts: Record<string, string>): Promise<void> {
  const { golden, file } = placeOf(path);
  const lock = `${golden}.lock`;
  for (let tries = 0; !taken(lock); tries += 1) {
    if (tries > 1000) throw new Error(`${lock} is left from another run: remove it`);
    await setTimeout(10);
  }
  try {
    const all: Texts = new Map([...textsOf(golden)].filter(([name]) => !name.startsWith(`${file}: `)));
    for (const [name, text] of Object.entries(texts)) all.set(`${file}: ${name}`, text);
    if (all.size === 0) rmSync(golden, { force: true });
    else {
      writeFileSync(`${golden}.new`, goldenText(all));
      renameSync(`${golden}.new`, golden);
    }
  } finally {
    rmdirSync(lock);
  }
}

function taken(lock: string): boolean {
  try {
    mkdirSync(lock);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

/** The snapshots in the text of a golden file. */
export function parseGolden(golden: string): Texts {
  const texts: Texts = new Map();
  let text: string[] = [];
  let isRead = true;
  for (const line of golden.split("\n")) {
    const [mark, rest] = [line.slice(0, 2), line.slice(2)];
    if (mark === "- ") {
      const [, name = "", numbers = ""] = /^(.*) ([\d,]+)$/.exec(rest) ?? [];
      for (const number of numbers.split(",")) texts.set(`${unescaped(name)} ${number}`, serialized(text));
    } else if (["| ", "> ", "* ", ": "].includes(mark)) {
      if (isRead) text = [];
      text.push(line);
    }
    isRead = mark === "- ";
  }
  return texts;
}

/** A text as Vitest has it: a string in quotes, a list in brackets, and several lines between two line breaks. */
function serialized(lines: readonly string[]): string {
  const [mark, rows] = [lines[0]?.[0], lines.map((line) => line.slice(2))];
  if (mark === "*") {
    const items = rows.map((row) => /^(?:(\d+) × )?(.*)$/s.exec(row) ?? []);
    return `\n[\n${items.map(([, times = "1", item]) => `  "${item}",\n`.repeat(Number(times))).join("")}]\n`;
  }
  const end = mark === ">" ? "\n" : "";
  const text = mark === "|" || mark === ">" ? `"${rows.join("\n")}${end}"` : rows.join("\n");
  return text.includes("\n") ? `\n${text}\n` : text;
}

/** The text of a golden file that has these snapshots. */
export function goldenText(texts: Texts): string {
  const groups = new Map<string, Map<string, number[]>>();
  for (const [name, value] of texts) {
    const [, test = "", number = ""] = /^(.*) (\d+)$/s.exec(name) ?? [];
    const tests = groups.get(value) ?? new Map<string, number[]>();
    groups.set(value, tests.set(test, [...(tests.get(test) ?? []), Number(number)]));
  }
  const blocks = [...groups].map(([value, tests]) => {
    const names = [...tests].map(([test, numbers]) => `- ${escaped(test)} ${numbers.sort((a, b) => a - b).join(",")}`);
    return [linesOf(value), ...names.sort()].join("\n");
  });
  return `${[HEADER, ...blocks.sort()].join("\n")}\n`;
}

function linesOf(value: string): string {
  const text = value.includes("\n") ? value.slice(1, -1) : value;
  if (/^".*"$/s.test(text)) {
    const mark = text.endsWith('\n"') ? ">" : "|";
    return `${mark} ${text.slice(1, mark === ">" ? -2 : -1).replaceAll("\n", `\n${mark} `)}`;
  }
  if (!/^\[(\n {2}".*",)+\n\]$/.test(text)) return `: ${text.replaceAll("\n", "\n: ")}`;
  const items = text.split("\n").slice(1, -1);
  const starts = [...items.keys()].filter((at) => items[at] !== items[at - 1]);
  const counted = starts.map((at, index) => {
    const item = items[at]?.slice(3, -2) ?? "";
    const times = (starts[index + 1] ?? items.length) - at;
    return `* ${times > 1 || /^\d+ × /.test(item) ? `${times} × ` : ""}${item}`;
  });
  return counted.join("\n");
}

/** Names of tests may have line breaks. */
const escaped = (name: string) => name.replaceAll("\\", "\\\\").replaceAll("\n", "\\n");
const unescaped = (name: string) => name.replace(/\\(.)/g, (_all, letter: string) => (letter === "n" ? "\n" : letter));

export default new GoldenTexts();
