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

/** A value, which may not be set, and its source. */
type Candidate = Parameters<typeof firstSet>[number];

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
  const { config, settings: found, wrongBaseUrl } = known;
  const asJson = flags.json && !flags.output ? { value: "json", source: "--json" } : undefined;
  const usualOutput = { value: "table on a terminal, plain in a pipe", source: "default" };
  const settings = {
    ...found,
    output: asJson ?? found.output ?? usualOutput,
    ...(wrongBaseUrl !== undefined && { baseUrl: { value: NOT_USABLE, source: wrongBaseUrl } }),
  };
  // A profile's entries were checked when the settings file was read: only the variable can be wrong.
  const shownStore = store ?? { value: NOT_USABLE, source: "AGENTAUTH_STORE" };
  const effective = effectiveSettings({ settings, config, home: home.value, store: shownStore, env });
  const written = effective.map(({ key, ...setting }) => [key, [of(setting)]] as const);
  const { client_cert, client_key, ...others } = Object.fromEntries(written);
  const table = {
    home: [of(home)],
    ...others,
    ...networkRows(flags, env),
    client_cert,
    client_key,
    ...runRows(flags, env),
  };
  return Object.entries(table).map(([name, candidates = []]) => {
    const { value, source } = firstSet(...candidates) ?? { value: null, source: "default" };
    return { name, value, source };
  });
}

function of(setting: Partial<Sourced> | undefined): Candidate {
  return [setting?.value, setting?.source ?? "default"];
}

function usually(value: string): Candidate {
  return [value, "default"];
}

function networkRows(flags: DoctorFlags, env: Subject["env"]): Record<string, Candidate[]> {
  const { https, http, except } = proxiesOf(flags, env);
  const shown = (one: Sourced | undefined) => of(one && { ...one, value: shownProxy(one.value) ?? NOT_USABLE });
  return {
    timeout: [[flags.timeout?.toString(), "--timeout"], usually("30")],
    retries: [[flags.retries?.toString(), "--retries"], usually("2")],
    https_proxy: [shown(https)],
    http_proxy: [shown(http)],
    no_proxy: [of(except)],
    ca_file: [[flags.caFile, "--ca-file"]],
  };
}

function runRows(flags: DoctorFlags, env: Subject["env"]): Record<string, Candidate[]> {
  const isSet = (name: string, value: string): Candidate => [env[name] && value, name];
  const force = env["FORCE_COLOR"];
  return {
    extra_ca_certs: [[env["NODE_EXTRA_CA_CERTS"], "NODE_EXTRA_CA_CERTS"]],
    client_secret: [isSet("AGENTAUTH_CLIENT_SECRET", "(set)")],
    browser: [[chosenByEnvironment(env), "BROWSER"], usually("the system's default")],
    no_input: [[flags.input === false ? "yes" : "", "--no-input"], isSet("AGENTAUTH_NO_INPUT", "yes"), usually("no")],
    errors: [[env["AGENTAUTH_ERRORS"] === "json" ? "json" : "", "AGENTAUTH_ERRORS"], usually("text")],
    // In the order of precedence of the output streams.
    color: [
      [flags.color === false ? "no" : "", "--no-color"],
      isSet("NO_COLOR", "no"),
      isSet("FORCE_COLOR", force === "0" || force === "false" ? "no" : "yes"),
      [env["TERM"] === "dumb" ? "no" : "", "TERM"],
      usually("on a terminal"),
    ],
  };
}
