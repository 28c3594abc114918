import { type AgentAuthError, usageError } from "../../../errors.js";
import { suggestionHint } from "../../../http/suggest.js";
import { changeConfig } from "../../../profile/change-config.js";
import {
  type Config,
  checkProfileName,
  chosenProfile,
  profileNames,
  readConfig,
  readSandboxState,
  SANDBOX_PROFILE,
  writtenProfile,
} from "../../../profile/settings-file.js";
import { quote } from "../../../redact.js";
import { removeOwnToken } from "../../config/effective.js";
import type { GlobalFlags, OutputFlags } from "../../flags/global.js";
import { rowColumns } from "../../output/columns.js";
import { printRows } from "../../output/writer.js";
import type { CommandContext } from "../../runtime/context.js";

const PROFILES = rowColumns([
  { path: "name", header: "PROFILE", kind: "name" },
  { path: "current", header: "USED", kind: "bool" },
  { path: "base_url", header: "BASE URL" },
  { path: "source", header: "SOURCE" },
]);

/** A profile as `profile list -o json` prints it. */
interface ProfileRow {
  /** Its name. */
  name: string;
  /** Whether it is the one in use. */
  current: boolean;
  /** The base URL of the service. */
  base_url?: string;
  /** What selected the profile in use. */
  source?: string;
}

type ProfileRun = (options: ProfileOptions, context: CommandContext) => Promise<undefined>;

export const PROFILE_RUNS: Readonly<Record<"list" | "use" | "delete", ProfileRun>> = {
  async list(options, context) {
    const home = context.home();
    const config = readConfig(home);
    // An unknown profile must not prevent the list of known ones.
    const used = checkProfileName(chosenProfile([options.profile, "--profile"], context.io.env, config), home);
    const names = profileNames(config, home);
    const sandbox = readSandboxState(home);
    const rows = names.map((name): ProfileRow => {
      const base_url = name === SANDBOX_PROFILE ? sandbox?.base_url : config.profiles[name]?.base_url;
      const current = name === used.value;
      return { name, current, ...(base_url !== undefined && { base_url }), ...(current && { source: used.source }) };
    });
    if (!names.includes(used.value))
      context.io.warn(`${used.source} names the profile ${quote(used.value)}, which does not exist`);
    const { output } = writtenProfile("default", config).entries;
    // The settings of an unknown profile cannot be resolved.
    const settings = () => ({ output: output ? { value: output, source: "profile default" } : undefined });
    await printRows(rows, PROFILES, options, { ...context, settings });
  },

  async use(options, context) {
    const home = context.home();
    const change = (config: Config) => {
      if (options.name === SANDBOX_PROFILE) throw sandboxNotSelected();
      requireProfile(options.name, config, profileNames(config, home));
      return { ...config, profile: options.name };
    };
    await changeConfig(home, change, context.signal);
    context.io.say(`using profile ${options.name} from now on`);
    const inEnv = context.io.env["AGENTAUTH_PROFILE"];
    if (inEnv && inEnv !== options.name)
      context.io.warn(`AGENTAUTH_PROFILE is set to ${quote(inEnv)} and takes precedence`);
  },

  async delete(options, context) {
    const home = context.home();
    let token: string | undefined;
    let isWritten = false;
    const change = (config: Config) => {
      requireProfile(options.name, config, ["default", ...Object.keys(config.profiles)]);
      const { [options.name]: removed, ...profiles } = config.profiles;
      token = removed?.api_token;
      isWritten = removed !== undefined;
      return { ...config, profile: config.profile === options.name ? "default" : config.profile, profiles };
    };
    await changeConfig(home, change, context.signal);
    removeOwnToken(home, options.name, token);
    context.io.say(`profile ${options.name} ${isWritten ? "is deleted" : "has no settings to delete"}`);
  },
};

/** What runs on after the sandbox has ended, such as a cron job, uses the selected profile. */
function sandboxNotSelected(): AgentAuthError {
  const hint =
    "--profile sandbox uses it in one command; a list without a base URL uses the running sandbox without it";
  return usageError("the profile sandbox cannot be the selected one: it ends with the sandbox", hint);
}

function requireProfile(name: string, config: Config, names: readonly string[]): void {
  if (name === "default" || Object.hasOwn(config.profiles, name)) return;
  throw usageError(`unknown profile ${quote(name)}`, suggestionHint(name, names, `profiles: ${names.join(", ")}`));
}

export interface ProfileOptions extends GlobalFlags, OutputFlags {
  name: string;
}
