import { release } from "node:os";
import { isAgentAuthError } from "../../../errors.js";
import { VERSION } from "../../../http/user-agent.js";
import { engineReport } from "../../../profile/engine/health.js";
import { openEngine } from "../../../profile/engine/open-engine.js";
import { locateHome } from "../../../profile/home.js";
import { isEngine, type StoreChoice } from "../../../profile/store-choice.js";
import { parseMcpUrlArgument } from "../../clients/mcp-url.js";
import { engineHost } from "../../clients/store.js";
import { printObject } from "../../output/object.js";
import { formatOf } from "../../output/writer.js";
import { type CommandContext, once } from "../../runtime/context.js";
import { type CheckResult, type DoctorFlags, runChecks } from "./check.js";
import { checksOf, type Subject, storeOf } from "./checks.js";
import { proxiesOf, proxySecrets } from "./network-checks.js";
import { fetchOnce } from "./online-checks.js";
import { settingRows } from "./rows.js";
import { type KnownSettings, knownSettings } from "./settings-checks.js";
import { type DoctorReport, doctorText, redactReport } from "./text.js";

/** `doctor`: every check and every setting; the exit code is that of the most severe failure. */
export async function runDoctor(options: DoctorFlags, context: CommandContext): Promise<number> {
  const { io, redactor } = context;
  const subject = subjectOf(options, context);
  hideSecrets(options, context);
  const { results, exitCode } = await runChecks(checksOf(subject), context.signal);
  const { known, home, store } = subject;
  const settings = settingRows({ ...known, flags: options, env: io.env, home, store });
  const platform = `${process.platform} ${process.arch} ${release()}`;
  const report = redactReport(
    { version: VERSION, node: process.version, platform, checks: results, settings },
    redactor,
  );
  await print(report, options, known, context);
  io.say(summary(results));
  return exitCode;
}

function subjectOf(options: DoctorFlags, context: CommandContext): Subject {
  const { env } = context.io;
  const url = options.url === undefined ? undefined : parseMcpUrlArgument(options.url);
  const home = locateHome(env);
  const known = knownSettings(options, env, home.value);
  const store = usableStore(known, env);
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

function engineOf(store: StoreChoice | undefined, context: CommandContext): Subject["engine"] {
  if (store === undefined) return undefined;
  const { value, engine } = store;
  if (!isEngine(value)) return undefined;
  const open = once(() => openEngine(value, engine, engineHost(context)));
  return { open, report: once(async () => engineReport(open(), context.signal)) };
}

/** Keeps these values out of every message. */
function hideSecrets(options: DoctorFlags, { io, redactor }: CommandContext): void {
  const proxies = proxiesOf(options.proxy, io.env);
  const hidden = [proxies.https, proxies.http].flatMap((proxy) => (proxy ? proxySecrets(proxy.value) : []));
  // The other variables with secrets are hidden in every run.
  for (const value of [io.env["AGENTAUTH_TOKEN"] ?? "", ...hidden]) redactor.add(value);
}

function usableStore(known: KnownSettings, env: Subject["env"]): StoreChoice | undefined {
  try {
    return storeOf(known, env);
  } catch (error) {
    if (isAgentAuthError(error)) return undefined;
    throw error;
  }
}

async function print(
  report: DoctorReport,
  options: DoctorFlags,
  known: KnownSettings,
  { io, now }: CommandContext,
): Promise<void> {
  const format = formatOf(options, known.settings, io);
  if (options.jq !== undefined || !["table", "wide", "plain"].includes(format)) {
    await printObject(io, format, report, { jq: options.jq, now });
  } else {
    await io.stdout.write(await doctorText(report, io.stdout.colors, io.stdout.isTTY ? io.stdout.columns : undefined));
  }
}

function summary(results: readonly CheckResult[]): string {
  const count = (state: CheckResult["state"]) => results.filter((result) => result.state === state).length;
  const warnings = count("warning");
  const counts = `${count("failed")} failed, ${warnings} warning${warnings === 1 ? "" : "s"}`;
  return `${results.length} checks: ${counts}, ${count("skipped")} skipped`;
}
