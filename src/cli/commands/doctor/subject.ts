import { type AgentAuthError, isAgentAuthError } from "../../../errors.js";
import type { Env } from "../../../platform/system.js";
import { type EngineReport, engineReport } from "../../../profile/engine/health.js";
import { type EngineStore, openEngine } from "../../../profile/engine/open-engine.js";
import { isEngine } from "../../../profile/profile-settings.js";
import { resolveSettings } from "../../../profile/resolve-settings.js";
import { findHome, type SettingFlags, type Settings, type Sourced } from "../../../profile/settings.js";
import { type Config, profileOf, readConfig, writtenProfile } from "../../../profile/settings-file.js";
import { chooseStore, type StoreChoice } from "../../../profile/store-choice.js";
import { parseMcpUrlArgument } from "../../clients/mcp-url.js";
import { engineHost } from "../../clients/store.js";
import type { AgentFlags } from "../../flags/agent.js";
import { flagText } from "../../flags/flag-name.js";
import type { OutputFlags } from "../../flags/output.js";
import { type CommandContext, once } from "../../runtime/context.js";
import { type Check, type CheckFinding, skipped } from "./check.js";
import { fetchOnce, type ServiceReply } from "./service-reply.js";

/** Options of `doctor`. */
export interface DoctorFlags extends AgentFlags, OutputFlags {
  url?: string;
  online?: boolean;
  /** Whether the settings by default are reported too. */
  all?: boolean;
}

/** What the checks of a run look at. */
export interface Subject {
  /** With the bounds of requests: each is sent once, with a short timeout. */
  options: DoctorFlags;
  env: Env;
  known: KnownSettings;
  /** The folder of our files; undefined for a user without one, and for one that is invalid. */
  home: Sourced | undefined;
  /** Why the user may not be prompted; undefined if that is allowed. */
  noInput: string | undefined;
  /** The chosen store; undefined if the choice is invalid. */
  store: StoreChoice | undefined;
  /** The engine of the store, opened and read at most once; undefined if the store is in none. */
  engine: { open(): EngineStore; report(): Promise<EngineReport> } | undefined;
  /** The URL of the MCP server to check. */
  url: string | undefined;
  context: CommandContext;
  /** The context of requests to the service, with the settings that can be read, and of those to the MCP server. */
  service: CommandContext;
  server: CommandContext;
  /** The reply to the one request to the service, which its checks share. */
  reply(): Promise<ServiceReply>;
}

/** Checks by their names. */
export type Checks = Readonly<Record<string, Check<Subject>>>;

/** A check of the folder of our files, which a user may not have. */
export function withHome<Found>(
  check: (home: string, subject: Subject) => Found,
): (subject: Subject) => Found | CheckFinding {
  return (subject) =>
    subject.home === undefined ? skipped("there is no folder for files") : check(subject.home.value, subject);
}

/**
 * What the checks of a run look at.
 *
 * @throws `AgentAuthError` `usage` for a URL of an MCP server that is none
 */
export function subjectOf(options: DoctorFlags, context: CommandContext): Subject {
  const { env } = context.io;
  const url = options.url === undefined ? undefined : parseMcpUrlArgument(options.url);
  const known = knownSettings(options, env);
  // If a server does not respond, each request is sent once, with a short timeout.
  const flags = { ...options, timeout: options.timeout ?? 10, retries: options.retries ?? 0 };
  const service = context.with({ flags, settings: known.settings });
  const noInput = options.input === false ? "--no-input" : env["AGENTAUTH_NO_INPUT"] && "AGENTAUTH_NO_INPUT is set";
  return {
    ...{ options: flags, env, known, home: known.home, noInput, store: known.store, url, context, service },
    engine: engineOf(known.store, context),
    server: context.with({ flags }),
    reply: once(() => fetchOnce(service)),
  };
}

function engineOf(store: StoreChoice | undefined, context: CommandContext): Subject["engine"] {
  if (store === undefined || !isEngine(store.value)) return undefined;
  const { value, engine } = store;
  const open = once(() => openEngine(value, engine, engineHost(context)));
  return { open, report: once(async () => engineReport(open(), context.signal)) };
}

/** The settings of this run as far as they can be read, and the problems with the others. */
export interface KnownSettings {
  settings: Settings;
  config: Config;
  home: Sourced | undefined;
  /** Undefined if the choice is invalid. */
  store: StoreChoice | undefined;
  problems: Partial<Record<"file" | "profile" | "baseUrl" | "store", AgentAuthError>>;
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
  const found = unlessWrong("file", () => findHome(env));
  const home = found?.value;
  const config = unlessWrong("file", () => readConfig(home)) ?? EMPTY;
  const settings = resolveSettings(flags, env, config, home, flagText, { onWrong: report });
  const store = unlessWrong("store", () => chooseStore(env, writtenProfile(settings.profile.value, config)));
  const profile = profileOf(settings.profile, home);
  return { settings: { ...settings, profile }, config, home: found, store, problems };
}
