import { parseBaseUrl } from "../http/address.js";
import { classifyHost, type Network } from "../http/address-class.js";
import { type Clock, systemClock } from "../http/deadline.js";
import { isScopeToken } from "../http/oauth-syntax.js";
import { checkOptionNames, type OptionNames } from "../http/public-class.js";
import type { TransportOptions } from "../http/transport.js";
import { quote, type Secret } from "../redact.js";
import type { ResourceServerEvent } from "./refusal.js";

/** How tokens are introspected (RFC 7662). */
export interface IntrospectionOptions {
  /** The authorization server that introspects. Required where there are several: no other may see the tokens. */
  issuer?: string | undefined;
  /** The client ID of the resource server there; it authenticates with `client_secret_basic`. */
  clientId?: string | undefined;
  /** The client secret. */
  clientSecret?: string | Secret | undefined;
  /** Another authentication, in place of `clientId` and `clientSecret`: adds credentials to the headers or the form. */
  authenticate?: ((request: { headers: Headers; form: URLSearchParams }) => void | Promise<void>) | undefined;
  /** Seconds for which a response is cached, never beyond the expiry of the token; 0 disables the cache. Default 30. */
  cacheTtlSeconds?: number | undefined;
  /** The introspection endpoint, for an issuer whose metadata has none. Default the one of the metadata. */
  endpoint?: string | undefined;
  /**
   * Accepts responses without `aud`: for an issuer that issues tokens for this server alone and never names it, such as
   * Doorkeeper. Any token of it is then accepted, so that no other server may use it. Default false.
   */
  allowMissingAudience?: boolean | undefined;
}

/** How a resource server verifies tokens. */
export interface ResourceServerOptions extends Pick<TransportOptions, "fetch" | "random"> {
  /** The address of the protected server, exactly as tokens name it in `aud`: `https://mcp.example/mcp`. */
  resource: string;
  /** The issuers whose tokens are accepted, exactly as tokens name them in `iss`. */
  authorizationServers: readonly string[];
  /** Scopes that every request needs. Default none. */
  requiredScopes?: readonly string[] | undefined;
  /** `scopes_supported` of the metadata. Default `requiredScopes`, where there are any. */
  scopesSupported?: readonly string[] | undefined;
  /** Further members of the metadata (RFC 9728 section 2), such as `resource_name`. */
  metadata?: Readonly<Record<string, unknown>> | undefined;
  /** The accepted values of `aud`: one or several. Default `resource`. */
  audience?: string | readonly string[] | undefined;
  /**
   * The accepted tokens: JWTs, verified locally (RFC 9068); any, by introspection; or both, JWTs verified locally and all
   * others introspected. Default `both` with `introspection`, else `jwt`.
   */
  tokens?: "jwt" | "introspection" | "both" | undefined;
  /** How tokens are introspected. */
  introspection?: IntrospectionOptions | undefined;
  /** Accepted signature algorithms. Default: all that have a public key. */
  algorithms?: readonly string[] | undefined;
  /** `legacy` also accepts JWTs of the type `JWT` and without a type. Default `at+jwt` (RFC 9068). */
  typ?: "at+jwt" | "legacy" | undefined;
  /**
   * Tokens that are bound to a key of their client (RFC 9449): `supported` accepts them with a proof, and others as bearer
   * tokens; `required` accepts no others; `off` accepts none of them. Default `supported`.
   */
  dpop?: "off" | "supported" | "required" | undefined;
  /** Requires a nonce of this server in every proof (RFC 9449 section 9). Default false. */
  dpopNonces?: boolean | undefined;
  /** Seconds that clocks may differ. Default 60. */
  clockSkewSeconds?: number | undefined;
  /** Seconds for which an issuer's keys and metadata are used. Default 600. */
  keyTtlSeconds?: number | undefined;
  /**
   * Seconds for which keys are used beyond `keyTtlSeconds` while they cannot be read again, so that the server outlives a
   * failure of its issuer; a key that the issuer removes then is accepted for as long. Default 0.
   */
  staleKeysSeconds?: number | undefined;
  /** The addresses of the keys, by issuer, for those whose metadata have none. Default those of the metadata. */
  jwksUris?: Readonly<Record<string, string>> | undefined;
  /**
   * Seconds for which the signature of a token need not be checked again, at most 60; 0 checks it at each request. All
   * other rules apply to each request, and keys that were read again apply at once. Default 60.
   */
  tokenCacheSeconds?: number | undefined;
  /** Called with the reason when a token is refused or cannot be verified; never with the token. */
  log?: ((event: ResourceServerEvent) => void) | undefined;
  /**
   * Checks the addresses that names resolve to, such as `nodeNetwork()` of `agentauth/node`; it takes the place of
   * `fetch`. Without it an address is checked as it is written.
   */
  network?: Network | undefined;
  /** Checks to disable. */
  policy?:
    | {
        /** Allows a public issuer to have its keys on this machine or in a private network. Default false. */
        allowPrivateNetwork?: boolean | undefined;
      }
    | undefined;
  /** Milliseconds for each request to an issuer; with a second attempt it may take twice as long. Default 5,000. */
  timeoutMs?: number | undefined;
  /** The name of the program, for `User-Agent`. */
  userAgent?: string | undefined;
  /** The clock. For tests. */
  clock?: Clock | undefined;
}

