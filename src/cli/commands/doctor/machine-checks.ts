import { existsSync } from "node:fs";
import { suggest } from "../../../http/suggest.js";
import { outletOf, systemAuthorities } from "../../../profile/connection-settings.js";
import { storingToken } from "../../../profile/service-settings.js";
import { type Config, configPath } from "../../../profile/settings-file.js";
import { quote } from "../../../redact.js";
import { networkOptions } from "../../clients/network.js";
import { ENVIRONMENT } from "../../runtime/environment.js";
import { type CheckFinding, type Checks, failed, ok, skipped, warning } from "./check.js";

/** What this machine has and what is set on it: Node, packages, variables, the network and the settings. */
export const MACHINE_CHECKS = {
  node: () => checkNode(process.version),

  /** Variables with our prefix that nothing reads, and misleading values. The values of unknown variables are not shown. */
  variables({ env, config }) {
    const names = new Set([...KNOWN_VARIABLES, ...namedByProfiles(config)]);
    const ours = Object.keys(env).filter((name) => name.toUpperCase().startsWith(PREFIX) && env[name]);
    const unknownNames = ours.filter((name) => !names.has(name)).sort();
    const { AGENTAUTH_ERRORS: errors, AGENTAUTH_NO_INPUT: noInput } = env;
    const remarks = unknownNames.map((name) => `${name} is set, but nothing reads it`);
    if (errors && errors !== "json")
      remarks.push(`AGENTAUTH_ERRORS is ${quote(errors, 40)}; only "json" has an effect`);
    if (noInput && /^(?:0|false|no|off)$/i.test(noInput))
      remarks.push(`AGENTAUTH_NO_INPUT is ${quote(noInput)}, which counts as set like any other value`);
    if (remarks.length === 0) return ok(ours.length === 0 ? "none are set" : `${ours.length} set, all known`);
    return warning(remarks.join("; "), unknownHint(unknownNames));
  },

  /** Node's switch that disables certificate checks. */
  tls({ env }) {
    if (env["NODE_TLS_REJECT_UNAUTHORIZED"] !== "0") return ok("certificates are verified");
    return failed(
      "NODE_TLS_REJECT_UNAUTHORIZED is 0: certificates are not verified, and anyone on the network path can read every token",
      "unset NODE_TLS_REJECT_UNAUTHORIZED; trust your own certificate authority with --ca-file <file> or NODE_EXTRA_CA_CERTS",
    );
  },

  /** Whether proxies, certificate authorities and the client certificate can be used, as each request reads them. */
  connections({ options, settings, env, context }) {
    const { proxies } = outletOf(networkOptions(options, settings, context), context.redactor);
    const { useSystemCa: system } = settings;
    const extra = env["NODE_EXTRA_CA_CERTS"];
    const trusted = ["Node's built-in list"];
    if (system?.value === "yes")
      trusted.push(`${systemAuthorities(system.source).length} of the system (${system.source})`);
    if (options.caFile) trusted.push(`${options.caFile} (--ca-file)`);
    if (extra) trusted.push(`${extra} (NODE_EXTRA_CA_CERTS)`);
    return ok(`${proxies.https || proxies.http ? "by a proxy" : "without a proxy"}; trusted: ${trusted.join(", ")}`);
  },

  /** Whether the settings file, the profile and the base URL can be used. Tokens for MCP servers need none of them. */
  settings({ settings: { profile, baseUrl }, config, problems, home }) {
    const problem = problems.file ?? problems.profile ?? problems.baseUrl;
    if (problem !== undefined) throw problem;
    const path = home && configPath(home.value);
    const names = Object.keys(config.profiles).join(", ") || "none";
    const file = path && existsSync(path) ? `${path}, profiles: ${names}` : "no file";
    const found = `${file}; profile ${profile.value} (${profile.source})`;
    if (baseUrl !== undefined) return ok(found);
    return ok(`${found}; no base_url, which lists need: agentauth config set base_url <url>`);
  },

  /** Whether the API token can be read. It is not shown, and every output masks it. */
  api_token({ settings, context }) {
    const { apiToken, baseUrl } = settings;
    if (apiToken === undefined) {
      const hint = `set AGENTAUTH_API_TOKEN, or store a token: ${storingToken()}`;
      return baseUrl ? warning(`not set for ${baseUrl.value}`, hint) : skipped("not set: lists need it");
    }
    const token = apiToken.read();
    context.redactor.add(token);
    if (token === "") return failed(`the token from ${apiToken.source} is empty`, "agentauth config set api_token -");
    return ok(`can be read (${apiToken.source})`);
  },
} satisfies Checks;

/** The oldest supported Node; a test compares it with package.json. */
export const NODE_FLOOR = "20.19";

/** @param version as in `process.version` */
export function checkNode(version: string): CheckFinding {
  if (version.localeCompare(`v${NODE_FLOOR}`, "en", { numeric: true }) >= 0)
    return ok(`${version}, at least ${NODE_FLOOR} is required`);
  const found = `${version} is too old: at least ${NODE_FLOOR} is required`;
  return failed(found, "install a newer Node: https://nodejs.org");
}

const PREFIX = "AGENTAUTH_";

/** Every variable that this program reads, and the one that `exec` sets for another. */
export const KNOWN_VARIABLES: readonly string[] = [
  ...ENVIRONMENT.flatMap(([names]) => names.split(", ")).filter((name) => name.startsWith(PREFIX)),
  "AGENTAUTH_TOKEN",
];

/** `env:NAME` in a profile makes any name known. */
function namedByProfiles(config: Config): string[] {
  return Object.values(config.profiles)
    .flatMap(({ api_token = "", store_url = "", store_keys = "" }) => [api_token, store_url, store_keys])
    .flatMap((text) => (text.startsWith("env:") ? [text.slice("env:".length)] : []));
}

/** Compares names without the prefix: with it, all names look alike. */
function unknownHint(unknownNames: readonly string[]): string {
  const endings = KNOWN_VARIABLES.map((name) => name.slice(PREFIX.length));
  const suggestions = unknownNames.flatMap((name) => suggest(name.slice(PREFIX.length), endings) ?? []);
  if (suggestions.length > 0) return `did you mean ${suggestions.map((ending) => PREFIX + ending).join(", ")}?`;
  return "agentauth help environment lists the variables and their values";
}
