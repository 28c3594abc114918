import { existsSync } from "node:fs";
import { type AgentAuthError, abortedError, errorMessage, isAgentAuthError } from "../../../errors.js";
import { suggest } from "../../../http/suggest.js";
import type { Env } from "../../../platform.js";
import { buildSendOptions, systemAuthorities } from "../../../profile/connection-settings.js";
import { type EngineStore, openEngine } from "../../../profile/engine/open-engine.js";
import { isEngine } from "../../../profile/profile-settings.js";
import { resolveSettings } from "../../../profile/resolve-settings.js";
import { storingToken } from "../../../profile/service-settings.js";
import { findHome, type SettingFlags, type Settings, type Sourced } from "../../../profile/settings.js";
import type { Config } from "../../../profile/settings-file.js";
import { checkProfileName, configPath, readConfig, writtenProfile } from "../../../profile/settings-file.js";
import { chooseStore, type StoreChoice } from "../../../profile/store-choice.js";
import { quote } from "../../../redact.js";
import { networkOptions } from "../../clients/network.js";
import { engineHost } from "../../clients/store.js";
import type { AgentFlags } from "../../flags/agent.js";
import { flagText } from "../../flags/flag-name.js";
import type { OutputFlags } from "../../flags/global.js";
import { ENVIRONMENT } from "../../runtime/agent-mode.js";
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
      const found = `the check failed: ${errorMessage(thrown)}`;
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
export function buildSubject(options: DoctorFlags, context: CommandContext): Subject {
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
  const profile = checkProfileName(settings.profile, home?.value);
  return { settings: { ...settings, profile }, config, home, store, problems };
}

/** What this machine has and what is set on it: Node, packages, variables, the network and the settings. */
export const MACHINE_CHECKS = {
  node: () => checkNode(process.version),

  /** Variables with our prefix that nothing reads, and misleading values. The values of unknown variables are not shown. */
  variables({ env, config }) {
    const names = new Set([
      ...KNOWN_VARIABLES,
      ...Object.values(config.profiles)
        .flatMap(({ api_token = "", store_url = "", store_keys = "" }) => [api_token, store_url, store_keys])
        .flatMap((text) => (text.startsWith("env:") ? [text.slice("env:".length)] : [])),
    ]);
    const ours = Object.keys(env).filter((name) => name.toUpperCase().startsWith(PREFIX) && env[name]);
    const unknownNames = ours.filter((name) => !names.has(name)).sort();
    const { AGENTAUTH_ERRORS: errors, AGENTAUTH_NO_INPUT: noInput } = env;
    const remarks = unknownNames.map((name) => `${name} is set, but nothing reads it`);
    if (errors && errors !== "json")
      remarks.push(`AGENTAUTH_ERRORS is ${quote(errors, 40)}; only "json" has an effect`);
    if (noInput && /^(?:0|false|no|off)$/i.test(noInput))
      remarks.push(`AGENTAUTH_NO_INPUT is ${quote(noInput)}, which counts as set like any other value`);
    if (remarks.length === 0) return ok(ours.length === 0 ? "none are set" : `${ours.length} set, all known`);
    return warning(remarks.join("; "), unknownHint(unknownNames));
  },

  /** Node's switch that disables certificate checks. */
  tls({ env }) {
    if (env["NODE_TLS_REJECT_UNAUTHORIZED"] !== "0") return ok("certificates are verified");
    return failed(
      "NODE_TLS_REJECT_UNAUTHORIZED is 0: certificates are not verified, and anyone on the network path can read every token",
      "unset NODE_TLS_REJECT_UNAUTHORIZED; trust your own certificate authority with --ca-file <file> or NODE_EXTRA_CA_CERTS",
    );
  },

  /** Whether proxies, certificate authorities and the client certificate can be used, as each request reads them. */
  connections({ options, settings, env, context }) {
    const { proxies } = buildSendOptions(networkOptions(options, settings, context), context.redactor);
    const { useSystemCa: system } = settings;
    const extra = env["NODE_EXTRA_CA_CERTS"];
    const trusted = ["Node's built-in list"];
    if (system?.value === "yes")
      trusted.push(`${systemAuthorities(system.source).length} of the system (${system.source})`);
    if (options.caFile) trusted.push(`${options.caFile} (--ca-file)`);
    if (extra) trusted.push(`${extra} (NODE_EXTRA_CA_CERTS)`);
    return ok(`${proxies.https || proxies.http ? "by a proxy" : "without a proxy"}; trusted: ${trusted.join(", ")}`);
  },

  /** Whether the settings file, the profile and the base URL can be used. Tokens for MCP servers need none of them. */
  settings({ settings: { profile, baseUrl }, config, problems, home }) {
    const problem = problems.file ?? problems.profile ?? problems.baseUrl;
    if (problem !== undefined) throw problem;
    const path = home && configPath(home.value);
    const names = Object.keys(config.profiles).join(", ") || "none";
    const file = path && existsSync(path) ? `${path}, profiles: ${names}` : "no file";
    const found = `${file}; profile ${profile.value} (${profile.source})`;
    if (baseUrl !== undefined) return ok(found);
    return ok(`${found}; no base_url, which lists need: agentauth config set base_url <url>`);
  },

  /** Whether the API token can be read. It is not shown, and every output masks it. */
  api_token({ settings, context }) {
    const { apiToken, baseUrl } = settings;
    if (apiToken === undefined) {
      const hint = `set AGENTAUTH_API_TOKEN, or store a token: ${storingToken()}`;
      return baseUrl ? warning(`not set for ${baseUrl.value}`, hint) : skipped("not set: lists need it");
    }
    const token = apiToken.read();
    context.redactor.add(token);
    if (token === "") return failed(`the token from ${apiToken.source} is empty`, "agentauth config set api_token -");
    return ok(`can be read (${apiToken.source})`);
  },
} satisfies Checks;

/** The oldest supported Node; a test compares it with package.json. */
export const NODE_FLOOR = "20.19";

/** @param version as in `process.version` */
export function checkNode(version: string): CheckFinding {
  if (version.localeCompare(`v${NODE_FLOOR}`, "en", { numeric: true }) >= 0)
    return ok(`${version}, at least ${NODE_FLOOR} is required`);
  const found = `${version} is too old: at least ${NODE_FLOOR} is required`;
  return failed(found, "install a newer Node: https://nodejs.org");
}

const PREFIX = "AGENTAUTH_";

/** Every variable that this program reads, and the one that `exec` sets for another. */
export const KNOWN_VARIABLES: readonly string[] = [
  ...ENVIRONMENT.flatMap(([names]) => names.split(", ")).filter((name) => name.startsWith(PREFIX)),
  "AGENTAUTH_TOKEN",
];

/** Compares names without the prefix: with it, all names look alike. */
function unknownHint(unknownNames: readonly string[]): string {
  const endings = KNOWN_VARIABLES.map((name) => name.slice(PREFIX.length));
  const suggestions = unknownNames.flatMap((name) => suggest(name.slice(PREFIX.length), endings) ?? []);
  if (suggestions.length > 0) return `did you mean ${suggestions.map((ending) => PREFIX + ending).join(", ")}?`;
  return "agentauth help environment lists the variables and their values";
}
