import { parseBaseUrl } from "../http/address.js";
import { classifyHost } from "../http/address-class.js";
import { type Clock, systemClock } from "../http/deadline.js";
import { isScopeToken } from "../http/scope-token.js";
import { quote } from "../redact.js";
import type { ResourceServerEvent } from "./events.js";
import type { ResourceServerOptions } from "./options.js";

/** {@link ResourceServerOptions}, checked and with defaults. */
export interface Settings {
  resource: string;
  issuers: readonly string[];
  audiences: readonly string[];
  requiredScopes: readonly string[];
  tokens: "jwt" | "introspection" | "both";
  /** The issuer that introspects tokens. */
  introspected: string | undefined;
  algorithms: string[];
  legacyTyp: boolean;
  dpop: "off" | "supported" | "required";
  dpopNonces: boolean;
  /** Seconds. */
  clockSkewSeconds: number;
  /** Seconds. */
  cacheTtlSeconds: number;
  /** Seconds. */
  keyTtlSeconds: number;
  /** Seconds. */
  tokenCacheSeconds: number;
  clock: Clock;
  /** The clock for the times in proofs. */
  proofClock: Pick<Clock, "epoch">;
  log: (event: ResourceServerEvent) => void;
}

/** Every algorithm whose keys a server may publish. `none` and the symmetric ones must never be among them. */
const ALGORITHMS: readonly string[] = [
  ...["ES256", "ES384", "ES512", "EdDSA", "Ed25519"],
  ...["PS256", "PS384", "PS512", "RS256", "RS384", "RS512"],
];

/**
 * Checks the addresses that are requested, and named in tokens: https (http on this machine), in the one spelling that
 * tokens can use.
 *
 * @throws TypeError
 */
export function checkAddresses({ resource, authorizationServers }: ResourceServerOptions): void {
  parseBaseUrl(resource ?? "", "resource");
  const { href, origin } = new URL(resource);
  if (resource !== href && resource !== origin) {
    throw new TypeError(`resource ${quote(resource)} must be written as ${quote(href)}: tokens name it so`);
  }
  if (!Array.isArray(authorizationServers) || authorizationServers.length === 0) {
    throw new TypeError("authorizationServers must name at least one issuer");
  }
  for (const issuer of authorizationServers) {
    parseBaseUrl(issuer ?? "", "authorizationServers");
    if (classifyHost(new URL(issuer).hostname) === "forbidden") {
      throw new TypeError(`authorizationServers ${quote(issuer)} is an address where nothing is ever sent`);
    }
  }
}

/** Checks the options and adds defaults. @throws TypeError */
export function readSettings(options: ResourceServerOptions): Settings {
  const { resource, authorizationServers, introspection, audience = resource, clock = systemClock } = options;
  const audiences = typeof audience === "string" ? [audience] : [...audience];
  if (audiences.length === 0 || audiences.some((one) => typeof one !== "string" || one === "")) {
    throw new TypeError("audience must be a text, or a list of texts that is not empty");
  }
  const tokens = oneOf("tokens", options.tokens, ["jwt", "introspection", "both"] as const);
  return {
    resource,
    issuers: [...authorizationServers],
    audiences,
    requiredScopes: readScopes("requiredScopes", options.requiredScopes),
    tokens: tokens ?? (introspection ? "both" : "jwt"),
    introspected: readIntrospected(options),
    algorithms: readAlgorithms(options.algorithms),
    legacyTyp: oneOf("typ", options.typ, ["at+jwt", "legacy"] as const) === "legacy",
    dpop: readDpop(options),
    dpopNonces: options.dpopNonces ?? false,
    clockSkewSeconds: seconds("clockSkewSeconds", options.clockSkewSeconds, 60, 600),
    cacheTtlSeconds: seconds("introspection.cacheTtlSeconds", introspection?.cacheTtlSeconds, 30, 3600),
    keyTtlSeconds: seconds("keyTtlSeconds", options.keyTtlSeconds, 600, 86_400),
    tokenCacheSeconds: seconds("tokenCacheSeconds", options.tokenCacheSeconds, 60, 60),
    clock,
    proofClock: clock,
    log: options.log ?? (() => {}),
  };
}

/** Checks the scopes of an option. @throws TypeError */
export function readScopes(name: string, scopes: readonly string[] | undefined): readonly string[] {
  const bad = scopes?.find((scope) => !isScopeToken(scope));
  if (bad !== undefined) throw new TypeError(`${name}: ${quote(bad)} is no scope (RFC 6749 section 3.3)`);
  return [...new Set(scopes)];
}

function readIntrospected({ tokens, introspection, authorizationServers }: ResourceServerOptions): string | undefined {
  if (!introspection) {
    if (tokens === undefined || tokens === "jwt") return undefined;
    throw new TypeError(`tokens ${quote(tokens)} needs the option introspection`);
  }
  const { issuer, clientId, clientSecret, authenticate } = introspection;
  if (!authenticate && (clientId === undefined || clientSecret === undefined)) {
    throw new TypeError("introspection needs clientId and clientSecret, or authenticate (RFC 7662 section 2.1)");
  }
  if (issuer === undefined && authorizationServers.length > 1) {
    throw new TypeError("introspection.issuer must say which of the authorizationServers is asked");
  }
  const asked = issuer ?? authorizationServers[0];
  if (asked !== undefined && authorizationServers.includes(asked)) return asked;
  throw new TypeError(`introspection.issuer ${quote(asked)} must be one of the authorizationServers`);
}

/** The policy for bound tokens. @throws TypeError */
export function readDpop({ dpop, dpopNonces }: Pick<ResourceServerOptions, "dpop" | "dpopNonces">): Settings["dpop"] {
  if (dpop === "off" && dpopNonces) throw new TypeError("dpopNonces needs proofs: dpop must not be off");
  return oneOf("dpop", dpop, ["off", "supported", "required"] as const) ?? "supported";
}

function readAlgorithms(given: readonly string[] = ALGORITHMS): string[] {
  const bad = given.find((name) => !ALGORITHMS.includes(name));
  if (bad !== undefined || given.length === 0) {
    const rule = `must be among ${ALGORITHMS.join(", ")}: only these have a public key (RFC 8725 section 3.1)`;
    throw new TypeError(`algorithms ${quote(bad ?? "")} ${rule}`);
  }
  return [...given];
}

function oneOf<T extends string>(name: string, value: T | undefined, all: readonly T[]): T | undefined {
  if (value === undefined || all.includes(value)) return value;
  throw new TypeError(`${name} ${quote(value)} must be one of ${all.join(", ")}`);
}

function seconds(name: string, value: number | undefined, preset: number, max: number): number {
  if (value === undefined) return preset;
  if (Number.isFinite(value) && value >= 0 && value <= max) return value;
  throw new TypeError(`${name} must be seconds from 0 to ${max}, not ${quote(String(value))}`);
}
