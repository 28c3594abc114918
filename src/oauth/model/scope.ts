import { isScopeToken } from "../../http/oauth-syntax.js";
import { refusalError } from "../../http/refuse.js";
import type { Discovered, IssuerMetadata } from "./metadata.js";

/** The most scopes of a list; servers are known that list 48. */
const MAX_SCOPES = 256;
/** The most bytes of a list as a parameter. */
const MAX_SCOPE_BYTES = 8 * 1024;

/** The scopes of a string, which are separated by blanks (RFC 6749 section 3.3); none for undefined. */
export function splitScope(scope: string | undefined): string[] {
  return scope?.split(" ").filter(Boolean) ?? [];
}

/**
 * Parses scopes from a string with blanks or from a list (RFC 6749 section 3.3).
 *
 * @throws `AgentAuthError` `bad_scope`
 */
export function parseScope(value: unknown, field: string, from: string): string[] {
  const complain = (rule: string) => refusalError("bad_scope", { field, value, from, rule });
  const tokens: unknown = typeof value === "string" ? splitScope(value) : value;
  if (!Array.isArray(tokens)) throw complain("must be a list of scopes");
  if (tokens.length > MAX_SCOPES) throw complain(`must not have more than ${MAX_SCOPES} scopes`);
  if (tokens.some((token) => typeof token !== "string" || token.length > 256 || !isScopeToken(token)))
    throw complain("must consist of scope tokens (RFC 6749 section 3.3)");
  // Scope tokens are ASCII.
  const bytes = tokens.join(" ").length;
  if (bytes > MAX_SCOPE_BYTES) throw complain(`must not have more than ${MAX_SCOPE_BYTES} bytes, and has ${bytes}`);
  return [...new Set(tokens as string[])];
}

/**
 * The scopes of a token response, or the requested ones if it has none (RFC 6749 section 5.1). GitHub and Slack separate
 * them by commas; where a requested scope has a comma, it belongs to the scope.
 */
export function grantedScope(granted: string | undefined, requested: string | undefined): string | undefined {
  if (granted?.includes(",") !== true || requested?.includes(",") === true) return granted ?? requested;
  return splitScope(granted.replaceAll(",", " ")).join(" ");
}

/** The distinct scopes of several lists, separated by blanks; undefined if there are none. */
export function unionScopes(...scopes: readonly (string | undefined)[]): string | undefined {
  const all = new Set(scopes.flatMap(splitScope));
  return all.size === 0 ? undefined : [...all].join(" ");
}

/** The granted scopes that were not requested; none if no scope was requested. */
export function scopesBeyond(requested: string | undefined, granted: string | undefined): string[] {
  if (requested === undefined) return [];
  const known = new Set(splitScope(requested));
  return splitScope(granted).filter((scope) => !known.has(scope));
}

/**
 * The scopes of a login: the caller's, else the challenge's, else all that the resource lists, else none. A step-up adds
 * those requested before. `offline_access` is added if the issuer lists it, and removed if not, because strict servers
 * reject the whole request for it.
 *
 * @returns also those of them that the caller did not request
 */
export function scopeFor(
  { server, challenge, resource, issuer }: Discovered<IssuerMetadata>,
  request: { scope: string | undefined; previousScope?: string | undefined },
): { scope: string[]; addedScope: string[] } {
  const parse = (scope: string | undefined, from: string) =>
    scope === undefined ? [] : parseScope(scope, "scope", from);
  const previous = parse(request.previousScope, server);
  const challenged = parse(challenge?.scope, server);
  if (request.scope !== undefined)
    return { scope: [...new Set([...previous, ...parse(request.scope, "the caller")])], addedScope: [] };
  const chosen = new Set([...previous, ...(challenged.length > 0 ? challenged : (resource?.scopesSupported ?? []))]);
  chosen.delete("offline_access");
  const addedScope = issuer.scopesSupported?.includes("offline_access") ? ["offline_access"] : [];
  return { scope: [...chosen, ...addedScope], addedScope };
}
