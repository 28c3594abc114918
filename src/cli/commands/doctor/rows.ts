import { chosenByEnvironment } from "../../../login/browser.js";
import { firstSet, type Sourced } from "../../../profile/settings.js";
import { effectiveSettings } from "../../config/effective.js";
import { proxiesOf, shownProxy } from "./network-checks.js";
import type { DoctorFlags, Subject } from "./subject.js";

/** An effective setting, and the flag, variable or profile that it comes from. `null` if nothing is set. */
export interface SettingRow {
  /** The setting. */
  name: string;
  /** Its value; null if nothing is set. */
  value: string | null;
  /** The flag, variable or profile that it comes from, or `default`. */
  source: string;
}

const NOT_USABLE = "(invalid)";

/**
 * Every setting with its source, as `config list` prints it, and what else decides how this machine is used.
 *
 * @param flags as they were given
 */
export function settingRows(
  { known, env, home, store }: Pick<Subject, "known" | "env" | "home" | "store">,
  flags: DoctorFlags,
): SettingRow[] {
  const { config, problems } = known;
  const asJson = flags.json && !flags.output ? { value: "json", source: "--json" } : undefined;
  const usualOutput = { value: "table on a terminal, plain in a pipe", source: "default" };
  const settings = { ...known.settings, output: asJson ?? known.settings.output ?? usualOutput };
  // The URL is not shown, since it may contain a password.
  if (problems.baseUrl)
    settings.baseUrl = { value: NOT_USABLE, source: flags.baseUrl ? "--base-url" : "AGENTAUTH_BASE_URL" };
  // A profile's entries were checked when the settings file was read: only the variable can be wrong.
  const shownStore = store ?? { value: NOT_USABLE, source: "AGENTAUTH_STORE" };
  return [
    row("home", [home?.value, home?.source ?? ""]),
    ...effectiveSettings({ settings, config, home: home?.value, store: shownStore, env }).map(
      ({ key, value, source = "default" }) => row(key, [value, source]),
    ),
    ...networkRows(flags, env),
    ...runRows(flags, env),
  ];
}

/** A row of the first candidate that has a value. */
function row(name: string, ...candidates: [value: string | undefined, source: string][]): SettingRow {
  return { name, value: null, source: "default", ...firstSet(...candidates) };
}

function networkRows(flags: DoctorFlags, env: Subject["env"]): SettingRow[] {
  const { https, http, except } = proxiesOf(flags, env);
  const proxyRow = (name: string, proxy: Sourced | undefined) =>
    row(name, [proxy && (shownProxy(proxy.value) ?? NOT_USABLE), proxy?.source ?? ""]);
  return [
    row("timeout", [flags.timeout?.toString(), "--timeout"], ["30", "default"]),
    row("retries", [flags.retries?.toString(), "--retries"], ["2", "default"]),
    proxyRow("https_proxy", https),
    proxyRow("http_proxy", http),
    row("no_proxy", [except?.value, except?.source ?? ""]),
    row("ca_file", [flags.caFile, "--ca-file"]),
    row("extra_ca_certs", [env["NODE_EXTRA_CA_CERTS"], "NODE_EXTRA_CA_CERTS"]),
  ];
}

function runRows(flags: DoctorFlags, env: Subject["env"]): SettingRow[] {
  const ifSet = (name: string, value: string): [string | undefined, string] => [env[name] && value, name];
  const force = env["FORCE_COLOR"];
  return [
    row("client_secret", ifSet("AGENTAUTH_CLIENT_SECRET", "(set)")),
    row("browser", [chosenByEnvironment(env), "BROWSER"], ["the system's default", "default"]),
    row("no_input", [flags.input === false ? "yes" : "", "--no-input"], ifSet("AGENTAUTH_NO_INPUT", "yes"), [
      "no",
      "default",
    ]),
    row("errors", [env["AGENTAUTH_ERRORS"] === "json" ? "json" : "", "AGENTAUTH_ERRORS"], ["text", "default"]),
    // In the order of precedence of the output streams.
    row(
      "color",
      [flags.color === false ? "no" : "", "--no-color"],
      ifSet("NO_COLOR", "no"),
      ifSet("FORCE_COLOR", force === "0" || force === "false" ? "no" : "yes"),
      [env["TERM"] === "dumb" ? "no" : "", "TERM"],
      ["on a terminal", "default"],
    ),
  ];
}
