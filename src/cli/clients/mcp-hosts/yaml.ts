import { isScalar, isMap as isYamlMap, type Pair, parseDocument, stringify, type YAMLMap } from "#packages/yaml";
import { messageOf } from "../../../errors.js";
import { isMap, lineAt, lineEnd, lineStart, type SettingsLanguage, SettingsSyntaxError, spliceLines } from "./host.js";

/** YAML with the servers as a block; the parser finds the lines, and the text around them stays. */
export const yaml: SettingsLanguage = {
  parse(text) {
    const document = parseDocument(text);
    const [error] = document.errors;
    if (error !== undefined) {
      const [what = ""] = error.message.split(/;| at line|\n/);
      throw new SettingsSyntaxError(`it is not valid YAML: ${what}`, error.linePos?.[0].line);
    }
    const value: unknown = toPlain(document) ?? {};
    if (!isMap(value)) throw new SettingsSyntaxError("the settings must be a map", 1);
    return value;
  },
  print: (settings) => stringify(settings, { lineWidth: 0 }),
  add(text, key, name, entry) {
    const servers = pairIn(topOf(text), key);
    if (servers === undefined)
      return spliceLines(text, text.length, text.length, yaml.print({ [key]: { [name]: entry } }));
    const items = isYamlMap(servers.value) && servers.value.flow !== true ? servers.value.items : [];
    const [first, last] = [items[0], items.at(-1)];
    if (first !== undefined && last !== undefined) {
      const end = lineEnd(text, valueEnd(text, last));
      return spliceLines(text, end, end, blockOf({ [name]: entry }, columnOf(text, first)));
    }
    const opened = withoutValue(text, servers);
    const end = lineEnd(opened, startOf(servers));
    return spliceLines(opened, end, end, blockOf({ [name]: entry }, 2));
  },
  update: (text, key, name, entry) =>
    Object.entries(entry).reduce((changed, [field, value]) => setValue(changed, key, name, field, value), text),
  remove(text, key, name) {
    const servers = pairIn(topOf(text), key);
    const entry = blockIn(text, servers);
    const own = pairIn(entry, name);
    if (own === undefined) throw notBlock(text, servers);
    const [from, to] = [lineStart(text, startOf(own)), lineEnd(text, valueEnd(text, own))];
    const head = text.slice(0, from);
    const isLast = entry.items.length === 1;
    return (isLast ? head.replace(/:([ \t]*(?:#[^\n]*)?\s*)$/, ": {}$1") : head) + text.slice(to);
  },
};

/** The text with another value in the entry of a server, or with a new one at its end. */
function setValue(text: string, key: string, name: string, field: string, value: unknown): string {
  const entry = blockIn(text, pairIn(blockIn(text, pairIn(topOf(text), key)), name));
  const [first, last] = [entry.items[0], entry.items.at(-1)];
  if (first === undefined || last === undefined) throw notBlock(text, undefined);
  const own = pairIn(entry, field);
  const end = valueEnd(text, own ?? last);
  const to = lineEnd(text, end);
  const from = own === undefined ? to : lineStart(text, startOf(own));
  const comment = own === undefined ? "" : (/[ \t]+#.*/.exec(text.slice(end, to).trimEnd())?.[0] ?? "");
  const block = blockOf({ [field]: value }, columnOf(text, first));
  return spliceLines(text, from, to, `${block.trimEnd()}${comment}\n`);
}

/** The text without an empty value, with the comment after it. */
function withoutValue(text: string, pair: Pair): string {
  const { value } = pair;
  const isEmpty = (isScalar(value) && value.value === null) || (isYamlMap(value) && value.items.length === 0);
  if (!isEmpty) throw notBlock(text, pair);
  const [from = 0, to = 0] = value.range ?? [];
  return text.slice(0, from).trimEnd() + text.slice(to).replace(/^[ \t]*(?=#)/, " ");
}

function topOf(text: string): YAMLMap | undefined {
  const { contents } = parseDocument(text);
  if (contents === null) return undefined;
  if (!isYamlMap(contents) || contents.flow === true) throw new SettingsSyntaxError("the settings must be a block", 1);
  return contents;
}

function blockIn(text: string, pair: Pair | undefined): YAMLMap {
  if (!isYamlMap(pair?.value) || pair.value.flow === true) throw notBlock(text, pair);
  return pair.value;
}

function pairIn(map: YAMLMap | undefined, name: string): Pair | undefined {
  return map?.items.find(({ key }) => isScalar(key) && key.value === name);
}

function blockOf(values: object, indent: number): string {
  return yaml.print(values).replace(/^(?=.)/gm, " ".repeat(indent));
}

function startOf({ key }: Pair): number {
  return (isScalar(key) ? key.range?.[0] : undefined) ?? 0;
}

function rangeOf({ key, value }: Pair): readonly number[] | undefined {
  return (
    (value as { range?: readonly number[] } | null)?.range ?? (isScalar(key) ? (key.range ?? undefined) : undefined)
  );
}

function valueEnd(text: string, pair: Pair): number {
  return text.slice(0, rangeOf(pair)?.[1] ?? 0).trimEnd().length;
}

function columnOf(text: string, pair: Pair): number {
  return startOf(pair) - lineStart(text, startOf(pair));
}

function notBlock(text: string, pair: Pair | undefined): SettingsSyntaxError {
  const line = pair === undefined ? undefined : lineAt(text, startOf(pair));
  return new SettingsSyntaxError("the servers must be a block with one key per line", line);
}

/** Aliases that multiply are an error of the parser. */
function toPlain(document: ReturnType<typeof parseDocument>): unknown {
  try {
    return document.toJS();
  } catch (error) {
    if (!(error instanceof ReferenceError)) throw error;
    throw new SettingsSyntaxError(`it is not valid YAML: ${messageOf(error)}`);
  }
}
