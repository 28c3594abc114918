import { release } from "node:os";
import { isAgentAuthError } from "../../../errors.js";
import { VERSION } from "../../../http/user-agent.js";
import { locateHome } from "../../../profile/home.js";
import { writtenProfile } from "../../../profile/profile.js";
import type { Sourced } from "../../../profile/settings.js";
import { chooseStore, type StoreChoice } from "../../../profile/store-choice.js";
import { osKeychain } from "../../../store/keychain/keychain.js";
import { accountOf } from "../../../store/keychain/keyring.js";
import { parseMcpUrlArgument } from "../../clients/mcp-url.js";
import { engineHost } from "../../clients/store.js";
import { formatOf } from "../../output/chosen-format.js";
import { printObject } from "../../output/object.js";
import type { CommandContext } from "../../runtime/context.js";
import { certificateChecks } from "./certificate-check.js";
import { type Check, type CheckResult, runChecks } from "./check.js";
import { engineChecks } from "./engine-checks.js";
import { checkDisk, checkHome, checkWriting } from "./home-checks.js";
import { checkKeychain, KEYCHAIN_CHECK_MS } from "./keychain-checks.js";
import { checkBrowser, checkNode, checkPackage, checkSandbox, OPTIONAL_PACKAGES } from "./machine-checks.js";
import { mcpChecks } from "./mcp-checks.js";
import { checkAuthorities, checkClientCertificate, checkProxy, proxiesOf, proxySecrets } from "./network-checks.js";
import { onlineChecks } from "./online-checks.js";
import type { DoctorFlags } from "./options.js";
import { type Report, redactReport } from "./report.js";
import { settingRows } from "./rows.js";
import {
  checkApiToken,
  checkBaseUrl,
  checkIssuer,
  checkProfile,
  checkSettingsFile,
  type KnownSettings,
  knownSettings,
} from "./settings-checks.js";
import { checkFiles, checkLeftovers, checkStore } from "./store-checks.js";
import { reportText } from "./text.js";
import { checkTls, checkVariables, SECRET_VARIABLES } from "./variable-checks.js";

/** `doctor`: every check and every setting; the exit code is that of the most severe failure. */
export async function runDoctor(options: DoctorFlags, context: CommandContext): Promise<number> {
  const { io, redactor } = context;
  const url = options.url === undefined ? undefined : parseMcpUrlArgument(options.url);
  hideSecrets(options, context);
  const home = locateHome(io.env);
  const known = knownSettings(options, io.env, home.value);
  const flags = bounded(options);
  const online = context.with({ flags, settings: known.settings });
  const checks = [
    ...machineChecks(options, known, context),
    ...settingChecks(known, home.value, context),
    ...storeChecks(options, known, home, context),
    ...onlineChecks(options.online === true, online),
    ...certificateChecks(
      "service certificate",
      options.online ? known.settings.baseUrl?.value : undefined,
      flags,
      online,
    ),
    ...certificateChecks("server certificate", url, flags, online),
    ...(url === undefined ? [] : mcpChecks(url, flags, context.with({ flags }))),
  ];
  const { results, exitCode } = await runChecks(checks, context.signal);
  const settings = settingRows({ ...known, flags: options, env: io.env, home, store: usableStore(known, io.env) });
  const platform = `${process.platform} ${process.arch} ${release()}`;
  const report = redactReport(
    { version: VERSION, node: process.version, platform, checks: results, settings },
    redactor,
  );
  await print(report, options, known, context);
  io.say(summary(results));
  return exitCode;
}

/** If a server does not respond, each request is sent once, with a short timeout. */
function bounded(options: DoctorFlags): DoctorFlags {
  return { ...options, timeout: options.timeout ?? 10, retries: options.retries ?? 0 };
}

/** Keeps these values out of every message. */
function hideSecrets(options: DoctorFlags, { io, redactor }: CommandContext): void {
  const proxies = proxiesOf(options.proxy, io.env);
  const hidden = [proxies.https, proxies.http].flatMap((proxy) => (proxy ? proxySecrets(proxy.value) : []));
  for (const value of [...SECRET_VARIABLES.map((name) => io.env[name] ?? ""), ...hidden]) redactor.add(value);
}

