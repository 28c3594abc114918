import { SORTING_ENCODINGS } from "../api/types.js";
import { errorMessage, usageError } from "../errors.js";
import { parseBaseUrl } from "../http/address.js";
import { suggest } from "../http/suggest.js";
import type { AuthorizationParams } from "../oauth/model/authorization-params.js";
import { quote } from "../redact.js";
import type { SettingInfo } from "./login-settings.js";
import { issuerAddress, LOGIN_PROFILE_KEYS, nonEmpty, readAuthorizationParams, requireRule } from "./login-settings.js";
import { isReference, REFERENCES } from "./secrets.js";
import { FORMATS, type Settings } from "./settings.js";

const STORES = ["file", "keyring", "memory", "redis", "postgres"] as const;

/** A kind of store. */
export type StoreKind = (typeof STORES)[number];

/** The kinds of stores that are engines, which other machines use too. */
export type EngineKind = Extract<StoreKind, "redis" | "postgres">;

/** Whether a kind of store is an engine. */
export function isEngine(kind: StoreKind): kind is EngineKind {
  return kind === "redis" || kind === "postgres";
}

/** The value of `store_keys` that stores logins unsealed. */
export const NO_KEYS = "none";

/** What can happen where the keychain cannot be used: `none` ends with an error, `file` stores logins unsealed. */
export const STORE_FALLBACKS = ["none", "file"] as const;

/** The values of `takeover` of a store in an engine; the first one is the default. */
export const TAKEOVERS = ["patient", "fast"] as const;

type Takeover = (typeof TAKEOVERS)[number];

/**
 * What `store_takeover` says of an issuer: `patient` or `fast`, then those of single issuers, as
 * `patient https://issuer.example=fast`.
 *
 * @throws `TypeError` with the rule
 */
export function readTakeover(text: string): (issuer: string) => Takeover {
  const [first = "", ...others] = text.split(" ");
  const pairs = others.map((one) => [one.slice(0, one.lastIndexOf("=")), one.slice(one.lastIndexOf("=") + 1)] as const);
  const isTakeover = (value: string | undefined) => TAKEOVERS.some((one) => one === value);
  const rule = "must be patient or fast, and may name issuers after that: patient https://issuer.example=fast";
  requireRule(isTakeover(first) && pairs.every(([, value]) => isTakeover(value)), rule);
  const byIssuer = new Map(pairs.map(([issuer, value]) => [issuerAddress(issuer), value]));
  return (issuer) => (byIssuer.get(issuer) ?? first) as Takeover;
}

const YES_NO = ["yes", "no"] as const;

// parseBaseUrl names the field in its complaint, and checkSetting puts the right name there.
const BASE_URL_FIELD = "base_url";

/** Each setting of a profile: what it is for, and what a value must be. */
export const PROFILE_KEYS = {
  base_url: { description: "the service's base address", values: (value) => void parseBaseUrl(value, BASE_URL_FIELD) },
  api_token: {
    description: `where the API token is: ${REFERENCES}`,
    values: (value) => requireRule(isReference(value), `must be ${REFERENCES}, never the token itself`),
  },
  auth_header: {
    description: 'the header that carries the token: "X-Api-Key", or "Authorization: Token" with a scheme',
    values: (value) =>
      requireRule(/^[!#$%&'*+.^_`|~\w-]+(:\s*[\w-]+)?$/.test(value), 'must be a header name, or "Name: Scheme"'),
  },
  sorting: {
    description: `how the order of a list (--sort) is sent: ${SORTING_ENCODINGS.join(", ")}`,
    values: SORTING_ENCODINGS,
  },
  ...LOGIN_PROFILE_KEYS,
  account: { description: "the default account", values: nonEmpty },
  domain: { description: "the default domain", values: nonEmpty },
  pool: { description: "the default pool", values: nonEmpty },
  output: { description: `the output format: ${FORMATS.join(", ")}`, values: FORMATS },
  store: { description: `where logins are stored: ${STORES.join(", ")}`, values: STORES },
  store_fallback: {
    description: "where the keychain cannot be used: none (an error), file (stored unsealed)",
    values: STORE_FALLBACKS,
  },
  store_url: {
    description: `for redis and postgres, where the address of the engine is: ${REFERENCES}`,
    values: (value) => requireRule(isReference(value), `must be ${REFERENCES}, never the address itself`),
  },
  store_keys: {
    description: `for redis, postgres and exports, where the key ring is: ${REFERENCES}, or none to seal nothing`,
    values: (value) =>
      requireRule(value === NO_KEYS || isReference(value), `must be ${REFERENCES}, or none, never the keys themselves`),
  },
  store_takeover: {
    description:
      "for redis and postgres, when others take over an interrupted refresh: patient, fast, or one by issuer",
    values: readTakeover,
  },
  store_tenant: { description: "for redis and postgres, the tenant whose logins are used", values: nonEmpty },
  client_cert: { description: "a client certificate (PEM file), for servers that ask for one", values: nonEmpty },
  client_key: { description: "the file of its private key, where it is another one", values: nonEmpty },
  use_system_ca: {
    description: "whether the certificate authorities of the system are trusted too: yes, no",
    values: YES_NO,
  },
  audit: {
    description: "the file that events are written into: file:PATH",
    values: (value) => requireRule(/^file:./.test(value), "must be file:PATH"),
  },
} satisfies Readonly<Record<string, SettingInfo>>;

/** What a profile can set. */
export type Profile = { [Key in keyof typeof PROFILE_KEYS]?: string };

export function isProfileKey(key: string): key is keyof Profile {
  return Object.hasOwn(PROFILE_KEYS, key);
}

/** How a secret is set. What was given in its place may be the secret: no message repeats it. */
const SAFE_WAYS: Readonly<Partial<Record<keyof Profile, string>>> = {
  api_token: "agentauth config set api_token - reads a token from stdin",
  store_url: "agentauth config set store_url file:<path>, with the address in a file that only you can read",
  store_keys: "agentauth store keys <path> makes a key ring; agentauth config set store_keys file:<path>",
};

/** @throws `AgentAuthError` `usage` that names the setting, the value and the rule */
export function checkSetting(key: keyof Profile, value: string, where: string = key): void {
  const { values }: SettingInfo = PROFILE_KEYS[key];
  const choices = typeof values === "function" ? [] : values;
  try {
    if (typeof values === "function") values(value);
    else requireRule(choices.includes(value), `must be one of ${choices.join(", ")}`);
  } catch (cause) {
    const rule = errorMessage(cause);
    if (key === "base_url") throw usageError(where + rule.slice(BASE_URL_FIELD.length), undefined, cause);
    const safeWay = SAFE_WAYS[key];
    if (safeWay !== undefined) throw usageError(`${where} ${rule}`, safeWay, cause);
    const suggestion = suggest(value, choices);
    throw usageError(`${where} ${quote(value)} ${rule}`, suggestion && `did you mean ${suggestion}?`, cause);
  }
}

/** The parameters that the settings name. */
export function toAuthorizationParams({ authorizeParam }: Pick<Settings, "authorizeParam">): AuthorizationParams {
  return authorizeParam === undefined ? {} : readAuthorizationParams(authorizeParam.value);
}
