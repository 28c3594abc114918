import { refused } from "../../http/refuse.js";
import { isScopeToken } from "../../http/scope-token.js";

const MAX_SCOPES = 64;

/**
 * Reads scopes, as a string with blanks or as a list (RFC 6749 section 3.3).
 *
 * @throws `AgentAuthError` `bad_scope`
 */
export function parseScope(value: unknown, field: string, from: string): string[] {
  const complain = (rule: string) => refused("bad_scope", { field, value, from, rule });
  const tokens: unknown = typeof value === "string" ? value.split(" ").filter(Boolean) : value;
  if (!Array.isArray(tokens)) throw complain("must be a list of scopes");
  if (tokens.length > MAX_SCOPES) throw complain(`must not have more than ${MAX_SCOPES} scopes`);
  if (tokens.some((token) => typeof token !== "string" || token.length > 256 || !isScopeToken(token))) {
    throw complain("must consist of scope tokens (RFC 6749 section 3.3)");
  }
  return [...new Set(tokens as string[])];
}

/** Scopes, separated by blanks, once each in the order they come; undefined where there are none. */
export function unionScopes(...scopes: readonly (string | undefined)[]): string | undefined {
  const all = new Set(scopes.flatMap((scope) => scope?.split(" ").filter(Boolean) ?? []));
  return all.size === 0 ? undefined : [...all].join(" ");
}

/** The scopes that were granted beyond those asked for; none where nothing was asked for. */
export function scopesBeyond(asked: string | undefined, granted: string | undefined): string[] {
  if (asked === undefined || granted === undefined) return [];
  const wanted = new Set(asked.split(" "));
  return granted.split(" ").filter((scope) => scope !== "" && !wanted.has(scope));
}

/** What the choice of scopes depends on. */
export interface ScopeSources {
  /** What the caller asks for. */
  explicit: readonly string[] | undefined;
  /** What the challenge asks for. */
  challenged: readonly string[] | undefined;
  /** What the resource lists. */
  resource: readonly string[] | undefined;
  /** What the authorization server lists. */
  server: readonly string[] | undefined;
  /** What was asked for before, in a step-up. */
  previous?: readonly string[] | undefined;
}

/**
 * The scopes to ask for: the caller's, else the challenge's, else all that the resource lists, else none at all. In a
 * step-up those asked for before come with them. `offline_access` is added where the server lists it, and taken out
 * where it does not, since strict servers refuse the whole request for it.
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
