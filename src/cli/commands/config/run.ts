import { resolve } from "node:path";
import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { type AgentAuthError, abortedError, usageError } from "../../../errors.js";
import { untilAborted } from "../../../http/deadline.js";
import { suggestionHint } from "../../../http/suggest.js";
import { changeConfig } from "../../../profile/change-config.js";
import { checkSetting, isProfileKey, PROFILE_KEYS, type Profile } from "../../../profile/profile-settings.js";
import { checkApiToken, isReference } from "../../../profile/secrets.js";
import { storingToken } from "../../../profile/service-settings.js";
import { expandUserFolder } from "../../../profile/settings.js";
import {
  type Config,
  configPath,
  isProfileName,
  keptText,
  readConfig,
  SANDBOX_PROFILE,
} from "../../../profile/settings-file.js";
import { escapeText, quote, shellWord } from "../../../redact.js";
import type { OnEmptyFile } from "../../../store/private/private-file.js";
import { type EffectiveSetting, removeOwnToken, settingsWithOrigin, storeToken } from "../../config/effective.js";
import type { GlobalFlags, OutputFlags } from "../../flags/global.js";
import type { InStream } from "../../io/stream.js";
import { rowColumns } from "../../output/columns.js";
import { printRows } from "../../output/writer.js";
import type { CommandContext } from "../../runtime/context.js";

const SETTINGS = rowColumns([
  { path: "key", header: "SETTING" },
  { path: "value", header: "VALUE" },
  { path: "source", header: "SOURCE" },
]);

type ConfigRun = (options: ConfigOptions, context: CommandContext) => Promise<undefined>;

export const CONFIG_RUNS: Readonly<Record<"get" | "set" | "unset" | "list" | "path", ConfigRun>> = {
  async list(options, context) {
    await printRows(effectiveRows(context), SETTINGS, options, context);
  },

  async get(options, context) {
    const rows = effectiveRows(context);
    const row = rows.find(({ key }) => key === options.key);
    if (row === undefined)
      throw unknownKey(
        options.key,
        rows.map((one) => one.key),
      );
    const { key, value } = row;
    if (value === undefined) {
      const name = context.settings().profile.value;
      const set = ["agentauth config set", key, "<value>", ...profileFlag(name).map(shellWord)].join(" ");
      throw usageError(
        `${key} is not set in profile ${name}`,
        `${name === SANDBOX_PROFILE ? "" : `${set}; `}agentauth profile list shows the profiles, agentauth config list the effective settings`,
      );
    }
    // A program gets the value unchanged; for a terminal, control characters are escaped.
    await context.io.stdout.write(`${context.io.stdout.isTTY ? escapeText(value) : value}\n`);
  },

  async set(options, context) {
    const key = requireKey(options.key);
    const { name } = chosenProfile(options, context, (path, kept) => context.io.warn(keptText(path, kept)));
    refuseSandbox(name);
    const home = context.home();
    const value = await valueToStore(key, name, options, context);
    checkSetting(key, value);
    const { before, dropped } = await changeProfile(name, (entries) => ({ ...entries, [key]: value }), context);
    if (key === "api_token" && before.api_token !== value) removeOwnToken(home, name, before.api_token);
    context.io.say(`${key} is set in profile ${name}`);
    reportDropped(dropped, name, context);
  },

  async unset(options, context) {
    const key = requireKey(options.key);
    const { config: current, name } = chosenProfile(options, context);
    if (current.profiles[name]?.[key] === undefined) {
      context.io.say(`${key} was not set in profile ${name}`);
      return;
    }
    const { before, dropped } = await changeProfile(name, ({ [key]: _removed, ...rest }) => rest, context);
    if (key === "api_token") removeOwnToken(context.home(), name, before.api_token);
    context.io.say(`${key} is no longer set in profile ${name}`);
    reportDropped(dropped, name, context);
  },

  async path(_options, context) {
    await context.io.stdout.write(`${configPath(context.home())}\n`);
  },
};

/** Changes one profile. @returns its entries before the change, and the entry that the change dropped */
async function changeProfile(
  name: string,
  change: (entries: Profile) => Profile,
  context: CommandContext,
): Promise<{ before: Profile; dropped: Rebound["dropped"] }> {
  let before: Profile = {};
  let dropped: Rebound["dropped"];
  const apply = (config: Config): Config => {
    before = config.profiles[name] ?? {};
    const rebound = rebind(before, change(before));
    dropped = rebound.dropped;
    return { ...config, profiles: { ...config.profiles, [name]: rebound.entries } };
  };
  await changeConfig(context.home(), apply, context.signal);
  return { before, dropped };
}

/** Only the reference to the token is dropped, not the token: the hint restores it. */
function reportDropped(dropped: Rebound["dropped"], name: string, { io }: CommandContext): void {
  if (dropped === undefined) return;
  const { reference, boundTo } = dropped;
  io.warn(`api_token is no longer set in profile ${name}: its token was stored for ${boundTo}`);
  const command = ["agentauth", "config", "set", "api_token", reference, ...profileFlag(name)].map(shellWord).join(" ");
  io.say(`hint: store another token with agentauth config set api_token -; to use the same token: ${command}`);
}

function profileFlag(name: string): string[] {
  return name === "default" ? [] : ["--profile", name];
}

