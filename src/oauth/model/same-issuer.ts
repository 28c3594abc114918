import { parseUrl } from "../../http/url.js";

/**
 * Whether two strings name the same issuer: they are equal, or they differ by nothing but a slash after a host, where
 * the metadata have the same address.
 */
export function isSameIssuer(one: string, other: string): boolean {
  return withoutRoot(one) === withoutRoot(other);
}

function withoutRoot(issuer: string): string {
  return `${parseUrl(issuer)?.origin}/` === issuer ? issuer.slice(0, -1) : issuer;
}
