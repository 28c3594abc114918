import type { Env } from "../../platform/system.js";
import { isReference, noteReference } from "../../profile/secrets.js";
import type { Redactor } from "../../redact.js";

/** The environment variables that are read, each with what it does: for help, documentation and `agentauth commands`. */
export const ENVIRONMENT: readonly (readonly [name: string, about: string])[] = [
  ["AGENTAUTH_BASE_URL", "the service's base address"],
  [
    "AGENTAUTH_API_TOKEN",
    "the API token of the management interface; as each secret here, it may be env:, file: or exec:",
  ],
  ["AGENTAUTH_CLIENT_SECRET", "the secret of the client that --client-id names"],
  ["AGENTAUTH_ISSUER", "the only issuer to use, as --issuer"],
  ["AGENTAUTH_ID_TOKEN", "the ID token of a user, for --grant id-jag"],
  ["AGENTAUTH_IDP_CLIENT_SECRET", "the secret of the client that --idp-client-id names"],
  ["AGENTAUTH_SUBJECT_TOKEN", "the token to exchange, in place of the server's own"],
  ["AGENTAUTH_PROFILE", "the profile to use"],
  ["AGENTAUTH_HOME", "the folder of all files"],
  ["AGENTAUTH_STORE", "the store of logins: file, keyring, memory, redis or postgres"],
  ["AGENTAUTH_STORE_URL", "for redis and postgres, the address of the engine"],
  ["AGENTAUTH_STORE_KEYS", "the key ring that seals logins there: its JSON, or none"],
  [
    "AGENTAUTH_STORE_TAKEOVER",
    "for redis and postgres, when others take over a refresh: patient (default), fast, or one by issuer",
  ],
  ["AGENTAUTH_STORE_TENANT", "for redis and postgres, the tenant whose logins are used"],
  ["AGENTAUTH_NO_INPUT", "never prompt, never open a browser, as --no-input"],
  ["AGENTAUTH_AUDIT", "file:PATH: the file that events are written into, one line of JSON each"],
  ["AGENTAUTH_LOG", "info logs as --verbose, debug as --debug"],
  ["AGENTAUTH_ERRORS", '"json" prints errors as one line of JSON'],
  ["AGENTAUTH_AGENT", "0: no AI agent runs this, 1: one does (default: detected); see help agents"],
  ["BROWSER", "the browser to log in with, or none"],
  ["HTTPS_PROXY, HTTP_PROXY, ALL_PROXY", "the proxy for requests"],
  ["NO_PROXY", "hosts that are reached without it"],
  ["NODE_EXTRA_CA_CERTS", "certificate authorities to trust too"],
  ["NODE_USE_SYSTEM_CA", "1 trusts the certificate authorities of the system too (read by Node 22.19 or later)"],
  ["NODE_COMPILE_CACHE", "the folder of compiled code of the commands (Node 22.8 or later)"],
  ["NODE_DISABLE_COMPILE_CACHE", "1: no compiled code is stored"],
  ["NO_COLOR, FORCE_COLOR", "colours off or on; NO_COLOR wins"],
  ["FORCE_HYPERLINK", "0 or 1: whether the link of a login is a hyperlink"],
  ["COLUMNS", "the width to print tables for"],
  ["LINES", "the height of the screen"],
  ["TERM", "dumb: no colours, no progress"],
  ["CI", "set: --show-secrets needs --yes too"],
];

/** The variables whose values are secrets, or say where secrets are. */
const SECRET_VARIABLES = [
  "AGENTAUTH_API_TOKEN",
  "AGENTAUTH_CLIENT_SECRET",
  "AGENTAUTH_ID_TOKEN",
  "AGENTAUTH_IDP_CLIENT_SECRET",
  "AGENTAUTH_STORE_KEYS",
  "AGENTAUTH_STORE_URL",
  "AGENTAUTH_SUBJECT_TOKEN",
];

/**
 * Masks these secrets, and keeps them from the programs that we start: a browser must not find them in its environment.
 *
 * @param env the environment of the run
 * @param inherited that of the process
 */
export function withholdSecrets(env: Env, inherited: Env, redactor: Redactor): void {
  for (const name of SECRET_VARIABLES) {
    const value = env[name] ?? "";
    // A reference to a secret is none.
    if (isReference(value)) noteReference(value, env);
    else redactor.add(value);
    delete (inherited as Record<string, string | undefined>)[name];
  }
}

/** Whether a CI job runs us: its variable is set, and not to what turns a switch off. */
export function isCi(env: Env): boolean {
  return !/^(?:false|0|no|off)?$/i.test(env["CI"] ?? "");
}
