import { AgentAuthError, isAgentAuthError } from "../../errors.js";
import { optionPath, refusalError } from "../../http/refuse.js";
import { quote } from "../../redact.js";
import type { AllowRemedy, PolicyOption } from "../../remedy.js";
import type { OAuthHttp, Remembered, TraceEntry } from "../http/http.js";
import type { AuthorizationParams } from "../model/authorization-params.js";
import type { GrantEndpoints } from "../model/grant.js";
import type { Discovered, IssuerMetadata, ResourceMetadata, ServerMetadata } from "../model/metadata.js";
import { isSameIssuer } from "../model/metadata.js";
import { type IssuerCandidate, isRemembered } from "./issuer-choice.js";
import { isUnprovenParent } from "./resource-metadata.js";

/**
 * The options that are tried to find out what else is refused: with these, discovery reads nothing but metadata of the
 * origins that it reads from anyway. The others are named, and tried only where the user has set them.
 */
const TRIED = ["allowMissingPkceMetadata", "legacyDiscovery"] as const satisfies readonly PolicyOption[];

type Tried = (typeof TRIED)[number];

export interface LoginNeeds {
  option: PolicyOption | undefined;
  /** The issuer to register a client with by hand. */
  clientIssuer?: string | undefined;
}

/**
 * The error with all that the user has to set, where more than one check refuses a server, or its issuer registers no
 * clients.
 *
 * @param attempt repeats what failed with these options as well; its result is what the login itself needs
 */
export async function withEveryOption(
  error: unknown,
  attempt: (more: Partial<Record<Tried, true>>) => Promise<LoginNeeds>,
): Promise<unknown> {
  const needed: PolicyOption[] = [];
  let next: LoginNeeds = { option: refusedOption(error) };
  while (next.option !== undefined && !needed.includes(next.option)) {
    needed.push(next.option);
    if (!isTried(next.option)) break;
    const more = Object.fromEntries(needed.filter(isTried).map((name) => [name, true]));
    next = await attempt(more).catch((refusal: unknown) => ({ option: refusedOption(refusal) }));
  }
  const { clientIssuer } = next;
  const [option, ...also] = needed;
  if (!isAgentAuthError(error) || option === undefined || (also.length === 0 && clientIssuer === undefined))
    return error;
  const { code, message, class: kind, status, url, cause } = error;
  const more = { ...(also.length > 0 && { also }), ...(clientIssuer !== undefined && { clientIssuer }) };
  const remedy: AllowRemedy = { action: "allow", option, ...more };
  const checks = also.length > 0 ? "disable these checks" : "disables this check";
  const client = clientIssuer === undefined ? "" : "; and give the client that its issuer knows as client";
  const hint = `if you trust this server, ${needed.map(optionPath).join(" and ")} ${checks} for it${client}`;
  return new AgentAuthError(code, message, { class: kind, status, url, cause, hint, remedy });
}

function isTried(option: PolicyOption): option is Tried {
  return (TRIED as readonly PolicyOption[]).includes(option);
}

function refusedOption(error: unknown): PolicyOption | undefined {
  return isAgentAuthError(error) && error.remedy?.action === "allow" ? error.remedy.option : undefined;
}

/** Reads each document once, so that a second look at a server sends no second request. */
export function readOnce(http: Pick<OAuthHttp, "document">): Pick<OAuthHttp, "document"> {
  const documents = new Map<string, ReturnType<OAuthHttp["document"]>>();
  return {
    document(url, signal) {
      const known = documents.get(url) ?? http.document(url, signal);
      documents.set(url, known);
      return known;
    },
  };
}

type Trace = (entry: TraceEntry) => void;

/** The trace of the first look at a server, and that of a second one: it has only the requests that are new. */
export function traceOnce(trace: Trace): { trace: Trace; traceUnused: Trace } {
  const seen = new Set<string>();
  const note: Trace = (entry) => {
    seen.add(entry.url);
    trace(entry);
  };
  const why = "read to find out what else is refused, and not used";
  return {
    trace: note,
    traceUnused: (entry) => {
      if (!seen.has(entry.url)) note(entry.used ? { ...entry, used: false, why } : entry);
    },
  };
}

