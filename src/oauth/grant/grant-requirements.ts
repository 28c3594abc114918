import { quote } from "../../redact.js";
import type { PreRegisteredClient } from "../client/pre-registered-client.js";
import { type DpopPolicy, fitsPolicy } from "../dpop/dpop.js";
import type { Grant } from "./grant.js";

/** What a login has to be like for a program that says so; one that says nothing takes what there is. */
export interface GrantRequirements {
  /** Whether its tokens are bound to a key. */
  dpop: DpopPolicy;
  /** For which resource they are, in place of the one that the server names. */
  resource: string | undefined;
  /** The one issuer that they may come from. */
  expectedIssuer?: string | undefined;
  /** The client that they were given to. */
  preRegistered: PreRegisteredClient | undefined;
}

/** Why a login is not the one that is wished for; undefined where it is. */
export function unmetRequirement(
  grant: Grant,
  { dpop, resource, expectedIssuer, preRegistered }: GrantRequirements,
): string | undefined {
  if (!fitsPolicy(grant, dpop)) return `the token is ${grant.proofKey ? "" : "not "}bound to a key (DPoP)`;
  if (resource !== undefined && resource !== grant.resource) return `the token is for ${quote(grant.resource)}`;
  if (expectedIssuer !== undefined && expectedIssuer !== grant.issuer)
    return `the token comes from the issuer ${quote(grant.issuer)}`;
  const { clientId } = grant.client;
  if (preRegistered !== undefined && preRegistered.clientId !== clientId)
    return `the token was given to the client ${quote(clientId)}`;
  return undefined;
}
