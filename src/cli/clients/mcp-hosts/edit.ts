import { isDeepStrictEqual } from "node:util";
import { quote } from "../../../redact.js";
import type { McpHost } from "./host.js";
import { isMap, type Servers, type SettingsLanguage, SettingsSyntaxError } from "./language.js";

/** A change of a host's settings: a server to write, or to remove where there is no entry. */
export interface SettingsChange {
  name: string;
  entry?: Values;
  /** What we write for the same server in other styles of the host: keys that the entry does not have are removed. */
  otherStyles?: Values | undefined;
}

type Values = Readonly<Record<string, unknown>>;
type Verb = "add" | "update" | "remove";

/**
 * The servers in the text of a host's settings.
 *
 * @throws {@link SettingsSyntaxError}
 */
export async function serversIn(host: McpHost, text: string): Promise<Servers> {
  const language = await languageOf(host);
  return serversOf(host, language.parse(text, host.key));
}

/**
 * The text with one server changed. It is read again: whatever else would have changed is an error.
 *
 * @throws {@link SettingsSyntaxError} for a form of the settings that cannot be changed safely
 */
export async function changeServer(
  host: McpHost,
  text: string,
  { name, entry, otherStyles }: SettingsChange,
): Promise<string> {
  const language = await languageOf(host);
  const before = language.parse(text, host.key);
  const { [name]: existing, ...others } = serversOf(host, before);
  const verb = entry === undefined ? "remove" : existing === undefined ? "add" : "update";
  const meant = entry === undefined ? undefined : merged(existing, entry, otherStyles);
  const values = verb === "update" ? valuesToSet(existing, meant) : meant;
  const changed = language[verb](text, host.key, name, values ?? {});
  const after = readAgain(() => language.parse(changed, host.key), verb, name);
  const { [name]: own, ...othersAfter } = serversOf(host, after);
  const isAsMeant = isDeepStrictEqual(
    [meant, others, { ...before, [host.key]: undefined }].map(plain),
    [own, othersAfter, { ...after, [host.key]: undefined }].map(plain),
  );
  if (!isAsMeant) throw unsupported(verb, name);
  return changed;
}

/** Whether a stored entry needs no update: it has every value of another one, except for the user's switches. */
export function hasValues(stored: unknown, entry: Values, otherStyles?: Values): boolean {
  return isMap(stored) && isDeepStrictEqual(plain(merged(stored, entry, otherStyles)), plain(stored));
}

/** What the user decides once there is an entry: whether and how the host uses the server. */
const SWITCHES = new Set(["enabled", "disabled", "timeout", "tools"]);

/** An entry with other values; what the user or the host has added to it, or to a map in it, stays. */
function merged(stored: unknown, entry: Values, otherStyles: Values = {}): Values {
  if (!isMap(stored)) return entry;
  const ours = Object.entries(entry).filter(([key]) => !SWITCHES.has(key));
  return {
    ...without(stored, otherStyles, entry),
    ...Object.fromEntries(ours.map(([key, value]) => [key, isMap(value) ? merged(stored[key], value) : value])),
  };
}

/** The stored values without those of other styles, except for what the user has added to a map of them. */
function without(stored: Values, otherStyles: Values, entry: Values): Values {
  const left = Object.entries(stored).flatMap(([key, value]) => {
    const other = otherStyles[key];
    if (other === undefined || Object.hasOwn(entry, key)) return [[key, value] as const];
    const added = isMap(other) && isMap(value) ? without(value, other, {}) : {};
    return Object.keys(added).length > 0 ? [[key, added] as const] : [];
  });
  return Object.fromEntries(left);
}

/** The values of an entry that differ from the stored ones; undefined for a key to remove. */
function valuesToSet(stored: unknown, entry: object = {}): object {
  const old = isMap(stored) ? stored : {};
  const removed = Object.keys(old).filter((key) => !Object.hasOwn(entry, key));
  return {
    ...Object.fromEntries(removed.map((key) => [key, undefined])),
    ...Object.fromEntries(
      Object.entries(entry).filter(([key, value]) => !isDeepStrictEqual(plain(old[key]), plain(value))),
    ),
  };
}

/** A parser may give its objects another prototype. */
function plain(value: unknown): unknown {
  return structuredClone(value);
}

function serversOf({ key }: McpHost, settings: Readonly<Record<string, unknown>>): Servers {
  const servers = settings[key] ?? {};
  if (!isMap(servers)) throw new SettingsSyntaxError(`"${key}" must have the servers by their names`);
  return servers;
}

function readAgain<T>(parse: () => T, verb: Verb, name: string): T {
  try {
    return parse();
  } catch (error) {
    if (error instanceof SettingsSyntaxError) throw unsupported(verb, name);
    throw error;
  }
}

function unsupported(verb: Verb, name: string): SettingsSyntaxError {
  const what = verb === "add" ? "the servers are" : `the server ${quote(name, 80)} is`;
  return new SettingsSyntaxError(`${what} written in a form that cannot be changed safely`);
}

/** The language of a host's settings; each loads its parser. */
async function languageOf({ language }: McpHost): Promise<SettingsLanguage> {
  switch (language) {
    case "json":
      return (await import("./json.js")).json;
    case "toml":
      return (await import("./toml.js")).toml;
    case "yaml":
      return (await import("./yaml.js")).yaml;
  }
}
