import { quote } from "../../redact.js";

/** Parameters of an authorization request beside those of the flow. An empty value leaves a parameter out. */
export type AuthorizationParams = Readonly<Record<string, string>>;

/** An option that sets a parameter of the flow. */
export type FlowOption = "client" | "dpop" | "loginHint" | "redirectUri" | "resource" | "scope";

/** The parameters of the flow, each with the option that sets it; null for those that each login chooses itself. */
const OF_FLOW: Readonly<Record<string, FlowOption | null>> = {
  response_type: null,
  response_mode: null,
  client_id: "client",
  client_secret: "client",
  client_assertion: "client",
  client_assertion_type: "client",
  redirect_uri: "redirectUri",
  scope: "scope",
  state: null,
  nonce: null,
  code_challenge: null,
  code_challenge_method: null,
  resource: "resource",
  request: null,
  request_uri: null,
  login_hint: "loginHint",
  dpop_jkt: "dpop",
};

/** The names of the parameters that the flow sets, and that no option may set. */
export const FLOW_PARAMETERS: readonly string[] = Object.keys(OF_FLOW);

const MAX_VALUE = 1024;

/**
 * Rejects a parameter that the flow sets itself, or that no request can have.
 *
 * @param nameOf what messages call an option
 * @throws `TypeError` with what is wrong, to be read after the name of the option
 */
export function checkAuthorizationParam(
  name: string,
  value: unknown,
  nameOf: (option: FlowOption) => string = (option) => `the option ${option}`,
): void {
  if (Object.hasOwn(OF_FLOW, name)) {
    const option = OF_FLOW[name];
    throw new TypeError(`cannot set ${name}: ${option ? `${nameOf(option)} does` : "each login chooses it itself"}`);
  }
  if (!/^[A-Za-z][\w.-]{0,63}$/.test(name)) {
    const rule = 'at most 64 letters, digits, "-", "." and "_", a letter first (RFC 6749 appendix A)';
    throw new TypeError(`cannot set ${quote(name)}: a name has ${rule}`);
  }
  if (typeof value !== "string" || value.length > MAX_VALUE)
    throw new TypeError(`cannot set ${name}: a value is a string of at most ${MAX_VALUE} characters`);
}

/** The parameters as one text, form-encoded. */
export function paramsText(params: AuthorizationParams): string {
  return new URLSearchParams(params).toString();
}

interface KnownIssuer {
  /** The parameters with which it returns a refresh token. */
  readonly offlineParams?: AuthorizationParams;
  /** Whether it returns a refresh token for `offline_access` without a forced consent. */
  readonly needsNoConsent?: true;
}

const ENTRA: KnownIssuer = { needsNoConsent: true };
const KNOWN: Readonly<Record<string, KnownIssuer>> = {
  "accounts.google.com": { offlineParams: { access_type: "offline", prompt: "consent" } },
  // Microsoft Entra ID: the worldwide cloud and its aliases, then US Government, China and Germany (closed in 2021).
  "login.microsoftonline.com": ENTRA,
  "login.microsoft.com": ENTRA,
  "login.windows.net": ENTRA,
  "sts.windows.net": ENTRA,
  "login.microsoftonline.us": ENTRA,
  "login.usgovcloudapi.net": ENTRA,
  "login-us.microsoftonline.com": ENTRA,
  "login.partner.microsoftonline.cn": ENTRA,
  "login.chinacloudapi.cn": ENTRA,
  "sts.chinacloudapi.cn": ENTRA,
  "login.microsoftonline.de": ENTRA,
};

/** What is recorded about an issuer, by its exact host: another name, such as a subdomain, may have another owner. */
export function knownIssuer(issuer: string): KnownIssuer {
  const { protocol, host } = new URL(issuer);
  return (protocol === "https:" && Object.hasOwn(KNOWN, host) && KNOWN[host]) || {};
}