/** Security checks that the user may disable or tighten for a server, each by a flag of `login` with the same name. */
export interface SecurityPolicy {
  /** Accept a server whose metadata do not list PKCE S256; S256 is sent all the same. */
  allowMissingPkceMetadata?: boolean | undefined;
  /** Follow a `resource_metadata` address on another origin than the MCP server's. */
  allowCrossOriginMetadata?: boolean | undefined;
  /**
   * Log in at an issuer whose authorization and token endpoints have different origins, although it does not promise
   * `iss` (RFC 9207). A `login` with `confirmEndpoints` asks the user instead.
   */
  allowCrossOriginEndpoints?: boolean | undefined;
  /** Treat a server without metadata as one of the revision 2025-03-26: its origin is the issuer. */
  legacyDiscovery?: boolean | undefined;
  /** Allow a public server to name loopback and private addresses; link-local ones are never allowed. */
  allowPrivateNetwork?: boolean | undefined;
  /**
   * Use tokens of this type as bearer tokens. Servers exist that return bearer tokens under a type of their own, such as
   * `user`; without this option only `Bearer` and `DPoP` are accepted.
   */
  acceptTokenType?: string | undefined;
  /** Require the resource to be exactly the MCP server's address, not a parent of it. */
  strictResource?: boolean | undefined;
  /** Require all endpoints of the issuer to share its origin, so that the code from its page is not sent elsewhere. */
  sameOriginEndpoints?: boolean | undefined;
}

/** The overrides of a call, and of the earlier login at its server. */
export interface OverrideContext {
  overrides: SecurityPolicy;
  /** The option `resource`: replaces the one that the metadata name. */
  resource?: string | undefined;
  authorizationParams?: AuthorizationParams | undefined;
  /** An earlier login at the server: its exceptions remain in force for its issuer. */
  remembered: Omit<Remembered, "endpoints"> | undefined;
}

const STORED_OVERRIDES = [
  "allowMissingPkceMetadata",
  "allowCrossOriginMetadata",
  "allowCrossOriginEndpoints",
  "allowPrivateNetwork",
  "legacyDiscovery",
] as const satisfies readonly (keyof SecurityPolicy)[];

/** The overrides in force for an issuer: those of this call and those stored with the earlier login. */
export function overridesFor(issuer: NamedIssuer, context: OverrideContext): string[] {
  const { overrides, resource } = context;
  const before = rememberedFor(issuer, context)?.overrides ?? [];
  const names = STORED_OVERRIDES.filter((name) => overrides[name] === true || before.includes(name));
  return resource !== undefined || before.includes("resource") ? [...names, "resource"] : names;
}

export function grantEndpoints(issuer: IssuerMetadata): GrantEndpoints {
  const { tokenEndpoint: token, introspectionEndpoint: introspection, revocationEndpoint: revocation } = issuer;
  return { token, introspection, revocation, endSession: issuer.endSessionEndpoint, jwks: issuer.jwksUri };
}

/** The resource of a login: that of this call, else the one that the user chose for the issuer, else the server's. */
export function resourceFor(found: Discovered<IssuerMetadata>, context: OverrideContext): string {
  const { resource } = context;
  return resource ?? chosenResource(rememberedFor(found.issuer, context)) ?? found.resource?.resource ?? found.server;
}

export function chosenResource(remembered: OverrideContext["remembered"]): string | undefined {
  return remembered?.overrides.includes("resource") ? remembered.resource : undefined;
}

/** The token type that is accepted for an issuer: that of this call, else the one stored with the earlier login. */
export function acceptedTypeFor(issuer: NamedIssuer, context: OverrideContext): string | undefined {
  return context.overrides.acceptTokenType ?? rememberedFor(issuer, context)?.acceptedTokenType;
}

/**
 * The user's parameters of an authorization request, those of the earlier login included, and what that login learned
 * about the consent that the issuer needs.
 */
export function requestParamsFor(
  issuer: NamedIssuer,
  context: OverrideContext,
): Pick<Remembered, "authorizationParams" | "needsConsent"> {
  const { authorizationParams: before, needsConsent } = rememberedFor(issuer, context) ?? {};
  const authorizationParams = { ...before, ...context.authorizationParams };
  return {
    needsConsent,
    authorizationParams: Object.keys(authorizationParams).length > 0 ? authorizationParams : undefined,
  };
}

