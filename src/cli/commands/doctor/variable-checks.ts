import { suggest } from "../../../http/suggest.js";
import type { Env } from "../../../platform/system.js";
import type { Config } from "../../../profile/settings-file.js";
import { quote } from "../../../redact.js";
import { type Finding, failed, ok, warning } from "./check.js";

const PREFIX = "AGENTAUTH_";

/** The variables whose values are secrets. */
export const SECRET_VARIABLES = [
  "AGENTAUTH_API_TOKEN",
  "AGENTAUTH_CLIENT_SECRET",
  "AGENTAUTH_ID_TOKEN",
  "AGENTAUTH_IDP_CLIENT_SECRET",
  "AGENTAUTH_STORE_KEYS",
  "AGENTAUTH_STORE_URL",
  "AGENTAUTH_SUBJECT_TOKEN",
  "AGENTAUTH_TOKEN",
] as const;

/** Every variable that this program, or a program that it starts, reads. */
export const KNOWN_VARIABLES: readonly string[] = [
  ...SECRET_VARIABLES,
  "AGENTAUTH_AGENT",
  "AGENTAUTH_BASE_URL",
  "AGENTAUTH_ERRORS",
  "AGENTAUTH_HOME",
  "AGENTAUTH_ISSUER",
  "AGENTAUTH_LOG",
  "AGENTAUTH_NO_INPUT",
  "AGENTAUTH_PAGER",
  "AGENTAUTH_PROFILE",
  "AGENTAUTH_STORE",
  "AGENTAUTH_STORE_TAKEOVER",
  "AGENTAUTH_STORE_TENANT",
];

/** Variables with our prefix that nothing reads, and misleading values. The values of unknown variables are not shown. */
export function checkVariables(env: Env, config: Config): Finding {
  const known = new Set([...KNOWN_VARIABLES, ...namedByProfiles(config)]);
  const ours = Object.keys(env).filter((name) => name.toUpperCase().startsWith(PREFIX) && env[name]);
  const unknownNames = ours.filter((name) => !known.has(name)).sort();
  const remarks = [...unknownNames.map((name) => `${name} is set, but nothing reads it`), ...valueRemarks(env)];
  if (remarks.length === 0) return ok(ours.length === 0 ? "none are set" : `${ours.length} set, all known`);
  return warning(remarks.join("; "), unknownHint(unknownNames));
}

/** `env:NAME` in a profile makes any name known. */
function namedByProfiles(config: Config): string[] {
  const references = Object.values(config.profiles).flatMap(({ api_token = "", store_url = "", store_keys = "" }) => [
    api_token,
    store_url,
    store_keys,
  ]);
  return references.filter((text) => text.startsWith("env:")).map((text) => text.slice("env:".length));
}

function valueRemarks(env: Env): string[] {
  const remarks: string[] = [];
  const { AGENTAUTH_ERRORS: errors, AGENTAUTH_NO_INPUT: noInput } = env;
  if (errors && errors !== "json") remarks.push(`AGENTAUTH_ERRORS is ${quote(errors, 40)}; only "json" has an effect`);
  if (noInput && /^(?:0|false|no|off)$/i.test(noInput)) {
    remarks.push(`AGENTAUTH_NO_INPUT is ${quote(noInput)}, which counts as set like any other value`);
  }
  return remarks;
}

/** Compares names without the prefix: with it, all names look alike. */
function unknownHint(unknownNames: readonly string[]): string | undefined {
  const endings = KNOWN_VARIABLES.map((name) => name.slice(PREFIX.length));
  const suggestions = unknownNames.flatMap((name) => suggest(name.slice(PREFIX.length), endings) ?? []);
  if (suggestions.length > 0) return `did you mean ${suggestions.map((ending) => PREFIX + ending).join(", ")}?`;
  return "agentauth help environment lists the variables and their values";
}

/** Node's switch that disables certificate checks. */
export function checkTls(env: Env): Finding {
  if (env["NODE_TLS_REJECT_UNAUTHORIZED"] !== "0") return ok("certificates are verified");
  return failed(
    "NODE_TLS_REJECT_UNAUTHORIZED is 0: certificates are not verified, and anyone on the network path can read every token",
    "unset NODE_TLS_REJECT_UNAUTHORIZED; trust your own certificate authority with --ca-file <file> or NODE_EXTRA_CA_CERTS",
  );
}
