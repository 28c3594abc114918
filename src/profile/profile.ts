import { existsSync } from "node:fs";
import type { Env } from "../platform/system.js";
import { readSandboxState } from "./sandbox-state.js";
import { first, type Sourced } from "./settings.js";
import { type Config, configPath, type Profile, SANDBOX_PROFILE } from "./settings-file.js";

/** The profile in use and its source, even if there is no such profile. @param flag its value, and what messages call it */
export function chosenProfile(flag: [string | undefined, string], env: Env, { profile }: Config): Sourced {
  const inEnv = env["AGENTAUTH_PROFILE"];
  return first(flag, [inEnv, "AGENTAUTH_PROFILE"]) ?? { value: profile, source: "settings file" };
}

/** The profile with its source: one that no settings file names is the default. */
export function profileOf(profile: Sourced, home: string): Sourced {
  const unwritten = profile.source === "settings file" && !existsSync(configPath(home));
  return unwritten ? { ...profile, source: "default" } : profile;
}

/** The profiles that can be named; that of the sandbox where one runs. */
export function profileNames({ profiles }: Config, home: string): string[] {
  const running = readSandboxState(home) ? [SANDBOX_PROFILE] : [];
  return [...new Set(["default", ...Object.keys(profiles), ...running])];
}

/** A profile's name, and what is written down in it. */
export function writtenProfile(name: string, { profiles }: Config): { name: string; entries: Profile } {
  return { name, entries: (Object.hasOwn(profiles, name) ? profiles[name] : undefined) ?? {} };
}