/** {@link ResourceServerOptions}, checked and with defaults. */
export type ResourceServerSettings = Readonly<ReturnType<typeof readResourceServerSettings>>;

const OPTIONS: OptionNames<ResourceServerOptions> = {
  ...{ resource: true, authorizationServers: true, requiredScopes: true, scopesSupported: true, metadata: true },
  ...{ audience: true, tokens: true, introspection: true, algorithms: true, typ: true, dpop: true, dpopNonces: true },
  ...{ clockSkewSeconds: true, keyTtlSeconds: true, staleKeysSeconds: true, jwksUris: true, tokenCacheSeconds: true },
  ...{
    log: true,
    network: true,
    policy: true,
    timeoutMs: true,
    userAgent: true,
    clock: true,
    fetch: true,
    random: true,
  },
};
const INTROSPECTION: OptionNames<IntrospectionOptions> = {
  ...{ issuer: true, clientId: true, clientSecret: true, authenticate: true, cacheTtlSeconds: true, endpoint: true },
  allowMissingAudience: true,
};

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
export function checkAddresses(options: ResourceServerOptions): void {
  checkOptionNames(options, OPTIONS, "createResourceServer");
  if (options.introspection !== undefined) checkOptionNames(options.introspection, INTROSPECTION, "introspection");
  if (options.policy !== undefined) checkOptionNames(options.policy, { allowPrivateNetwork: true }, "policy");
  const { resource, authorizationServers } = options;
  parseBaseUrl(resource ?? "", "resource");
  const { href, origin } = new URL(resource);
  if (resource !== href && resource !== origin)
    throw new TypeError(`resource ${quote(resource)} must be written as ${quote(href)}: tokens name it so`);
  if (!Array.isArray(authorizationServers) || authorizationServers.length === 0)
    throw new TypeError("authorizationServers must name at least one issuer");
  for (const issuer of authorizationServers) {
    parseBaseUrl(issuer ?? "", "authorizationServers");
    if (classifyHost(new URL(issuer).hostname) === "forbidden")
      throw new TypeError(`authorizationServers ${quote(issuer)} is an address where nothing is ever sent`);
  }
  if (options.introspection?.endpoint !== undefined)
    parseBaseUrl(options.introspection.endpoint, "introspection.endpoint");
  for (const [issuer, url] of Object.entries(options.jwksUris ?? {})) {
    parseBaseUrl(url, "jwksUris");
    if (authorizationServers.includes(issuer)) continue;
    throw new TypeError(`jwksUris ${quote(issuer)} must be one of the authorizationServers`);
  }
}

