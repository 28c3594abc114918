import { isDeepStrictEqual } from "node:util";
import { parse, TomlError } from "smol-toml";
import { isMap, lineBreakOf, type SettingsLanguage, SettingsSyntaxError, withLastBreak } from "./language.js";
import { snippetText } from "./snippet.js";

/** TOML, with each server as a table of its own. Other forms are found when the result is read again. */
export const toml: SettingsLanguage = {
  parse(text) {
    try {
      return read(text);
    } catch (error) {
      if (!(error instanceof TomlError)) throw error;
      const [what = ""] = error.message.replace(/^Invalid TOML document: /, "").split("\n");
      throw new SettingsSyntaxError(`it is not valid TOML: ${what}`, error.line);
    }
  },
  add(text, key, name, entry) {
    const eol = lineBreakOf(text);
    const table = snippetText("toml", { [key]: { [name]: entry } }).replaceAll("\n", eol);
    const before = withLastBreak(text);
    return `${before}${/\S/.test(before) ? eol : ""}${table}`;
  },
  update: (text, key, name, entry) => setValues(withLastBreak(text), [key, name], entry),
  remove(text, key, name) {
    const lines = linesOf(text);
    const kept = new Set(lines.keys());
    for (const [start, line] of lines.entries()) {
      if (!isTableOf(line, [key, name], true)) continue;
      const end = endOfTable(lines, start, [key, name]);
      for (let at = start; at < end; at++) kept.delete(at);
      // The empty line before the last table.
      if (end === lines.length && /^\s*$/.test(lines[start - 1] ?? "x")) kept.delete(start - 1);
    }
    return lines.filter((_line, index) => kept.has(index)).join("");
  },
};

const HEADER = /^\s*\[/;
const NO_STATEMENT = /^\s*(?:#|$)/;

/** The names of a table, from the top: letters, digits, "-" and "_". */
type TablePath = readonly [string, ...string[]];

/** Whether a line is the header of a table, or of a table in it. */
function isTableOf(line: string, path: TablePath, isDeep: boolean): boolean {
  const words = path.map((name) => `(?:${name}|"${name}"|'${name}')`).join("\\s*\\.\\s*");
  const inner = isDeep ? "(?:\\.[^\\]]*)?" : "";
  return new RegExp(`^\\s*\\[\\s*${words}\\s*${inner}\\]\\s*(?:#.*)?$`).test(line.trimEnd());
}

/** The line after a table: what is before the next one, or at the end of the file, may belong to the user. */
function endOfTable(lines: readonly string[], start: number, path: TablePath): number {
  const next = lines.findIndex((line, index) => index > start && HEADER.test(line));
  if (next >= 0 && isTableOf(lines[next] ?? "", path, true)) return next;
  let end = next < 0 ? lines.length : next;
  while (end > start + 1 && NO_STATEMENT.test(lines[end - 1] ?? "")) end--;
  return end;
}

/** The text with other values in a table; each value that is a map has a table of its own. */
function setValues(text: string, path: TablePath, values: object): string {
  return Object.entries(values).reduce((changed, [name, value]) => {
    if (!isMap(value)) return setValue(changed, path, name, value);
    const inner: TablePath = [...path, name];
    return linesOf(changed).some((line) => isTableOf(line, inner, false))
      ? setValues(changed, inner, value)
      : addTable(changed, path, name, value);
  }, text);
}

function setValue(text: string, path: TablePath, name: string, value: unknown): string {
  const { lines, statements, end } = tableOf(text, path);
  const own = statements.find(({ from, to }) => Object.hasOwn(read(lines.slice(from, to).join("")), name));
  const [from, to] = own === undefined ? [end, end] : [own.from, own.to];
  const old = lines.slice(from, to).join("");
  if (old !== "" && isDeepStrictEqual(read(old)[name], value)) return text;
  const [, statement = ""] = snippetText("toml", { table: { [name]: value } }).split("\n");
  lines.splice(from, to - from, `${statement}${remarkOf(old)}${lineBreakOf(text)}`);
  return lines.join("");
}

function addTable(text: string, path: TablePath, name: string, values: object): string {
  const { lines, end } = tableOf(text, path);
  const nested = [...path, name].reduceRight<object>((inner, one) => ({ [one]: inner }), values);
  lines.splice(end, 0, `\n${snippetText("toml", nested)}`.replaceAll("\n", lineBreakOf(text)));
  return lines.join("");
}

/** The lines of a text, the statements of one of its tables, and the line after the last one. */
function tableOf(text: string, path: TablePath) {
  const lines = linesOf(text);
  const start = lines.findIndex((line) => isTableOf(line, path, false));
  if (start < 0) throw new SettingsSyntaxError(`the entry must be a table [${path.join(".")}]`);
  const statements: { from: number; to: number }[] = [];
  for (let at = start + 1; at < lines.length && !HEADER.test(lines[at] ?? ""); at++) {
    if (NO_STATEMENT.test(lines[at] ?? "")) continue;
    const from = at;
    while (at < lines.length && !isToml(lines.slice(from, at + 1).join(""))) at++;
    statements.push({ from, to: at + 1 });
  }
  return { lines, statements, end: statements.at(-1)?.to ?? start + 1 };
}

/** The comment after a statement, with the spaces before it. */
function remarkOf(statement: string): string {
  const at = [...statement.matchAll(/[ \t]*#/g)].find(({ index }) => index > 0 && isToml(statement.slice(0, index)));
  return at === undefined ? "" : statement.slice(at.index).trimEnd();
}

function read(text: string): Record<string, unknown> {
  return parse(text, { integersAsBigInt: "asNeeded" });
}

function isToml(text: string): boolean {
  try {
    read(text);
    return true;
  } catch (error) {
    if (error instanceof TomlError) return false;
    throw error;
  }
}

function linesOf(text: string): string[] {
  return text.split(/(?<=\n)/);
}
