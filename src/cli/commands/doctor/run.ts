import { release } from "node:os";
import { VERSION } from "../../../http/version.js";
import { countText } from "../../output/value.js";
import { formatOf, printObject } from "../../output/writer.js";
import type { CommandContext } from "../../runtime/context.js";
import { type CheckList, type CheckResult, runChecks } from "./check.js";
import { HOME_CHECKS } from "./home-checks.js";
import { MACHINE_CHECKS } from "./machine-checks.js";
import { NETWORK_CHECKS, proxiesOf, proxySecrets } from "./network-checks.js";
import { LOGIN_CHECKS, ONLINE_CHECKS } from "./online-checks.js";
import { settingRows } from "./rows.js";
import { SETTINGS_CHECKS } from "./settings-checks.js";
import { STORE_CHECKS } from "./store-checks.js";
import { type DoctorFlags, type Subject, subjectOf } from "./subject.js";
import { doctorText, redactReport } from "./text.js";

/** In the order of the report, each with the class of its failures. */
const CHECKS: CheckList<Subject> = [
  ["usage", { ...MACHINE_CHECKS, ...NETWORK_CHECKS, ...SETTINGS_CHECKS }],
  ["store", { ...HOME_CHECKS, ...STORE_CHECKS }],
  ["unavailable", ONLINE_CHECKS],
  ["store", LOGIN_CHECKS],
];

/** `doctor`: every check, and the settings; the exit code is that of the most severe failure. */
export async function runDoctor(options: DoctorFlags, context: CommandContext): Promise<number> {
  const { io, redactor, now } = context;
  const subject = subjectOf(options, context);
  hideSecrets(options, context);
  const { results, exitCode } = await runChecks(CHECKS, subject, context.signal);
  const platform = `${process.platform} ${process.arch} ${release()}`;
  const settings = settingRows(subject, options).filter(({ source }) => options.all || source !== "default");
  const report = redactReport(
    { version: VERSION, node: process.version, platform, checks: results, settings },
    redactor,
  );
  const format = formatOf(options, subject.known.settings, io);
  if (options.jq !== undefined || !["table", "wide", "plain"].includes(format)) {
    await printObject(format, report, options, { io, now });
  } else {
    await io.stdout.write(await doctorText(report, io.stdout.colors, io.stdout.isTTY ? io.stdout.columns : undefined));
  }
  io.say(summary(results));
  return exitCode;
}

/** Keeps these values out of every message. */
function hideSecrets(options: DoctorFlags, { io, redactor }: CommandContext): void {
  const proxies = proxiesOf(options, io.env);
  const hidden = [proxies.https, proxies.http].flatMap((proxy) => (proxy ? proxySecrets(proxy.value) : []));
  // The other variables with secrets are hidden in every run.
  for (const value of [io.env["AGENTAUTH_TOKEN"] ?? "", ...hidden]) redactor.add(value);
}

function summary(results: readonly CheckResult[]): string {
  const count = (state: CheckResult["state"]) => results.filter((result) => result.state === state).length;
  const warnings = countText(count("warning"), "warning");
  return `${results.length} checks: ${count("failed")} failed, ${warnings}, ${count("skipped")} skipped`;
}
