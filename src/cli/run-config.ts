import { homedir } from "node:os";
import { resolve } from "node:path";
import { AgentAuthError } from "../errors.js";
import { quote } from "../redact.js";
import type { ConfigOptions } from "./commands/config.js";
import {
  type Config,
  checkSetting,
  configPath,
  isProfileKey,
  isProfileName,
  PROFILE_KEYS,
  type Profile,
  readConfig,
  SANDBOX_PROFILE,
  writeConfig,
} from "./config.js";
import { type Deps, homeOf, settingsOf } from "./context.js";
import { nearest } from "./nearest.js";
import type { ColumnSet } from "./output/columns.js";
import { createWriter } from "./output/writer.js";
import { writtenProfile } from "./profile-source.js";
import { formatOf } from "./run-list.js";
import { chooseStore } from "./store-choice.js";
import { keepToken, removeOwnToken } from "./token-file.js";

type Run = (options: ConfigOptions, deps: Deps) => Promise<number | undefined>;

const SETTING_COLUMNS = [
  { path: "key", header: "SETTING" },
  { path: "value", header: "VALUE" },
  { path: "source", header: "FROM" },
];
const SETTINGS: ColumnSet = {
  columns: SETTING_COLUMNS,
  wideColumns: SETTING_COLUMNS,
  fields: ["key", "value", "source"],
};

/** The verbs of `config`. */
export const CONFIG_RUNS: Readonly<Record<"get" | "set" | "unset" | "list" | "path", Run>> = {
  async list(options, deps) {
    const settings = settingsOf(options, deps);
    const { profile, baseUrl, apiToken, authHeader, account, domain, pool, output } = settings;
    const written = writtenProfile(profile.value, readConfig(homeOf(deps)));
    const { value: store, source } = chooseStore(deps.io.env, written);
    const rows = [
      { key: "profile", ...profile },
      { key: "base_url", ...baseUrl },
      // Where the token comes from is what a person needs to know; the token itself is nobody's business.
      { key: "api_token", ...(apiToken && { value: "(set)", source: apiToken.source }) },
      { key: "auth_header", ...(authHeader ?? { value: "Authorization: Bearer", source: "default" }) },
      { key: "account", ...account },
      { key: "domain", ...domain },
      { key: "pool", ...pool },
      { key: "output", ...output },
      { key: "store", value: store, source },
    ];
    const writer = createWriter(formatOf(options, settings, deps.io), { ...SETTINGS, jq: options.jq }, deps.io);
    await writer.write(rows);
    await writer.end();
    return undefined;
  },

  async get(options, deps) {
    const key = requireKey(options.key);
    const { config, name } = chosenProfile(options, deps);
    const value = config.profiles[name]?.[key];
    if (value === undefined) {
      throw new AgentAuthError("usage", `${key} is not set in profile ${name}`, {
        class: "usage",
        hint: `agentauth config set ${key} <value>; agentauth config list shows what is in force`,
      });
    }
    await deps.io.stdout.write(`${value}\n`);
    return undefined;
  },

  async set(options, deps) {
    const key = requireKey(options.key);
    const { config, name } = chosenProfile(options, deps);
    refuseSandbox(name);
    const home = homeOf(deps);
    const value = key === "api_token" ? await tokenReference(name, options, deps) : options.value;
    checkSetting(key, value);
    const before: Profile = config.profiles[name] ?? {};
    const profile: Profile = { ...before, [key]: value };
    await writeConfig(home, { ...config, profiles: { ...config.profiles, [name]: profile } });
    if (key === "api_token" && before.api_token !== value) removeOwnToken(home, name, before.api_token);
    deps.io.say(`${key} is set in profile ${name}`);
    return undefined;
  },

  async unset(options, deps) {
    const key = requireKey(options.key);
    const { config, name } = chosenProfile(options, deps);
    const { [key]: removed, ...rest } = config.profiles[name] ?? {};
    if (removed === undefined) {
      deps.io.say(`${key} was not set in profile ${name}`);
      return undefined;
    }
    const home = homeOf(deps);
    await writeConfig(home, { ...config, profiles: { ...config.profiles, [name]: rest } });
    if (key === "api_token") removeOwnToken(home, name, removed);
    deps.io.say(`${key} is no longer set in profile ${name}`);
    return undefined;
  },

  async path(_options, deps) {
    await deps.io.stdout.write(`${configPath(homeOf(deps))}\n`);
    return undefined;
  },
};

function requireKey(key: string): keyof Profile {
  if (isProfileKey(key)) return key;
  const keys = Object.keys(PROFILE_KEYS);
  const meant = nearest(key, keys);
  throw new AgentAuthError("usage", `there is no setting ${quote(key)}`, {
    class: "usage",
    hint: meant === undefined ? `settings: ${keys.join(", ")}` : `did you mean ${meant}?`,
  });
}

/** The profile that the flag, the environment or the settings file names; it need not exist yet. */
function chosenProfile(options: ConfigOptions, deps: Deps): { config: Config; name: string } {
  const config = readConfig(homeOf(deps));
  const name = options.profile ?? deps.io.env["AGENTAUTH_PROFILE"] ?? config.profile;
  if (isProfileName(name)) return { config, name };
  const source = options.profile === undefined ? "AGENTAUTH_PROFILE" : "--profile";
  throw new AgentAuthError("usage", `${source} ${quote(name)} is no profile name`, {
    class: "usage",
    hint: 'use letters, digits, "-", "_" and "."',
  });
}

function refuseSandbox(name: string): void {
  if (name !== SANDBOX_PROFILE) return;
  throw new AgentAuthError(
    "usage",
    `the profile ${name} stands for the sandbox that is running, it has no settings of its own`,
    {
      class: "usage",
      hint: "name another one with --profile",
    },
  );
}

/** What is written down for the API token: where it is. A token that comes on stdin is kept in a file first. */
async function tokenReference(profile: string, { value, input }: ConfigOptions, deps: Deps): Promise<string> {
  if (value.startsWith("file:")) {
    const path = value.slice("file:".length).replace(/^~(?=\/)/, homedir());
    // The settings are read in other folders too.
    return path === "" ? value : `file:${resolve(path)}`;
  }
  if (value !== "-") return value;
  return keepToken(homeOf(deps), profile, await readToken(input !== false, deps));
}

async function readToken(mayAsk: boolean, { io, redactor, signal }: Deps): Promise<string> {
  if (io.stdin.isTTY) {
    if (!mayAsk || io.env["AGENTAUTH_NO_INPUT"]) {
      throw new AgentAuthError(
        "usage",
        "the API token is to be read from stdin, which is a terminal, and nothing may be asked",
        {
          class: "usage",
          hint: "agentauth config set api_token - < token.txt",
        },
      );
    }
    io.say("paste the API token, then press Enter and Ctrl-D");
  }
  const token = (await io.stdin.text({ signal })).replace(/\r?\n$/, "");
  redactor.add(token);
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  throw new AgentAuthError(
    "usage",
    "what came on stdin is no API token: it is empty, or has blanks or line breaks in it",
    {
      class: "usage",
    },
  );
}
