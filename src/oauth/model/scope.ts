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

export interface ScopeSources {
  explicit: readonly string[] | undefined;
  challenged: readonly string[] | undefined;
  resource: readonly string[] | undefined;
  server: readonly string[] | undefined;
  previous?: readonly string[] | undefined;
}

/**
 * The scopes to request: the caller's, else the challenge's, else all that the resource lists, else none. A step-up
 * adds those requested before. `offline_access` is added if the server lists it, and removed if not, because strict
 * servers reject the whole request for it.
 */
export function chooseScope(sources: ScopeSources): string[] {
  const { explicit, challenged, resource, server, previous } = sources;
  if (explicit) return [...new Set([...(previous ?? []), ...explicit])];
  const base = challenged?.length ? challenged : (resource ?? []);
  const chosen = new Set([...(previous ?? []), ...base]);
  chosen.delete("offline_access");
  if (server?.includes("offline_access")) chosen.add("offline_access");
  return [...chosen];
}

/** The scopes of a login, by the order of `chooseScope`, and those of them that the caller did not request. */
export function scopeFor(
  found: Discovered<IssuerMetadata>,
  request: { scope: string | undefined; previousScope?: string | undefined },
): { scope: string[]; addedScope: string[] } {
  const from = found.server;
  const scope = chooseScope({
    explicit: request.scope === undefined ? undefined : parseScope(request.scope, "scope", "the caller"),
    challenged: found.challenge?.scope === undefined ? undefined : parseScope(found.challenge.scope, "scope", from),
    resource: found.resource?.scopesSupported,
    server: found.issuer.scopesSupported,
    previous: request.previousScope === undefined ? undefined : parseScope(request.previousScope, "scope", from),
  });
  return { scope, addedScope: request.scope === undefined ? scope.filter((one) => one === "offline_access") : [] };
}
