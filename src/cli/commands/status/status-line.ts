import { profileOf } from "../../../profile/profile.js";
import type { Settings } from "../../../profile/settings.js";
import { isEngine, storeChoiceOf } from "../../../profile/store-choice.js";
import { ACCESS_TEXT, homeAccess } from "../../config/home-access.js";
import type { CommandContext } from "../../runtime/context.js";

/**
 * The logins that a command read, and the sources of that choice, in one line.
 *
 * @param location the location that the store reports; default: the home folder
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
  // Who can read the folder is no matter of a store elsewhere.
  const access = isEngine(store.value) ? undefined : homeAccess(home);
  const accessText =
    access === undefined
      ? ""
      : `, ${access === "private" || access === "unchecked" ? "" : "which "}${ACCESS_TEXT[access]}`;
  const stored = store.value === "memory" ? "nothing is stored after a command ends" : `${location}${accessText}`;
  const only = issuer === undefined ? "" : `, issuer ${issuer.value} (${issuer.source})`;
  return `${whose}${only}, store ${store.value} (${store.source}): ${stored}`;
}
