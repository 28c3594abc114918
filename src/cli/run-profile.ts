import { AgentAuthError } from "../errors.js";
import { quote } from "../redact.js";
import type { ProfileOptions } from "./commands/profile.js";
import { type Config, readConfig, SANDBOX_PROFILE, writeConfig } from "./config.js";
import { type Deps, homeOf } from "./context.js";
import { nearest } from "./nearest.js";
import type { ColumnSet } from "./output/columns.js";
import { createWriter } from "./output/writer.js";
import { formatOf } from "./run-list.js";
import { readSandboxState } from "./sandbox-state.js";
import { resolveSettings } from "./settings.js";
import { removeOwnToken } from "./token-file.js";

type Run = (options: ProfileOptions, deps: Deps) => Promise<number | undefined>;

const COLUMNS = [
  { path: "name", header: "PROFILE" },
  { path: "current", header: "USED", kind: "bool" },
  { path: "base_url", header: "BASE URL" },
] as const;
const PROFILES: ColumnSet = { columns: COLUMNS, wideColumns: COLUMNS, fields: ["name", "current", "base_url"] };

/** The verbs of `profile`. */
export const PROFILE_RUNS: Readonly<Record<"list" | "use" | "delete", Run>> = {
  async list(options, deps) {
    const home = homeOf(deps);
    const config = readConfig(home);
    // A profile that does not exist must not keep anybody from seeing which ones do.
    const used = options.profile ?? deps.io.env["AGENTAUTH_PROFILE"] ?? config.profile;
    const names = [...new Set(["default", ...Object.keys(config.profiles)])];
    const sandbox = readSandboxState(home);
    if (sandbox) names.push(SANDBOX_PROFILE);
    const rows = names.map((name) => {
      const base_url = name === SANDBOX_PROFILE ? sandbox?.base_url : config.profiles[name]?.base_url;
      return { name, current: name === used, ...(base_url !== undefined && { base_url }) };
    });
    const settings = resolveSettings({ profile: "default" }, {}, { ...config, profile: "default" }, home);
    const writer = createWriter(formatOf(options, settings, deps.io), { ...PROFILES, jq: options.jq }, deps.io);
    await writer.write(rows);
    await writer.end();
    return undefined;
  },

  async use(options, deps) {
    const home = homeOf(deps);
    const config = readConfig(home);
    if (options.name !== SANDBOX_PROFILE) requireProfile(options.name, config);
    await writeConfig(home, { ...config, profile: options.name });
    deps.io.say(`profile ${options.name} is used from now on`);
    const inEnv = deps.io.env["AGENTAUTH_PROFILE"];
    if (inEnv && inEnv !== options.name)
      deps.io.warn(`AGENTAUTH_PROFILE is set to ${quote(inEnv)}, and it comes first`);
    return undefined;
  },

  async delete(options, deps) {
    const home = homeOf(deps);
    const config = readConfig(home);
    requireProfile(options.name, config);
    const { [options.name]: removed, ...profiles } = config.profiles;
    await writeConfig(home, {
      ...config,
      profile: config.profile === options.name ? "default" : config.profile,
      profiles,
    });
    removeOwnToken(home, options.name, removed?.api_token);
    deps.io.say(`profile ${options.name} is deleted`);
    return undefined;
  },
};

function requireProfile(name: string, config: Config): void {
  if (name === "default" || Object.hasOwn(config.profiles, name)) return;
  const names = ["default", ...Object.keys(config.profiles)];
  const meant = nearest(name, names);
  throw new AgentAuthError("usage", `there is no profile ${quote(name)}`, {
    class: "usage",
    hint: meant === undefined ? `profiles: ${names.join(", ")}` : `did you mean ${meant}?`,
  });
}
