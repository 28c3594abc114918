import { type AST, ParseError, parse, parseTOML, TomlError } from "#packages/toml";
import { isMap, lineEnd, lineStart, type SettingsLanguage, SettingsSyntaxError, spliceLines } from "./host.js";

/** TOML, with each server as a table. Another form is refused when the changed text is read again. */
export const toml: SettingsLanguage = {
  parse(text) {
    try {
      return parse(text, { integersAsBigInt: "asNeeded" });
    } catch (error) {
      if (!(error instanceof TomlError)) throw error;
      const [what = ""] = error.message.replace(/^Invalid TOML document: /, "").split("\n");
      throw new SettingsSyntaxError(`it is not valid TOML: ${what}`, error.line);
    }
  },
  print: (settings) => tablesOf([], settings).join("\n"),
  add(text, key, name, entry) {
    const table = toml.print({ [key]: { [name]: entry } });
    return spliceLines(text, text.length, text.length, /\S/.test(text) ? `\n${table}` : table);
  },
  update: (text, key, name, entry) => setValues(text, [key, name], entry),
  remove(text, key, name) {
    const tables = tablesIn(text);
    return tables.reduceRight((changed, table, index) => {
      if (!isAt(table, [key, name])) return changed;
      const next = tables[index + 1];
      const start = lineStart(text, table.range[0]);
      const end = next !== undefined && isAt(next, [key, name]) ? next.range[0] : table.range[1];
      const to = end === table.range[1] ? lineEnd(text, end) : lineStart(text, end);
      // The empty line before the last table.
      const from = to >= changed.length ? text.slice(0, start).replace(/(?<=\n)[ \t]*\r?\n$/, "").length : start;
      return changed.slice(0, from) + changed.slice(to);
    }, text);
  },
};

/** The tables with their positions, which the other parser does not have; this one takes keys such as `__proto__` wrong. */
function tablesIn(text: string): AST.TOMLTable[] {
  try {
    const [top] = parseTOML(text, { tomlVersion: "1.1" }).body;
    return top.body.filter((node) => node.type === "TOMLTable");
  } catch (error) {
    if (!(error instanceof ParseError)) throw error;
    throw new SettingsSyntaxError(`it is not valid TOML: ${error.message}`, error.lineNumber);
  }
}

/** Whether a table is the one with this path, or lies in it. */
function isAt({ resolvedKey }: AST.TOMLTable, path: readonly string[]): boolean {
  return path.every((name, index) => resolvedKey[index] === name);
}

/** The text with other values in a table; a value that is a map has a table below it. */
function setValues(text: string, path: readonly string[], values: object): string {
  return Object.entries(values).reduce((changed, [name, value]) => {
    const tables = tablesIn(changed);
    const at = (own: readonly string[]) =>
      tables.find((one) => isAt(one, own) && one.resolvedKey.length === own.length);
    const table = at(path);
    if (table === undefined) throw new SettingsSyntaxError(`the entry must be a table [${path.join(".")}]`);
    if (isMap(value) && at([...path, name])) return setValues(changed, [...path, name], value);
    const old = table.body.find(({ key }) => nameOf(key.keys[0]) === name);
    if (old !== undefined) {
      const [from, to] = old.value.range;
      // An inline table and keys with dots stay: the change is then refused.
      const isTable = isMap(value) || old.key.keys.length > 1;
      return isTable ? changed : changed.slice(0, from) + valueText(value) + changed.slice(to);
    }
    const added = isMap(value) ? `\n${tablesOf([...path, name], value).join("\n")}` : `${name} = ${valueText(value)}\n`;
    const end = lineEnd(changed, table.range[1]);
    return spliceLines(changed, end, end, added);
  }, text);
}

function nameOf(key: AST.TOMLBare | AST.TOMLQuoted | undefined): string | undefined {
  return key?.type === "TOMLBare" ? key.name : key?.value;
}

/** Each object with a value that is not an object is a table; keys are bare, like the names of servers. */
function tablesOf(path: readonly string[], table: object): string[] {
  const entries: [string, unknown][] = Object.entries(table);
  const values = entries.filter(([, value]) => !isMap(value)).map(([key, value]) => `${key} = ${valueText(value)}\n`);
  const own = values.length > 0 ? [`[${path.join(".")}]\n${values.join("")}`] : [];
  return [...own, ...entries.flatMap(([key, value]) => (isMap(value) ? tablesOf([...path, key], value) : []))];
}

/** A JSON string is a TOML string too, except for the one control character that JSON does not escape. */
function valueText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(valueText).join(", ")}]`;
  return JSON.stringify(value).replaceAll("\u007f", "\\u007f");
}
