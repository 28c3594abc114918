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
import { checkDisk, checkHome, checkWriting } from "./home-checks.js";
import { checkBrowser, checkNode, checkPackage, checkSandbox, OPTIONAL_PACKAGES } from "./machine-checks.js";
import { checkAuthorities, checkCertificate, checkClientCertificate, checkProxy, proxiesOf } from "./network-checks.js";
import {
  checkDiscovery,
  checkLogin,
  checkServerClock,
  checkSorting,
  judgeClock,
  type ServiceReply,
} from "./online-checks.js";
import {
  checkApiToken,
  checkBaseUrl,
  checkIssuer,
  checkProfile,
  checkSettingsFile,
  checkTls,
  checkVariables,
  type KnownSettings,
} from "./settings-checks.js";
import {
  checkEngine,
  checkEngineClock,
  checkEngineStore,
  checkFiles,
  checkKeychain,
  checkKeyRing,
  checkLeftovers,
  checkStore,
  KEYCHAIN_CHECK_MS,
} from "./store-checks.js";

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

/** The finding; undefined if the check is not for this run. */
type RunCheck = (subject: Subject) => CheckFinding | undefined | Promise<CheckFinding | undefined>;

/** In the order of the report, each with the area of its failures. */
const CHECKS: readonly (readonly [Area, Readonly<Record<string, RunCheck>>])[] = [
  [
    "settings",
    {
      node: () => checkNode(process.version),
      variables: ({ env, known }) => checkVariables(env, known.config),
      tls: ({ env }) => checkTls(env),
      authorities: ({ options, env, known }) => checkAuthorities(options.caFile, known.settings.useSystemCa, env),
      client_cert: ({ known, context }) => checkClientCertificate(known.settings, context.now(), context.io.env),
      proxy: ({ options, env }) => checkProxy(proxiesOf(options.proxy, env)),
      browser: ({ env, noInput }) => checkBrowser(env, noInput),
      "jq-wasm": () => checkPackage(OPTIONAL_PACKAGES.jq, false),
      "@napi-rs/keyring": ({ store }) => checkPackage(OPTIONAL_PACKAGES.keyring, store?.value === "keyring"),
      "settings file": ({ known, home }) => checkSettingsFile(known, home.value),
      profile: ({ known }) => checkProfile(known),
      base_url: ({ known }) => checkBaseUrl(known),
      issuer: ({ known }) => checkIssuer(known),
      api_token: ({ known, context }) => checkApiToken(known, (token) => context.redactor.add(token)),
    },
  ],
  [
    "store",
    {
      home: ({ home }) => checkHome(home),
      writing: ({ home }) => checkWriting(home.value),
      disk: ({ home }) => checkDisk(home.value),
      store: ({ engine, store, known, env, home }) => {
        const profile = known.settings.profile.value;
        if (engine && store) return checkEngineStore(engine.open(), store, profile);
        return checkStore(storeOf(known, env), home.value, profile);
      },
      engine: ({ engine }) => engine && checkEngine(engine.report),
      "engine clock": ({ engine }) => engine && checkEngineClock(engine.report),
      "key ring": ({ engine }) => engine && checkKeyRing(engine.report),
      keychain: ({ store, home, env, noInput }) => {
        const keychain = osKeychain(accountOf(home.value), { timeoutMs: KEYCHAIN_CHECK_MS, env });
        return checkKeychain(store, keychain, noInput === undefined);
      },
      files: ({ home, store }) => checkFiles(home.value, store?.value),
      leftovers: ({ home, context }) => checkLeftovers(home.value, context.now()),
      sandbox: ({ home }) => checkSandbox(home.value),
    },
  ],
  [
    "online",
    {
      service: ofService(({ error, result }) => {
        if (error) throw error;
        return ok(result);
      }),
      clock: ofService((reply) => judgeClock("the service", reply)),
      sorting: ofService((reply, { service }) => checkSorting(reply, service)),
      "service certificate": ({ options, known, service }) =>
        options.online ? checkCertificate(known.settings.baseUrl?.value, options, service) : undefined,
      "server certificate": ({ url, options, service }) => checkCertificate(url, options, service),
      "server clock": ({ url, options, server }) =>
        url === undefined ? undefined : checkServerClock(url, options, server),
      discovery: ({ url, server }) => (url === undefined ? undefined : checkDiscovery(url, server)),
    },
  ],
  ["store", { login: ({ url, server }) => (url === undefined ? undefined : checkLogin(url, server)) }],
];

/** The checks of a run. */
export function checksOf(subject: Subject): DoctorCheck[] {
  return CHECKS.flatMap(([area, checks]) =>
    Object.entries(checks).map(([name, run]) => ({ name, area, run: () => run(subject) })),
  );
}

/** A check of the service's reply, which needs `--online`. */
function ofService(check: (reply: ServiceReply, subject: Subject) => CheckFinding | Promise<CheckFinding>): RunCheck {
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
export function storeOf({ settings, config }: KnownSettings, env: Env): StoreChoice {
  return chooseStore(env, writtenProfile(settings.profile.value, config));
}
