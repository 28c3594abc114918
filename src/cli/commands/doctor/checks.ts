/** The checks of `doctor`, as a table. */

import type { Env } from "../../../platform/system.js";
import type { EngineReport } from "../../../profile/engine/health.js";
import type { EngineStore } from "../../../profile/engine/open-engine.js";
import type { Sourced } from "../../../profile/settings.js";
import { writtenProfile } from "../../../profile/settings-file.js";
import { chooseStore, type StoreChoice } from "../../../profile/store-choice.js";
import { osKeychain } from "../../../store/keychain/keychain.js";
import { accountOf } from "../../../store/keychain/keyring.js";
import type { CommandContext } from "../../runtime/context.js";
import { type Area, type CheckFinding, type DoctorCheck, type DoctorFlags, ok, skipped } from "./check.js";
import * as homeChecks from "./home-checks.js";
import * as machineChecks from "./machine-checks.js";
import * as networkChecks from "./network-checks.js";
import * as onlineChecks from "./online-checks.js";
import * as settingsChecks from "./settings-checks.js";
import * as storeChecks from "./store-checks.js";

/** What the checks of a run look at. */
export interface Subject {
  /** With the bounds of requests: each is sent once, with a short timeout. */
  options: DoctorFlags;
  env: Env;
  known: settingsChecks.KnownSettings;
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
  reply(): Promise<onlineChecks.ServiceReply>;
}

/** The finding; undefined if the check is not for this run. */
type RunCheck = (subject: Subject) => CheckFinding | undefined | Promise<CheckFinding | undefined>;

/** In the order of the report, each with the area of its failures. */
const CHECKS: readonly (readonly [Area, Readonly<Record<string, RunCheck>>])[] = [
  [
    "settings",
    {
      node: () => machineChecks.checkNode(process.version),
      variables: ({ env, known }) => settingsChecks.checkVariables(env, known.config),
      tls: ({ env }) => settingsChecks.checkTls(env),
      authorities: ({ options, env, known }) =>
        networkChecks.checkAuthorities(options.caFile, known.settings.useSystemCa, env),
      client_cert: ({ known, context }) =>
        networkChecks.checkClientCertificate(known.settings, context.now(), context.io.env),
      proxy: ({ options, env }) => networkChecks.checkProxy(networkChecks.proxiesOf(options.proxy, env)),
      browser: ({ env, noInput }) => machineChecks.checkBrowser(env, noInput),
      "jq-wasm": () => machineChecks.checkPackage(machineChecks.OPTIONAL_PACKAGES.jq, false),
      "@napi-rs/keyring": ({ store }) =>
        machineChecks.checkPackage(machineChecks.OPTIONAL_PACKAGES.keyring, store?.value === "keyring"),
      "settings file": ({ known, home }) => settingsChecks.checkSettingsFile(known, home.value),
      profile: ({ known }) => settingsChecks.checkProfile(known),
      base_url: ({ known }) => settingsChecks.checkBaseUrl(known),
      issuer: ({ known }) => settingsChecks.checkIssuer(known),
      api_token: ({ known, context }) => settingsChecks.checkApiToken(known, (token) => context.redactor.add(token)),
    },
  ],
  [
    "store",
    {
      home: ({ home }) => homeChecks.checkHome(home),
      writing: ({ home }) => homeChecks.checkWriting(home.value),
      disk: ({ home }) => homeChecks.checkDisk(home.value),
      store: ({ engine, store, known, env, home }) => {
        const profile = known.settings.profile.value;
        if (engine && store) return storeChecks.checkEngineStore(engine.open(), store, profile);
        return storeChecks.checkStore(storeOf(known, env), home.value, profile);
      },
      engine: ({ engine }) => engine && storeChecks.checkEngine(engine.report),
      "engine clock": ({ engine }) => engine && storeChecks.checkEngineClock(engine.report),
      "key ring": ({ engine }) => engine && storeChecks.checkKeyRing(engine.report),
      keychain: ({ store, home, env, noInput }) => {
        const keychain = osKeychain(accountOf(home.value), { timeoutMs: storeChecks.KEYCHAIN_CHECK_MS, env });
        return storeChecks.checkKeychain(store, keychain, noInput === undefined);
      },
      files: ({ home, store }) => storeChecks.checkFiles(home.value, store?.value),
      leftovers: ({ home, context }) => storeChecks.checkLeftovers(home.value, context.now()),
      sandbox: ({ home }) => machineChecks.checkSandbox(home.value),
    },
  ],
  [
    "online",
    {
      service: ofService(({ error, result }) => {
        if (error) throw error;
        return ok(result);
      }),
      clock: ofService((reply) => onlineChecks.judgeClock("the service", reply)),
      sorting: ofService((reply, { service }) => onlineChecks.checkSorting(reply, service)),
      "service certificate": ({ options, known, service }) =>
        options.online ? networkChecks.checkCertificate(known.settings.baseUrl?.value, options, service) : undefined,
      "server certificate": ({ url, options, service }) => networkChecks.checkCertificate(url, options, service),
      "server clock": ({ url, options, server }) =>
        url === undefined ? undefined : onlineChecks.checkServerClock(url, options, server),
      discovery: ({ url, server }) => (url === undefined ? undefined : onlineChecks.checkDiscovery(url, server)),
    },
  ],
  ["store", { login: ({ url, server }) => (url === undefined ? undefined : onlineChecks.checkLogin(url, server)) }],
];

/** The checks of a run. */
export function checksOf(subject: Subject): DoctorCheck[] {
  return CHECKS.flatMap(([area, checks]) =>
    Object.entries(checks).map(([name, run]) => ({ name, area, run: () => run(subject) })),
  );
}

/** A check of the service's reply, which needs `--online`. */
function ofService(
  check: (reply: onlineChecks.ServiceReply, subject: Subject) => CheckFinding | Promise<CheckFinding>,
): RunCheck {
  return async (subject) => {
    if (!subject.options.online) return skipped("no request was sent", "agentauth doctor --online sends one");
    if (subject.service.settings().baseUrl === undefined) return skipped("base_url is not set");
    return check(await subject.reply(), subject);
  };
}

/**
 * The store that the settings choose.
 *
 * @throws `AgentAuthError` `usage` for an invalid choice
 */
export function storeOf({ settings, config }: settingsChecks.KnownSettings, env: Env): StoreChoice {
  return chooseStore(env, writtenProfile(settings.profile.value, config));
}
