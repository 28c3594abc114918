import { existsSync } from "node:fs";
import { type Config, configPath, type Profile } from "./config.js";
import type { Sourced } from "./settings.js";

/** The profile with its source: one that no settings file names is the default. */
export function profileOf(profile: Sourced, home: string): Sourced {
  const unwritten = profile.source === "settings file" && !existsSync(configPath(home));
  return unwritten ? { ...profile, source: "default" } : profile;
}

/** A profile's name, and what is written down in it. */
export function writtenProfile(name: string, { profiles }: Config): { name: string; entries: Profile } {
  return { name, entries: (Object.hasOwn(profiles, name) ? profiles[name] : undefined) ?? {} };
}