function requireKey(key: string): keyof Profile {
  if (isProfileKey(key)) return key;
  throw unknownKey(key, Object.keys(PROFILE_KEYS));
}

function unknownKey(key: string, keys: readonly string[]): AgentAuthError {
  return usageError(`unknown setting ${quote(key)}`, suggestionHint(key, keys, `settings: ${keys.join(", ")}`));
}

/** The profile that the flag, the environment or the settings file names; it may not exist yet. */
function chosenProfile(
  options: ConfigOptions,
  context: CommandContext,
  onEmpty?: OnEmptyFile,
): { config: Config; name: string } {
  const config = readConfig(context.home(), onEmpty);
  const name = options.profile || context.io.env["AGENTAUTH_PROFILE"] || config.profile;
  if (isProfileName(name)) return { config, name };
  const source = options.profile ? "--profile" : "AGENTAUTH_PROFILE";
  throw usageError(`${source} ${quote(name)} is not a valid profile name`, 'use letters, digits, "-", "_" and "."');
}

function refuseSandbox(name: string): void {
  if (name !== SANDBOX_PROFILE) return;
  throw usageError(
    `the profile ${name} is reserved for the running sandbox and cannot be changed`,
    "select another profile with --profile",
  );
}

function effectiveRows(context: CommandContext): EffectiveSetting[] {
  const home = context.home();
  const [settings, store] = [context.settings(), context.storeChoice()];
  return settingsWithOrigin({ settings, config: readConfig(home), home, store, env: context.io.env });
}

/** The entries of a profile, and the reference to an API token that was dropped. */
interface Rebound {
  entries: Profile;
  /** The reference, and the base URL that its token was stored for. */
  dropped: { reference: string; boundTo: string } | undefined;
}

/**
 * Drops the reference to the API token if the profile's base URL moves to another origin or is removed: the token was
 * stored for the old origin, and must not be sent to another server because of an unrelated setting.
 */
function rebind(before: Profile, after: Profile): Rebound {
  const { api_token: reference, ...rest } = after;
  const { base_url: boundTo } = before;
  if (reference === undefined || boundTo === undefined || isSameOrigin(boundTo, after.base_url))
    return { entries: after, dropped: undefined };
  return { entries: rest, dropped: { reference, boundTo } };
}

function isSameOrigin(one: string, other: string | undefined): boolean {
  return other !== undefined && new URL(one).origin === new URL(other).origin;
}

export interface ConfigOptions extends GlobalFlags, OutputFlags {
  key: string;
  value: string;
}

const FILES: ReadonlySet<keyof Profile> = new Set(["client_cert", "client_key"]);

/** The value to store for a setting; a file becomes an absolute path, since commands run in other folders too. */
async function valueToStore(
  key: keyof Profile,
  profile: string,
  options: ConfigOptions,
  context: CommandContext,
): Promise<string> {
  const { value } = options;
  if (key === "api_token") return tokenReference(profile, options, context);
  if (key === "store_url" || key === "store_keys") return absoluteReference(value, context);
  if (!FILES.has(key) || value === "") return value;
  return isReference(value) ? absoluteReference(value, context) : absolutePath(value, context);
}

function absolutePath(path: string, { io }: CommandContext): string {
  return resolve(expandUserFolder(path, io.env));
}

function absoluteReference(value: string, context: CommandContext): string {
  const [, path] = /^file:(.+)$/s.exec(value) ?? [];
  return path === undefined ? value : `file:${absolutePath(path, context)}`;
}

/** The reference to store for the API token. A token from stdin is written to a file first. */
async function tokenReference(
  profile: string,
  { value, input }: ConfigOptions,
  context: CommandContext,
): Promise<string> {
  if (value !== "-") return absoluteReference(value, context);
  return storeToken(context.home(), profile, await readToken(input !== false, context));
}

async function readToken(mayPrompt: boolean, { io, redactor, signal, signals }: CommandContext): Promise<string> {
  if (io.stdin.isTTY) {
    if (!mayPrompt || io.env["AGENTAUTH_NO_INPUT"])
      throw usageError(
        "the API token must come from stdin, which is a terminal, and prompts are disabled",
        storingToken(),
      );
    io.say("paste the API token, which is not shown, then press Enter");
  }
  // A console of Windows has no end of the input.
  const text = io.stdin.isTTY
    ? await readHiddenLine(io.stdin, () => signals.raise("SIGINT"), signal)
    : await io.stdin.text({ signal });
  redactor.add(text.trim());
  return checkApiToken(text, "from stdin");
}

/**
 * Reads one line from a terminal that does not show it.
 *
 * @param onInterrupt called for Ctrl-C, which is no signal while the line is read
 * @returns the line, or an empty one at the end of the input
 * @throws the reason of the signal when it fires
 */
export async function readHiddenLine(
  { stream }: Pick<InStream, "stream">,
  onInterrupt: () => void,
  signal: AbortSignal,
): Promise<string> {
  if (signal.aborted) throw abortedError(signal);
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const reader = createInterface({ input: stream, output: nowhere, terminal: true, historySize: 0 });
  try {
    const line = new Promise<string>((resolve) => {
      reader.once("line", resolve);
      reader.once("close", () => resolve(""));
      reader.on("SIGINT", onInterrupt);
    });
    return await untilAborted(line, signal);
  } finally {
    reader.close();
    // A terminal that stays open would keep the program from ending.
    stream.pause();
  }
}
