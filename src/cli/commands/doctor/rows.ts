import { chosenByEnvironment } from "../../../login/browser.js";
import type { Env } from "../../../platform/system.js";
import { firstSet, type Sourced } from "../../../profile/settings.js";
import { effectiveSettings } from "../../config/effective.js";
import type { DoctorFlags } from "./check.js";
import { proxiesOf, shownProxy } from "./network-checks.js";
import type { KnownSettings } from "./settings-checks.js";

/** An effective setting, and the flag, variable or profile that it comes from. `null` if nothing is set. */
export interface SettingRow {
  /** The setting. */
  name: string;
  /** Its value; null if nothing is set. */
  value: string | null;
  /** The flag, variable or profile that it comes from, or `default`. */
  source: string;
}

/** The input of the rows. */
export interface RowContext extends KnownSettings {
  flags: DoctorFlags;
  env: Env;
  home: Sourced;
  /** The store of logins; undefined if the setting is invalid. */
  store: Sourced | undefined;
}

const NOT_USABLE = "(invalid)";

/** What applies where nothing is set. */
const DEFAULTS: Readonly<Record<string, string>> = { output: "table on a terminal, plain in a pipe" };

/** Every setting with its source, as `config list` prints it, and what else decides how this machine is used. */
export function settingRows(sources: RowContext): SettingRow[] {
  const { flags, home, config, wrongBaseUrl, env } = sources;
  const asJson = flags.json && !flags.output ? { value: "json", source: "--json" } : undefined;
  const settings = {
    ...sources.settings,
    ...(asJson && { output: asJson }),
    ...(wrongBaseUrl !== undefined && { baseUrl: { value: NOT_USABLE, source: wrongBaseUrl } }),
  };
  // A profile's entries were checked when the settings file was read: only the variable can be wrong.
  const store = sources.store ?? { value: NOT_USABLE, source: "AGENTAUTH_STORE" };
  const rows = effectiveSettings({ settings, config, home: home.value, store, env }).map(
    ({ key, value, source = "default" }) => ({ name: key, value: value ?? DEFAULTS[key] ?? null, source }),
  );
  const isCertificate = ({ name }: SettingRow) => name === "client_cert" || name === "client_key";
  return [
    row("home", home),
    ...rows.filter((one) => !isCertificate(one)),
    ...networkRows(flags, env),
    ...rows.filter(isCertificate),
    row("extra_ca_certs", firstSet([env["NODE_EXTRA_CA_CERTS"], "NODE_EXTRA_CA_CERTS"])),
    ...interactionRows(flags, env),
  ];
}

function row(name: string, setting: Sourced | undefined, otherwise: string | null = null): SettingRow {
  return { name, ...(setting ?? { value: otherwise, source: "default" }) };
}

function networkRows({ proxy, timeout, retries, caFile }: DoctorFlags, env: Env): SettingRow[] {
  const { https, http, except } = proxiesOf(proxy, env);
  const shown = (one: Sourced | undefined) => one && { ...one, value: shownProxy(one.value) ?? NOT_USABLE };
  return [
    row("timeout", firstSet([timeout?.toString(), "--timeout"]), "30"),
    row("retries", firstSet([retries?.toString(), "--retries"]), "2"),
    row("https_proxy", shown(https)),
    row("http_proxy", shown(http)),
    row("no_proxy", except),
    row("ca_file", firstSet([caFile, "--ca-file"])),
  ];
}

function interactionRows(flags: DoctorFlags, env: Env): SettingRow[] {
  const isSet = (name: string, value: string): [string | undefined, string] => [env[name] && value, name];
  const errors = env["AGENTAUTH_ERRORS"] === "json" ? "json" : undefined;
  return [
    row("client_secret", firstSet(isSet("AGENTAUTH_CLIENT_SECRET", "(set)"))),
    row("browser", firstSet([chosenByEnvironment(env), "BROWSER"]), "the system's default"),
    row(
      "no_input",
      firstSet([flags.input === false ? "yes" : "", "--no-input"], isSet("AGENTAUTH_NO_INPUT", "yes")),
      "no",
    ),
    row("errors", firstSet([errors, "AGENTAUTH_ERRORS"]), "text"),
    row("color", color(flags, env), "on a terminal"),
  ];
}

/** In the order of precedence of the output streams. */
function color(flags: DoctorFlags, env: Env): Sourced | undefined {
  const force = env["FORCE_COLOR"];
  return firstSet(
    [flags.color === false ? "no" : "", "--no-color"],
    [env["NO_COLOR"] && "no", "NO_COLOR"],
    [force && (force === "0" || force === "false" ? "no" : "yes"), "FORCE_COLOR"],
    [env["TERM"] === "dumb" ? "no" : "", "TERM"],
  );
}
