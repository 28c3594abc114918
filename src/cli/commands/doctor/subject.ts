import { type AgentAuthError, isAgentAuthError } from "../../../errors.js";
import type { Env } from "../../../platform/system.js";
import { type EngineReport, engineReport } from "../../../profile/engine/health.js";
import { type EngineStore, openEngine } from "../../../profile/engine/open-engine.js";
import { resolveSettings } from "../../../profile/resolve-settings.js";
import type { SettingFlags, Settings, Sourced } from "../../../profile/settings.js";
import { locateHome } from "../../../profile/settings.js";
import { type Config, profileOf, readConfig, writtenProfile } from "../../../profile/settings-file.js";
import { chooseStore, isEngine, type StoreChoice } from "../../../profile/store-choice.js";
import { parseMcpUrlArgument } from "../../clients/mcp-url.js";
import { engineHost } from "../../clients/store.js";
import type { AgentFlags } from "../../flags/agent.js";
import type { OutputFlags } from "../../flags/output.js";
import { type CommandContext, once } from "../../runtime/context.js";
import { flagText } from "../../runtime/pasted-words.js";
import type { Check } from "./check.js";
import { fetchOnce, type ServiceReply } from "./service-reply.js";

/** Options of `doctor`. */
export interface DoctorFlags extends AgentFlags, OutputFlags {
  url?: string;
  online?: boolean;
}

/** What the checks of a run look at. */
export interface Subject {
  /** With the bounds of requests: each is sent once, with a short timeout. */
  options: DoctorFlags;
  env: Env;
  known: KnownSettings;
  home: Sourced;
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

/**
 * What the checks of a run look at.
 *
 * @throws `AgentAuthError` `usage` for a URL of an MCP server that is none
 */
export function subjectOf(options: DoctorFlags, context: CommandContext): Subject {
  const { env } = context.io;
  const url = options.url === undefined ? undefined : parseMcpUrlArgument(options.url);
  const home = locateHome(env);
  const known = knownSettings(options, env, home.value);
  const store = unlessError(
    () => storeOf(known, env),
    () => {},
  );
  // If a server does not respond, each request is sent once, with a short timeout.
  const flags = { ...options, timeout: options.timeout ?? 10, retries: options.retries ?? 0 };
  const service = context.with({ flags, settings: known.settings });
  const noInput = options.input === false ? "--no-input" : env["AGENTAUTH_NO_INPUT"] && "AGENTAUTH_NO_INPUT is set";
  return {
    ...{ options: flags, env, known, home, noInput, store, url, context, service },
    engine: engineOf(store, context),
    server: context.with({ flags }),
    reply: once(() => fetchOnce(service)),
  };
}

/** The settings of this run as far as they can be read, and the problems with the others. */
export interface KnownSettings {
  settings: Settings;
  config: Config;
  /** The source of an invalid base URL; the URL is not shown, since it may contain a password. */
  wrongBaseUrl: string | undefined;
  problems: { file?: AgentAuthError; profile?: AgentAuthError; baseUrl?: AgentAuthError };
}

const EMPTY: Config = { schema: 1, profile: "default", profiles: {} };

/** Resolves every setting as `resolveSettings` does, but reports a wrong setting without hiding the others. */
export function knownSettings(flags: SettingFlags, env: Env, home: string): KnownSettings {
  const problems: KnownSettings["problems"] = {};
  const report = (setting: keyof typeof problems, error: AgentAuthError) => {
    problems[setting] = error;
  };
  const config =
    unlessError(
      () => readConfig(home),
      (error) => report("file", error),
    ) ?? EMPTY;
  const settings = resolveSettings(flags, env, config, home, flagText, report);
  const wrongBaseUrl = problems.baseUrl && (flags.baseUrl ? "--base-url" : "AGENTAUTH_BASE_URL");
  return { settings: { ...settings, profile: profileOf(settings.profile, home) }, config, wrongBaseUrl, problems };
}

/**
 * The store that the settings choose.
 *
 * @throws `AgentAuthError` `usage` for an invalid choice
 */
export function storeOf({ settings, config }: KnownSettings, env: Env): StoreChoice {
  return chooseStore(env, writtenProfile(settings.profile.value, config));
}

function engineOf(store: StoreChoice | undefined, context: CommandContext): Subject["engine"] {
  if (store === undefined) return undefined;
  const { value, engine } = store;
  if (!isEngine(value)) return undefined;
  const open = once(() => openEngine(value, engine, engineHost(context)));
  return { open, report: once(async () => engineReport(open(), context.signal)) };
}

function unlessError<T>(read: () => T, onError: (error: AgentAuthError) => void): T | undefined {
  try {
    return read();
  } catch (error) {
    if (!isAgentAuthError(error)) throw error;
    onError(error);
    return undefined;
  }
}
