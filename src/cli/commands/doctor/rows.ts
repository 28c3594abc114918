import { chosenByEnvironment } from "../../../login/browser.js";
import { writtenProfile } from "../../config/profile.js";
import type { Sourced } from "../../config/sourced.js";
import type { StoreChoice } from "../../config/store.js";
import { proxiesOf, shownProxy } from "./network-checks.js";
import type { DoctorFlags } from "./options.js";
import type { KnownSettings } from "./settings-checks.js";

type Env = Readonly<Record<string, string | undefined>>;

/** A setting in force: what it is, and which flag, variable or profile decided it. `null` where nothing is set. */
export interface SettingRow {
  name: string;
  value: string | null;
  source: string;
}

/** What the rows are made of. */
export interface RowContext extends KnownSettings {
  flags: DoctorFlags;
  env: Env;
  home: Sourced;
  /** Where logins are kept; undefined where what is asked for is none. */
  store: StoreChoice | undefined;
}

/** Every setting with its source. Of secrets it is told where they are. */
export function settingRows(context: RowContext): SettingRow[] {
  return [
    row("home", context.home),
    row("profile", context.settings.profile),
    ...serviceRows(context),
    ...storeRows(context),
    ...networkRows(context),
    ...personRows(context),
  ];
}

function row(name: string, setting: Sourced | undefined, otherwise: string | null = null): SettingRow {
  return { name, ...(setting ?? { value: otherwise, source: "default" }) };
}

/** A profile's own entries were checked when the settings file was read: only the variable can be wrong. */
function storeRows({ store, settings, config }: RowContext): SettingRow[] {
  const { name, entries } = writtenProfile(settings.profile.value, config);
  const chosen = store && { value: store.value, source: store.source };
  const fallback = entries.store_fallback && { value: entries.store_fallback, source: `profile ${name}` };
  return [
    row("store", chosen ?? { value: "(not usable)", source: "AGENTAUTH_STORE" }),
    row("store_fallback", fallback || undefined, "none"),
  ];
}

function serviceRows({ settings, config, wrongBaseUrl, flags }: RowContext): SettingRow[] {
  const { profile, baseUrl, apiToken, authHeader, issuer, account, domain, pool, output } = settings;
  const wrong = wrongBaseUrl === undefined ? undefined : { value: "(not usable)", source: wrongBaseUrl };
  const { entries } = writtenProfile(profile.value, config);
  const token = apiToken && {
    ...(apiToken.source === "AGENTAUTH_API_TOKEN"
      ? { value: "(set)", source: apiToken.source }
      : { value: entries.api_token ?? "(that of the sandbox)", source: `profile ${profile.value}` }),
  };
  const asJson = flags.json && !flags.output ? { value: "json", source: "--json" } : undefined;
  return [
    row("base_url", wrong ?? baseUrl),
    row("api_token", token),
    row("auth_header", authHeader, "Authorization: Bearer"),
    row("issuer", issuer),
    row("account", account),
    row("domain", domain),
    row("pool", pool),
    row("output", asJson ?? output, "table on a terminal, plain in a pipe"),
  ];
}

function networkRows({ flags, env, settings }: RowContext): SettingRow[] {
  const { https, http, except } = proxiesOf(flags.proxy, env);
  const shown = (proxy: Sourced | undefined) =>
    proxy && { value: shownProxy(proxy.value) ?? "(not usable)", source: proxy.source };
  return [
    row("timeout", flagged(flags.timeout, "--timeout"), "30"),
    row("retries", flagged(flags.retries, "--retries"), "2"),
    row("https_proxy", shown(https)),
    row("http_proxy", shown(http)),
    row("no_proxy", except),
    row("ca_file", flagged(flags.caFile, "--ca-file")),
    row("client_cert", settings.clientCert),
    row("client_key", settings.clientKey),
    row("extra_ca_certs", variable("NODE_EXTRA_CA_CERTS", env)),
  ];
}

function personRows({ flags, env }: RowContext): SettingRow[] {
  const browser = chosenByEnvironment(env);
  const errors = env["AGENTAUTH_ERRORS"] === "json" ? { value: "json", source: "AGENTAUTH_ERRORS" } : undefined;
  const noInput = flags.input === false ? "--no-input" : env["AGENTAUTH_NO_INPUT"] ? "AGENTAUTH_NO_INPUT" : undefined;
  const secret = env["AGENTAUTH_CLIENT_SECRET"] ? { value: "(set)", source: "AGENTAUTH_CLIENT_SECRET" } : undefined;
  return [
    row("client_secret", secret),
    row("browser", browser === undefined ? undefined : { value: browser, source: "BROWSER" }, "the system's default"),
    row("no_input", noInput === undefined ? undefined : { value: "yes", source: noInput }, "no"),
    row("errors", errors, "text"),
    row("color", color(flags, env), "on a terminal"),
  ];
}

/** The order is that in which the output streams decide. */
function color(flags: DoctorFlags, env: Env): Sourced | undefined {
  if (flags.color === false) return { value: "no", source: "--no-color" };
  if (env["NO_COLOR"]) return { value: "no", source: "NO_COLOR" };
  const force = env["FORCE_COLOR"];
  if (force) return { value: force === "0" || force === "false" ? "no" : "yes", source: "FORCE_COLOR" };
  return env["TERM"] === "dumb" ? { value: "no", source: "TERM" } : undefined;
}

function flagged(value: string | number | undefined, source: string): Sourced | undefined {
  return value === undefined ? undefined : { value: String(value), source };
}

function variable(name: string, env: Env): Sourced | undefined {
  const value = env[name];
  return value ? { value, source: name } : undefined;
}