/** The earlier login, if it is one of this issuer. */
function rememberedFor(issuer: NamedIssuer, { remembered }: OverrideContext): OverrideContext["remembered"] {
  return remembered && isRemembered({ remembered }, issuer) ? remembered : undefined;
}

type NamedIssuer = Pick<IssuerCandidate, "issuer" | "namedIssuer">;

/** Whether an option is set, or was at the earlier login, at whatever issuer: that one is checked where it is used. */
export function hasOverride(name: keyof SecurityPolicy, { overrides, remembered }: OverrideContext): boolean {
  return overrides[name] === true || remembered?.overrides.includes(name) === true;
}

/**
 * The named issuers that may be used. An earlier login allowed metadata on another origin, or a resource that is a
 * parent of the server, for the issuer that they named then, and for no other: their address may have a new owner today.
 */
export function trustedNames(context: OverrideContext, mcpUrl: string, metadata: ResourceMetadata): readonly string[] {
  const { overrides, remembered } = context;
  const { url, resource, authorizationServers } = metadata;
  const isForeign = new URL(url).origin !== new URL(mcpUrl).origin && overrides.allowCrossOriginMetadata !== true;
  const isChosenParent = isUnprovenParent(metadata, mcpUrl) && context.resource === undefined;
  if (!isForeign && !isChosenParent) return authorizationServers;
  const before = remembered?.namedIssuer ?? remembered?.issuer;
  const known = authorizationServers.filter((issuer) => before !== undefined && isSameIssuer(issuer, before));
  if (known.length > 0) return known;
  const what = isForeign
    ? "allowed metadata on another origin (RFC 9728 section 7.3)"
    : `accepted the resource ${quote(resource)} (RFC 9728 section 3.3)`;
  throw refusalError("bad_address", {
    field: "authorization_servers",
    value: authorizationServers,
    from: url,
    rule: `must name ${quote(before)}, the issuer for which an earlier login ${what}`,
    ...(isForeign ? { override: "allowCrossOriginMetadata" } : { override: "resource", overrideValue: resource }),
  });
}

export interface LoginFlowOptions {
  flow?: "browser" | "device" | undefined;
  /** Whether the user is asked about endpoints of different origins. */
  confirmsEndpoints?: boolean | undefined;
  preRegistered?: object | undefined;
  /** The address of our client id metadata document, if we publish one. */
  clientMetadataUrl?: string | undefined;
}

/** The endpoint that a login begins at. */
interface FirstEndpoint {
  field: string;
  address: string;
  /** What makes another origin harmless; to be read after the rule. */
  unless: string;
}

/**
 * The endpoint that a login begins at, if the token endpoint has another origin: the result of the login is sent there.
 * Undefined also if the callback names its issuer (RFC 9207).
 */
export function foreignFirstEndpoint(
  { promisesIss, authorizationEndpoint, deviceAuthorizationEndpoint, tokenEndpoint }: ServerMetadata,
  flow: LoginFlowOptions["flow"],
): FirstEndpoint | undefined {
  const isDevice = flow === "device";
  const address = isDevice ? deviceAuthorizationEndpoint : authorizationEndpoint;
  if (address === undefined || new URL(address).origin === new URL(tokenEndpoint).origin) return undefined;
  if (isDevice) return { field: "device_authorization_endpoint", address, unless: "" };
  const unless = ", unless authorization_response_iss_parameter_supported is true";
  return promisesIss ? undefined : { field: "authorization_endpoint", address, unless };
}

/** What a login at an issuer needs, so that it is not refused before it begins. */
export function loginNeeds(
  issuer: IssuerMetadata | ServerMetadata,
  context: OverrideContext & LoginFlowOptions,
): LoginNeeds {
  if (!("authorizationEndpoint" in issuer)) return { option: undefined };
  const { preRegistered, clientMetadataUrl, flow, confirmsEndpoints } = context;
  const hasDocument = issuer.takesClientIdDocuments && clientMetadataUrl !== undefined;
  const hasClient = issuer.registrationEndpoint !== undefined || preRegistered !== undefined || hasDocument;
  const option = "allowCrossOriginEndpoints";
  const isForeign = foreignFirstEndpoint(issuer, flow) !== undefined;
  const isAllowed = confirmsEndpoints || overridesFor(issuer, context).includes(option);
  return { option: isForeign && !isAllowed ? option : undefined, clientIssuer: hasClient ? undefined : issuer.issuer };
}
