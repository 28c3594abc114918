import { readConfig } from "../../config/file.js";
import { homeOf } from "../../config/home.js";
import { ACCESS_TEXT, homeAccess } from "../../config/home-access.js";
import { profileOf, writtenProfile } from "../../config/profile.js";
import type { Settings } from "../../config/settings.js";
import { chooseStore } from "../../config/store.js";
import type { CommandContext } from "../../runtime/context.js";

/**
 * Which logins a command looked at, and what decided so, in one line.
 *
 * @param location where the store says that it keeps things; default our folder
 */
export function sourcesLine(
  { profile, issuer }: Settings,
  deps: CommandContext,
  { all = false, location = homeOf(deps) } = {},
): string {
  const home = homeOf(deps);
  const store = chooseStore(deps.io.env, writtenProfile(profile.value, readConfig(home)));
  const { value, source } = profileOf(profile, home);
  const whose = all ? "all profiles (--all)" : `profile ${value} (${source})`;
  const access = homeAccess(home);
  const who = access === undefined ? "" : `, ${access === "private" ? "" : "which "}${ACCESS_TEXT[access]}`;
  const kept = store.value === "memory" ? "nothing is kept when a command ends" : `${location}${who}`;
  const only = issuer === undefined ? "" : `, issuer ${issuer.value} (${issuer.source})`;
  return `${whose}${only}, store ${store.value} (${store.source}): ${kept}`;
}
