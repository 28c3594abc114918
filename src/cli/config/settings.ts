import type { Env } from "../../platform/system.js";
import { resolveSettings } from "../../profile/resolve-settings.js";
import type { SettingFlags, Settings } from "../../profile/settings.js";
import { homeFolder } from "../../profile/settings.js";
import { readConfig } from "../../profile/settings-file.js";
import { flagText } from "../runtime/pasted-words.js";

/** Every setting of a command line with its source. */
export function settingsOf(flags: SettingFlags, env: Env): Settings {
  const home = homeFolder(env);
  return resolveSettings(flags, env, readConfig(home), home, flagText);
}