function machineChecks(options: DoctorFlags, known: KnownSettings, { io: { env }, now }: CommandContext): Check[] {
  const noInput = options.input === false ? "--no-input" : env["AGENTAUTH_NO_INPUT"] && "AGENTAUTH_NO_INPUT is set";
  const check = (name: string, run: Check["run"]): Check => ({ name, area: "settings", run });
  return [
    check("node", () => checkNode(process.version)),
    check("variables", () => checkVariables(env, known.config)),
    check("tls", () => checkTls(env)),
    check("authorities", () => checkAuthorities(options.caFile, env)),
    check("client_cert", () => checkClientCertificate(known.settings, now())),
    check("proxy", () => checkProxy(proxiesOf(options.proxy, env))),
    check("browser", () => checkBrowser(env, noInput)),
    ...OPTIONAL_PACKAGES.map((one) => {
      const wanted = one.name === "@napi-rs/keyring" && usableStore(known, env)?.value === "keyring";
      return check(one.name, () => checkPackage(one, wanted));
    }),
  ];
}

function settingChecks(known: KnownSettings, home: string, { redactor }: CommandContext): Check[] {
  const check = (name: string, run: Check["run"]): Check => ({ name, area: "settings", run });
  return [
    check("settings file", () => checkSettingsFile(known, home)),
    check("profile", () => checkProfile(known)),
    check("base_url", () => checkBaseUrl(known)),
    check("issuer", () => checkIssuer(known)),
    check("api_token", () => checkApiToken(known, (token) => redactor.add(token))),
  ];
}

function storeChecks(options: DoctorFlags, known: KnownSettings, home: Sourced, context: CommandContext): Check[] {
  const { io, now, signal } = context;
  const profile = known.settings.profile.value;
  const mayPrompt = options.input !== false && !io.env["AGENTAUTH_NO_INPUT"];
  const keychain = osKeychain(accountOf(home.value), { timeoutMs: KEYCHAIN_CHECK_MS, env: io.env });
  const check = (name: string, run: Check["run"]): Check => ({ name, area: "store", run });
  return [
    check("home", () => checkHome(home)),
    check("writing", () => checkWriting(home.value)),
    check("disk", () => checkDisk(home.value)),
    ...(engineChecks(usableStore(known, io.env), profile, engineHost(context), signal) ?? [
      check("store", () => checkStore(storeOf(known, io.env), home.value, profile)),
    ]),
    check("keychain", () => checkKeychain(usableStore(known, io.env), keychain, mayPrompt)),
    check("files", () => checkFiles(home.value, usableStore(known, io.env)?.value)),
    check("leftovers", () => checkLeftovers(home.value, now())),
    check("sandbox", () => checkSandbox(home.value)),
  ];
}

function storeOf({ settings, config }: KnownSettings, env: CommandContext["io"]["env"]): StoreChoice {
  return chooseStore(env, writtenProfile(settings.profile.value, config));
}

function usableStore(known: KnownSettings, env: CommandContext["io"]["env"]): StoreChoice | undefined {
  try {
    return storeOf(known, env);
  } catch (error) {
    if (isAgentAuthError(error)) return undefined;
    throw error;
  }
}

async function print(
  report: Report,
  options: DoctorFlags,
  known: KnownSettings,
  { io, now }: CommandContext,
): Promise<void> {
  const format = formatOf(options, known.settings, io);
  if (options.jq !== undefined || !["table", "wide", "plain"].includes(format)) {
    await printObject(io, format, report, { jq: options.jq, now });
  } else {
    await io.stdout.write(await reportText(report, io.stdout.colors, io.stdout.isTTY ? io.stdout.columns : undefined));
  }
}

function summary(results: readonly CheckResult[]): string {
  const count = (state: CheckResult["state"]) => results.filter((result) => result.state === state).length;
  const warnings = count("warning");
  const counts = `${count("failed")} failed, ${warnings} warning${warnings === 1 ? "" : "s"}`;
  return `${results.length} checks: ${counts}, ${count("skipped")} skipped`;
}
