import { isScalar, isMap as isYamlMap, type Pair, parseDocument, stringify, type YAMLMap } from "#packages/yaml";
import { isMap, lineAt, lineBreakOf, type SettingsLanguage, SettingsSyntaxError, withLastBreak } from "./language.js";

/** YAML with the servers as a block; the parser finds the place, and the text around it stays. */
export const yaml: SettingsLanguage = {
  parse(text) {
    const document = parseDocument(text);
    const [error] = document.errors;
    if (error !== undefined) {
      const [what = ""] = error.message.split(/;| at line|\n/);
      throw new SettingsSyntaxError(`it is not valid YAML: ${what}`, error.linePos?.[0].line);
    }
    const value: unknown = toPlain(document);
    if (value === null) return {};
    if (!isMap(value)) throw new SettingsSyntaxError("the settings must be a map", 1);
    return value;
  },
  add(text, key, name, entry) {
    const place = placeOf(text, key);
    const indent = " ".repeat(place.indent);
    const lines = stringify({ [name]: entry }, { lineWidth: 0 })
      .trimEnd()
      .split("\n");
    const eol = lineBreakOf(text);
    const block = [...place.head, ...lines.map((line) => indent + line)].join(eol) + eol;
    return withLastBreak(text.slice(0, place.from)) + block + text.slice(place.to);
  },
  update: (text, key, name, entry) =>
    Object.entries(entry).reduce((changed, [field, value]) => setValue(changed, [key, name], field, value), text),
  remove(text, key, name) {
    const servers = serversOf(text, key);
    const items = servers?.items ?? [];
    const at = items.findIndex((item) => keyOf(item) === name);
    const own = items[at];
    if (servers === undefined || own === undefined || servers.flow === true) throw unsupported(text, own);
    const from = text.lastIndexOf("\n", startOf(own) - 1) + 1;
    const rest = text.slice(endOf(text, own));
    if (items.length > 1) return text.slice(0, from) + rest;
    const head = text.slice(0, from).replace(/:([ \t]*(?:#[^\n]*)?\s*)$/, ": {}$1");
    return head + rest;
  },
};

/** The text with another value in the entry of a server, or with a new one at its end. */
function setValue(text: string, [key, name]: readonly [string, string], field: string, value: unknown): string {
  const server = serversOf(text, key)?.items.find((item) => keyOf(item) === name);
  const entry = server?.value;
  const [first, last] = isYamlMap(entry) && entry.flow !== true ? [entry.items[0], entry.items.at(-1)] : [];
  if (!isYamlMap(entry) || first === undefined || last === undefined) throw unsupported(text, server);
  const own = entry.items.find((item) => keyOf(item) === field);
  const to = endOf(text, own ?? last);
  const from = own === undefined ? to : text.lastIndexOf("\n", startOf(own) - 1) + 1;
  const remark =
    own === undefined ? "" : (/[ \t]+#.*$/.exec(text.slice(valueEndOf(text, own), to).trimEnd())?.[0] ?? "");
  const indent = " ".repeat(columnOf(text, startOf(first)));
  const lines = stringify({ [field]: value }, { lineWidth: 0 })
    .trimEnd()
    .split("\n");
  const eol = lineBreakOf(text);
  const block = lines.map((line) => indent + line).join(eol) + remark + eol;
  return withLastBreak(text.slice(0, from)) + block + text.slice(to);
}

/** What is replaced by an entry: nothing, or an empty `{}`; with the lines before the entry and its indentation. */
interface Place {
  from: number;
  to: number;
  head: readonly string[];
  indent: number;
}

function placeOf(text: string, key: string): Place {
  const pair = pairOf(text, key);
  if (pair === undefined) return { from: text.length, to: text.length, head: [`${key}:`], indent: 2 };
  const servers = pair.value;
  const first = isYamlMap(servers) ? servers.items[0] : undefined;
  const last = isYamlMap(servers) ? servers.items.at(-1) : undefined;
  if (isYamlMap(servers) && servers.flow !== true && first !== undefined && last !== undefined) {
    const end = endOf(text, last as Pair);
    return { from: end, to: end, head: [], indent: columnOf(text, startOf(first as Pair)) };
  }
  const isEmpty = servers === null || (isScalar(servers) && servers.value === null) || isYamlMap(servers);
  const from = text.lastIndexOf("\n", startOf(pair) - 1) + 1;
  const to = text.indexOf("\n", startOf(pair)) + 1 || text.length;
  const line = text.slice(from, to);
  if (!isEmpty || first !== undefined || !EMPTY.test(line)) throw unsupported(text, pair);
  return { from, to, head: [line.trimEnd().replace(EMPTY, "$1$2")], indent: 2 };
}

/** A key alone on its line, without a value or with an empty one, and the comment after it. */
const EMPTY = /^([\w"'-]+:)[ \t]*(?:\{\s*\}|~|null)?([ \t]*#.*|)\s*$/;

function pairOf(text: string, key: string): Pair | undefined {
  const { contents } = parseDocument(text);
  if (contents === null) return undefined;
  if (!isYamlMap(contents) || contents.flow === true) throw new SettingsSyntaxError("the settings must be a block", 1);
  return contents.items.find((item) => keyOf(item) === key);
}

function serversOf(text: string, key: string): YAMLMap | undefined {
  const value = pairOf(text, key)?.value;
  return isYamlMap(value) ? value : undefined;
}

function keyOf({ key }: Pair): unknown {
  return isScalar(key) ? key.value : undefined;
}

function startOf({ key }: Pair): number {
  return (isScalar(key) ? key.range?.[0] : undefined) ?? 0;
}

/** The start of the line after a pair. */
function endOf(text: string, pair: Pair): number {
  return text.indexOf("\n", valueEndOf(text, pair)) + 1 || text.length;
}

function valueEndOf(text: string, { key, value }: Pair): number {
  const range = (value as { range?: readonly number[] } | null)?.range ?? (isScalar(key) ? key.range : undefined);
  return text.slice(0, range?.[1] ?? 0).trimEnd().length;
}

function columnOf(text: string, offset: number): number {
  return offset - (text.lastIndexOf("\n", offset - 1) + 1);
}

function unsupported(text: string, pair: Pair | undefined): SettingsSyntaxError {
  return new SettingsSyntaxError(
    "the servers must be a block with one key per line",
    pair === undefined ? undefined : lineAt(text, startOf(pair)),
  );
}

/** Aliases that multiply are an error of the parser. */
function toPlain(document: ReturnType<typeof parseDocument>): unknown {
  try {
    return document.toJS();
  } catch (error) {
    throw new SettingsSyntaxError(`it is not valid YAML: ${error instanceof Error ? error.message : String(error)}`);
  }
}