/** Checks the options and adds defaults. @throws TypeError */
export function readResourceServerSettings(options: ResourceServerOptions) {
  const { resource, authorizationServers, introspection, audience = resource, clock = systemClock } = options;
  const audiences = typeof audience === "string" ? [audience] : [...audience];
  if (audiences.length === 0 || audiences.some((one) => typeof one !== "string" || one === ""))
    throw new TypeError("audience must be a text, or a list of texts that is not empty");
  const requiredScopes = readScopes("requiredScopes", options.requiredScopes);
  const { scopesSupported = requiredScopes.length > 0 ? requiredScopes : undefined } = options;
  const tokens = checkChoice("tokens", options.tokens, ["jwt", "introspection", "both"] as const);
  return {
    resource,
    issuers: [...authorizationServers],
    audiences,
    requiredScopes,
    scopesSupported: scopesSupported && readScopes("scopesSupported", scopesSupported),
    metadata: options.metadata,
    tokens: tokens ?? (introspection ? "both" : "jwt"),
    /** The issuer that introspects. */
    introspectedBy: readIntrospectingIssuer(options),
    algorithms: readAlgorithms(options.algorithms),
    /** Whether tokens may have the type of other JWTs. */
    legacyTyp: checkChoice("typ", options.typ, ["at+jwt", "legacy"] as const) === "legacy",
    dpop: readDpop(options),
    dpopNonces: options.dpopNonces ?? false,
    clockSkewSeconds: readSeconds("clockSkewSeconds", options.clockSkewSeconds, 60, 600),
    /** Seconds for which the response of an introspection is cached. */
    cacheTtlSeconds: readSeconds("introspection.cacheTtlSeconds", introspection?.cacheTtlSeconds, 30, 3600),
    /** Whether the response of an introspection may lack `aud`. */
    allowMissingAudience: introspection?.allowMissingAudience === true,
    keyTtlSeconds: readSeconds("keyTtlSeconds", options.keyTtlSeconds, 600, 86_400),
    staleKeysSeconds: readSeconds("staleKeysSeconds", options.staleKeysSeconds, 0, 86_400),
    tokenCacheSeconds: readSeconds("tokenCacheSeconds", options.tokenCacheSeconds, 60, 60),
    clock,
    proofClock: clock as Pick<Clock, "epoch">,
    log: options.log ?? (() => {}),
  };
}

/** Checks the scopes of an option. @throws TypeError */
export function readScopes(name: string, scopes: readonly string[] | undefined): readonly string[] {
  const bad = scopes?.find((scope) => !isScopeToken(scope));
  if (bad !== undefined) throw new TypeError(`${name}: ${quote(bad)} is no scope (RFC 6749 section 3.3)`);
  return [...new Set(scopes)];
}

function readIntrospectingIssuer(options: ResourceServerOptions): string | undefined {
  const { tokens, introspection, authorizationServers } = options;
  if (!introspection) {
    if (tokens === undefined || tokens === "jwt") return undefined;
    throw new TypeError(`tokens ${quote(tokens)} needs the option introspection`);
  }
  const { issuer, clientId, clientSecret, authenticate } = introspection;
  if (!authenticate && (clientId === undefined || clientSecret === undefined))
    throw new TypeError("introspection needs clientId and clientSecret, or authenticate (RFC 7662 section 2.1)");
  if (issuer === undefined && authorizationServers.length > 1)
    throw new TypeError("introspection.issuer must say which of the authorizationServers is asked");
  const named = issuer ?? authorizationServers[0];
  if (named !== undefined && authorizationServers.includes(named)) return named;
  throw new TypeError(`introspection.issuer ${quote(named)} must be one of the authorizationServers`);
}

function readDpop({ dpop, dpopNonces }: ResourceServerOptions): NonNullable<ResourceServerOptions["dpop"]> {
  if (dpop === "off" && dpopNonces) throw new TypeError("dpopNonces needs proofs: dpop must not be off");
  return checkChoice("dpop", dpop, ["off", "supported", "required"] as const) ?? "supported";
}

function readAlgorithms(given: readonly string[] = ALGORITHMS): string[] {
  const bad = given.find((name) => !ALGORITHMS.includes(name));
  if (bad !== undefined || given.length === 0) {
    const rule = `must be among ${ALGORITHMS.join(", ")}: only these have a public key (RFC 8725 section 3.1)`;
    throw new TypeError(`algorithms ${quote(bad ?? "")} ${rule}`);
  }
  return [...given];
}

function checkChoice<T extends string>(name: string, value: T | undefined, all: readonly T[]): T | undefined {
  if (value === undefined || all.includes(value)) return value;
  throw new TypeError(`${name} ${quote(value)} must be one of ${all.join(", ")}`);
}

function readSeconds(name: string, value: number | undefined, preset: number, max: number): number {
  if (value === undefined) return preset;
  if (Number.isFinite(value) && value >= 0 && value <= max) return value;
  throw new TypeError(`${name} must be seconds from 0 to ${max}, not ${quote(String(value))}`);
}
