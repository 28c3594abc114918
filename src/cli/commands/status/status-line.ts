import { ACCESS_TEXT, homeAccess } from "../../config/home-access.js";
import { profileOf } from "../../config/profile.js";
import { storeChoiceOf } from "../../config/store.js";
import type { CommandContext } from "../../runtime/context.js";
import type { Settings } from "../../runtime/settings.js";

/**
 * Which logins a command looked at, and what decided so, in one line.
 *
 * @param location where the store says that it keeps things; default our folder
 */
export function sourcesLine(
  { profile, issuer }: Settings,
  context: CommandContext,
  { all = false, location = context.home() } = {},
): string {
  const home = context.home();
  const store = storeChoiceOf(profile.value, context.io.env, home);
  const { value, source } = profileOf(profile, home);
  const whose = all ? "all profiles (--all)" : `profile ${value} (${source})`;
  const access = homeAccess(home);
  const who = access === undefined ? "" : `, ${access === "private" ? "" : "which "}${ACCESS_TEXT[access]}`;
  const kept = store.value === "memory" ? "nothing is kept when a command ends" : `${location}${who}`;
  const only = issuer === undefined ? "" : `, issuer ${issuer.value} (${issuer.source})`;
  return `${whose}${only}, store ${store.value} (${store.source}): ${kept}`;
}
