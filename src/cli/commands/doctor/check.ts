import { type AgentAuthError, abortedError, isAgentAuthError, messageOf } from "../../../errors.js";
import type { Env } from "../../../platform/system.js";
import { type EngineStore, openEngine } from "../../../profile/engine/open-engine.js";
import { isEngine } from "../../../profile/profile-settings.js";
import { resolveSettings } from "../../../profile/resolve-settings.js";
import { findHome, type SettingFlags, type Settings, type Sourced } from "../../../profile/settings.js";
import { type Config, profileOf, readConfig, writtenProfile } from "../../../profile/settings-file.js";
import { chooseStore, type StoreChoice } from "../../../profile/store-choice.js";
import { engineHost } from "../../clients/store.js";
import type { AgentFlags } from "../../flags/agent.js";
import { flagText } from "../../flags/flag-name.js";
import type { OutputFlags } from "../../flags/output.js";
import { type CommandContext, once } from "../../runtime/context.js";
import { EXIT_CODES } from "../../runtime/exit-codes.js";
import { cliHint } from "../../runtime/hints.js";

/** How a check ended; only `failed` changes the exit code. */
export type CheckState = "ok" | "warning" | "failed" | "skipped";

/** The result of a check, as text for the user. */
export interface CheckFinding {
  /** Only `failed` changes the exit code. */
  state: CheckState;
  /** What was found. */
  found: string;
  /** The command, flag or setting that helps. */
  hint?: string;
}

export interface CheckResult extends CheckFinding {
  /** What was checked. */
  name: string;
}

/** The classes of failures, the most severe first: each with the hint for an error that has none. */
const HINTS = {
  usage: "correct it where it is set: this report has the source of each setting",
  store: "set AGENTAUTH_HOME to a folder that you can write to",
  unavailable: "run it again with --verbose, which logs each request",
} as const;

/** The class of a failure, which is that of an error and names an exit code. */
type FailureClass = keyof typeof HINTS;
const FAILURES = Object.keys(HINTS) as FailureClass[];

/** What a check looks for. May throw: an error becomes a finding. Undefined for a check that is not for this run. */
export type Check = (subject: Subject) => CheckFinding | undefined | Promise<CheckFinding | undefined>;

/** Checks by their names. */
export type Checks = Readonly<Record<string, Check>>;

function findingWith(state: CheckState): (found: string, hint?: string) => CheckFinding {
  return (found, hint) => ({ state, found, ...(hint !== undefined && { hint }) });
}

/** A finding without a problem. */
export const ok = findingWith("ok");
/** A finding that the user should know of, although everything works. */
export const warning = findingWith("warning");
/** A finding that prevents something from working, or from working safely. */
export const failed = findingWith("failed");
/** A check that was not run, with the reason. */
export const skipped = findingWith("skipped");

/**
 * Runs every check, at the same time where they wait. A check that throws has failed; the others still run.
 *
 * @param groups the checks, each group with the class of its failures, in the order of the report
 * @returns the findings in order, and 0 or the exit code of the most severe failure
 * @throws `AgentAuthError` `aborted` when the signal fires
 */
export async function runChecks(
  groups: readonly (readonly [FailureClass, Checks])[],
  subject: Subject,
  signal: AbortSignal,
): Promise<{ results: CheckResult[]; exitCode: number }> {
  const failures = new Set<string>();
  const named = groups.flatMap(([area, checks]) => Object.entries(checks).map((entry) => [area, ...entry] as const));
  const findings = await Promise.all(
    named.map(async ([area, name, check]) => {
      const { found, failure } = await attempt(area, () => check(subject));
      if (found?.state === "failed") failures.add(failure);
      return found === undefined ? [] : [{ name, ...found }];
    }),
  );
  if (signal.aborted) throw abortedError(signal);
  const mostSevere = FAILURES.find((failure) => failures.has(failure));
  return { results: findings.flat(), exitCode: EXIT_CODES[mostSevere ?? "ok"] };
}

async function attempt(
  failure: FailureClass,
  run: () => ReturnType<Check>,
): Promise<{ found: CheckFinding | undefined; failure: FailureClass }> {
  try {
    return { found: await run(), failure };
  } catch (thrown) {
    if (!isAgentAuthError(thrown)) {
      const found = `the check failed: ${messageOf(thrown)}`;
      return { found: failed(found, "this is a bug in agentauth: please report it"), failure };
    }
    const { message, hint } = cliHint(thrown);
    // A wrong setting is one even if an online check finds it; a store may be in an engine that does not answer.
    const own = FAILURES.find((one) => one === thrown.class) ?? failure;
    return { found: failed(message, hint ?? HINTS[own]), failure: own };
  }
}

export interface DoctorFlags extends AgentFlags, OutputFlags {
  url?: string;
  online?: boolean;
  /** Whether the settings by default are reported too. */
  all?: boolean;
}

/** The settings of this run as far as they can be read, and the problems with the others. */
interface KnownSettings {
  settings: Settings;
  config: Config;
  /** The folder of our files; undefined for a user without one, and for one that is invalid. */
  home: Sourced | undefined;
  /** Undefined if the choice is invalid. */
  store: StoreChoice | undefined;
  problems: Partial<Record<"file" | "profile" | "baseUrl" | "store", AgentAuthError>>;
}

/** What the checks of a run look at. */
export interface Subject extends KnownSettings {
  /** With the bounds of requests: each is sent once, with a short timeout. */
  options: DoctorFlags;
  env: Env;
  /** The engine of the store, opened at most once; undefined if the store is in none. */
  engine: (() => EngineStore) | undefined;
  /** With the settings that can be read. */
  context: CommandContext;
}

/** What the checks of a run look at. */
export function subjectOf(options: DoctorFlags, context: CommandContext): Subject {
  const { env } = context.io;
  const known = knownSettings(options, env);
  const flags = { ...options, timeout: options.timeout ?? 10, retries: options.retries ?? 0 };
  const { value, engine } = known.store ?? {};
  return {
    ...{ ...known, options: flags, env, context: context.with({ flags, settings: known.settings }) },
    engine: value && isEngine(value) ? once(() => openEngine(value, engine, engineHost(context))) : undefined,
  };
}

const EMPTY: Config = { schema: 1, profile: "default", profiles: {} };

/** Resolves every setting as `resolveSettings` does, but reports a wrong setting without hiding the others. */
export function knownSettings(flags: SettingFlags, env: Env): KnownSettings {
  const problems: KnownSettings["problems"] = {};
  const report = (what: keyof typeof problems, error: unknown) => {
    if (!isAgentAuthError(error)) throw error;
    problems[what] = error;
  };
  const unlessWrong = <T>(what: keyof typeof problems, read: () => T): T | undefined => {
    try {
      return read();
    } catch (error) {
      report(what, error);
      return undefined;
    }
  };
  const home = unlessWrong("file", () => findHome(env));
  const config = unlessWrong("file", () => readConfig(home?.value)) ?? EMPTY;
  const settings = resolveSettings(flags, env, config, home?.value, flagText, { onWrong: report });
  const store = unlessWrong("store", () => chooseStore(env, writtenProfile(settings.profile.value, config)));
  const profile = profileOf(settings.profile, home?.value);
  return { settings: { ...settings, profile }, config, home, store, problems };
}
