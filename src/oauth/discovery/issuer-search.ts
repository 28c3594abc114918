import { type AgentAuthError, isAgentAuthError } from "../../errors.js";
import type { IssuerMetadata, ServerMetadata } from "../model/metadata.js";
import { nothingThereError } from "./challenge-request.js";
import {
  boundFirst,
  type IssuerCandidate,
  type IssuerExpectation,
  issuerCandidates,
  issuerMismatchError,
} from "./issuer-choice.js";
import type { ForeignMetadata, ServerDiscovery } from "./metadata-rules.js";
import { overridesFor, trustedNames } from "./overrides.js";
import { namesNoIssuer, noResourceMetadata } from "./resource-metadata.js";
import type { DiscoveryContext, ExaminedServer } from "./server-examination.js";

export type ReadMetadata<T> = (discovery: ServerDiscovery) => Promise<T>;

/** The metadata of the first usable issuer: one that the server names, else the origin of a legacy server. */
export async function findIssuer<T extends IssuerMetadata>(
  context: DiscoveryContext,
  examined: ExaminedServer,
  read: ReadMetadata<T>,
): Promise<T | ServerMetadata> {
  const { url, resource, policy } = examined;
  const isLegacy = !resource || resource.authorizationServers.length === 0;
  const issuers = isLegacy ? [new URL(url).origin] : await boundFirst(trustedNames(context, url, resource), context);
  const from = isLegacy ? url : resource.url;
  const candidates = issuerCandidates(context, issuers, { from, policy });
  if (isLegacy && !candidates.some((candidate) => overridesFor(candidate, context).includes("legacyDiscovery")))
    throw noIssuerError(examined);
  try {
    return await readFirstUsable(candidates, { named: issuers, from }, (candidate, own) =>
      read(metadataSearch(context, examined, candidate, own)),
    );
  } catch (error) {
    if (!isLegacy || !isWithoutMetadata(error)) throw error;
    return legacyIssuer(url);
  }
}

/** The search for the metadata of one issuer. @param own why the metadata of the user's own issuer cannot be used */
function metadataSearch(
  context: DiscoveryContext,
  { http, policy: { bounds }, signal }: ExaminedServer,
  candidate: IssuerCandidate,
  own: AgentAuthError | undefined,
): ServerDiscovery {
  const missingPkceMetadata = overridesFor(candidate, context).includes("allowMissingPkceMetadata");
  const sameOriginEndpoints = context.overrides.sameOriginEndpoints === true;
  return {
    http,
    issuer: candidate.issuer,
    namedIssuer: candidate.namedIssuer,
    foreign: foreignMetadataOf(candidate, context, own),
    policy: { bounds, missingPkceMetadata, sameOriginEndpoints },
    mutualTls: context.mutualTls,
    trace: context.trace,
    signal,
  };
}

// Failures that say that an issuer publishes no metadata of its own. A name that does not resolve is none of them: a
// network that spoofs DNS could hand the login to an issuer that asserts to be this one.
const ABSENT = new Set(["no_server_metadata", "bad_content_type", "issuer_mismatch"]);

/**
 * Where metadata that assert the issuer may send a login. What an issuer publishes itself, and what it may get of the
 * client's, rules out any other origin than its own.
 *
 * @param own why the metadata of the issuer itself cannot be used
 */
function foreignMetadataOf(
  { issuer, namedIssuer, assertsIssuer }: IssuerCandidate,
  { sendsCredential }: IssuerExpectation,
  own: AgentAuthError | undefined,
): ForeignMetadata | undefined {
  if (!assertsIssuer || namedIssuer === undefined) return undefined;
  const isOwnOnly = sendsCredential === true || (own !== undefined && !ABSENT.has(own.code));
  return { at: namedIssuer, origin: isOwnOnly ? new URL(issuer).origin : undefined };
}

/**
 * The result for the first candidate whose metadata can be used.
 *
 * @param named the issuers that the server names, and the address of the document that names them
 */
async function readFirstUsable<T>(
  candidates: readonly IssuerCandidate[],
  { named, from }: { named: readonly string[]; from: string },
  read: (candidate: IssuerCandidate, own: AgentAuthError | undefined) => Promise<T>,
): Promise<T> {
  const failures: AgentAuthError[] = [];
  for (const candidate of candidates) {
    try {
      return await read(candidate, failures[0]);
    } catch (error) {
      // An issuer that is down may be the right one: using the next one would be a guess.
      if (!isAgentAuthError(error) || error.class !== "refused") throw error;
      failures.push(error);
    }
  }
  const [first] = candidates;
  if (first?.namedIssuer === undefined) throw failures[0];
  throw failures.find(({ code }) => !ABSENT.has(code)) ?? issuerMismatchError(first.issuer, named, from);
}

/** The error for a server that names no issuer, and that the user does not allow as one of 2025-03-26. */
function noIssuerError({ url, resource, response, isAbsent }: ExaminedServer): AgentAuthError {
  if (isAbsent) return nothingThereError(url);
  return resource ? namesNoIssuer(resource, response) : noResourceMetadata(url, response);
}

export function isWithoutMetadata(error: unknown): boolean {
  return isAgentAuthError(error, "no_server_metadata");
}

/** The issuer of a server of 2025-03-26 that publishes nothing: its origin, with endpoints at fixed paths. */
function legacyIssuer(mcpUrl: string): ServerMetadata {
  const { origin } = new URL(mcpUrl);
  return {
    issuer: origin,
    authorizationEndpoint: `${origin}/authorize`,
    tokenEndpoint: `${origin}/token`,
    registrationEndpoint: `${origin}/register`,
    promisesIss: false,
    takesClientIdDocuments: false,
    url: mcpUrl,
  };
}
