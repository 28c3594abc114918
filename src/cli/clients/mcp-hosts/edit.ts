import { isDeepStrictEqual } from "node:util";
import { quote } from "../../../redact.js";
import { isMap, type McpHost, type Servers, type SettingsLanguage, SettingsSyntaxError } from "./host.js";

/** A change of a host's settings: a server to write, or to remove where there is no entry. */
export interface SettingsChange {
  name: string;
  entry?: Values;
  /** What we write for the same server in other styles of the host: keys that the entry does not have are removed. */
  otherStyles?: Values | undefined;
}

type Values = Readonly<Record<string, unknown>>;

/** The language of a host's settings; each loads its parser. */
export async function languageOf({ language }: McpHost): Promise<SettingsLanguage> {
  switch (language) {
    case "json":
      return (await import("./json.js")).json;
    case "toml":
      return (await import("./toml.js")).toml;
    case "yaml":
      return (await import("./yaml.js")).yaml;
  }
}

/**
 * The servers in the text of a host's settings.
 *
 * @throws {@link SettingsSyntaxError}
 */
export async function serversIn(host: McpHost, text: string): Promise<Servers> {
  return read(await languageOf(host), host, text).servers;
}

/**
 * The text with one server changed. It is read again: whatever else would have changed is an error.
 *
 * @throws {@link SettingsSyntaxError} for a form of the settings that cannot be changed safely
 */
export async function changeServer(host: McpHost, text: string, change: SettingsChange): Promise<string> {
  const { name, entry, otherStyles } = change;
  const language = await languageOf(host);
  const before = read(language, host, text);
  const { [name]: existing, ...others } = before.servers;
  const expected = entry === undefined ? undefined : merged(existing, entry, otherStyles);
  const changed =
    expected === undefined
      ? language.remove(text, host.key, name)
      : existing === undefined
        ? language.add(text, host.key, name, expected)
        : language.update(text, host.key, name, changesOf(existing, expected));
  const servers = expected === undefined ? others : { ...others, [name]: expected };
  if (isResult(() => read(language, host, changed), { ...before, servers })) return changed;
  const what = existing === undefined ? "the servers are" : `the server ${quote(name, 80)} is`;
  throw new SettingsSyntaxError(`${what} written in a form that cannot be changed safely`);
}

/** The settings of a host: its servers, and everything else. */
interface Settings {
  servers: Servers;
  rest: Values;
}

function read(language: SettingsLanguage, { key }: McpHost, text: string): Settings {
  let settings: Values;
  try {
    settings = language.parse(text, key);
  } catch (error) {
    if (error instanceof RangeError) throw new SettingsSyntaxError("it is nested too deeply");
    throw error;
  }
  const { [key]: given, ...rest } = settings;
  // A key without a value, as YAML may have it.
  const servers = given ?? {};
  if (!isMap(servers)) throw new SettingsSyntaxError(`"${key}" must have the servers by their names`);
  return { servers, rest };
}

function isResult(readAgain: () => Settings, expected: Settings): boolean {
  try {
    return isDeepStrictEqual(withoutPrototypes(readAgain()), withoutPrototypes(expected));
  } catch (error) {
    if (error instanceof SettingsSyntaxError) return false;
    throw error;
  }
}

/** Whether a stored entry needs no update: it has every value of another one, except for the user's switches. */
export function hasValues(stored: unknown, entry: Values, otherStyles?: Values): boolean {
  return (
    isMap(stored) && isDeepStrictEqual(withoutPrototypes(merged(stored, entry, otherStyles)), withoutPrototypes(stored))
  );
}

/** What the user decides once there is an entry: whether and how the host uses the server. */
const SWITCHES = new Set(["enabled", "disabled", "timeout", "tools"]);

/** An entry with other values; what the user or the host has added to it, or to a map in it, stays. */
function merged(stored: unknown, entry: Values, otherStyles: Values = {}): Values {
  if (!isMap(stored)) return entry;
  const ours = Object.entries(entry).filter(([key]) => !SWITCHES.has(key));
  return {
    ...omitOtherStyles(stored, otherStyles, entry),
    ...Object.fromEntries(ours.map(([key, value]) => [key, isMap(value) ? merged(stored[key], value) : value])),
  };
}

/** The stored values without those of other styles, except for what the user has added to a map of them. */
function omitOtherStyles(stored: Values, otherStyles: Values, entry: Values): Values {
  const left = Object.entries(stored).flatMap(([key, value]) => {
    const other = otherStyles[key];
    if (other === undefined || Object.hasOwn(entry, key)) return [[key, value] as const];
    const added = isMap(other) && isMap(value) ? omitOtherStyles(value, other, {}) : {};
    return Object.keys(added).length > 0 ? [[key, added] as const] : [];
  });
  return Object.fromEntries(left);
}

/** The values of an entry that differ from the stored ones; undefined for a key to remove. */
function changesOf(stored: unknown, entry: Values): Values {
  const old = isMap(stored) ? stored : {};
  const removed = Object.keys(old).filter((key) => !Object.hasOwn(entry, key));
  const changed = Object.entries(entry).filter(
    ([key, value]) => !isDeepStrictEqual(withoutPrototypes(old[key]), withoutPrototypes(value)),
  );
  return { ...Object.fromEntries(removed.map((key) => [key, undefined])), ...Object.fromEntries(changed) };
}

/** A parser may give its objects another prototype. */
function withoutPrototypes(value: unknown): unknown {
  return structuredClone(value);
}
