import { join } from "node:path";
import { AgentAuthError } from "../errors.js";
import { quote } from "../redact.js";
import type { ConfigOptions } from "./commands/config.js";
import { type Config, checkSetting, configPath, isProfileKey, isProfileName, PROFILE_KEYS, type Profile, readConfig, writeConfig } from "./config.js";
import { type Deps, homeOf, settingsOf } from "./context.js";
import type { ColumnSet } from "./output/columns.js";
import { createWriter } from "./output/writer.js";
import { formatOf } from "./run-list.js";
import { writeSecretFile } from "./secret-file.js";

type Run = (options: ConfigOptions, deps: Deps) => Promise<number | undefined>;

const SETTING_COLUMNS = [
  { path: "key", header: "SETTING" },
  { path: "value", header: "VALUE" },
  { path: "source", header: "FROM" },
];
const SETTINGS: ColumnSet = { columns: SETTING_COLUMNS, wideColumns: SETTING_COLUMNS, fields: ["key", "value", "source"] };

/** The verbs of `config`. */
export const CONFIG_RUNS: Readonly<Record<"get" | "set" | "unset" | "list" | "path", Run>> = {
  async list(options, deps) {
    const settings = settingsOf(options, deps);
    const { profile, baseUrl, apiToken, authHeader, account, domain, pool, output } = settings;
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
    const value = key === "api_token" && options.value === "-" ? await keepToken(name, deps) : options.value;
    checkSetting(key, value);
    const profile: Profile = { ...config.profiles[name], [key]: value };
    await writeConfig(homeOf(deps), { ...config, profiles: { ...config.profiles, [name]: profile } });
    deps.io.say(`${key} is set in profile ${name}`);
    return undefined;
  },

  async unset(options, deps) {
    const key = requireKey(options.key);
    const { config, name } = chosenProfile(options, deps);
    const { [key]: removed, ...rest } = config.profiles[name] ?? {};
    if (removed === undefined) deps.io.say(`${key} was not set in profile ${name}`);
    else await writeConfig(homeOf(deps), { ...config, profiles: { ...config.profiles, [name]: rest } });
    return undefined;
  },

  async path(_options, deps) {
    await deps.io.stdout.write(`${configPath(homeOf(deps))}\n`);
    return undefined;
  },
};

function requireKey(key: string): keyof Profile {
  if (isProfileKey(key)) return key;
  throw new AgentAuthError("usage", `there is no setting ${quote(key)}`, {
    class: "usage",
    hint: `settings: ${Object.keys(PROFILE_KEYS).join(", ")}`,
  });
}

/** The profile that the flag, the environment or the settings file names; it need not exist yet. */
function chosenProfile(options: ConfigOptions, deps: Deps): { config: Config; name: string } {
  const config = readConfig(homeOf(deps));
  const name = options.profile ?? deps.io.env["AGENTAUTH_PROFILE"] ?? config.profile;
  if (isProfileName(name)) return { config, name };
  throw new AgentAuthError("usage", `${quote(name)} is no profile name: letters, digits, "-", "_" and "."`, { class: "usage" });
}

async function keepToken(profile: string, deps: Deps): Promise<string> {
  if (deps.io.stdin.isTTY) deps.io.say("paste the API token, then press Enter and Ctrl-D");
  const token = (await deps.io.stdin.text()).replace(/\r?\n$/, "");
  deps.redactor.add(token);
  if (!/^[\x21-\x7e]+$/.test(token)) {
    throw new AgentAuthError("usage", "what came on stdin is no API token: it is empty, or has blanks or line breaks in it", {
      class: "usage",
    });
  }
  const path = join(homeOf(deps), "tokens", profile);
  writeSecretFile(path, `${token}\n`);
  return `file:${path}`;
}
