const RESOURCE = "/.well-known/oauth-protected-resource";

/** The default metadata address of a protected resource: the well-known segment before its path (RFC 9728 section 3.1). */
export function resourceMetadataAddress(resource: string): string {
  const { origin, pathname, search } = new URL(resource);
  return `${origin}${RESOURCE}${pathname === "/" ? "" : pathname}${search}`;
}

/**
 * Where an issuer's metadata may lie, in the order of trust: the service's own form and that of RFC 8414 (the same
 * address where the issuer has no path), then the two of OpenID Connect.
 */
export function serverMetadataAddresses(issuer: string): string[][] {
  const { origin, pathname } = new URL(issuer);
  const path = pathname.replace(/\/+$/, "");
  const oauth = [
    `${origin}${path}/.well-known/oauth-authorization-server`,
    `${origin}/.well-known/oauth-authorization-server${path}`,
  ];
  const openid = [
    `${origin}/.well-known/openid-configuration${path}`,
    `${origin}${path}/.well-known/openid-configuration`,
  ];
  // Where there are two in all, one round trip reads them.
  return path === "" ? [[...new Set([...oauth, ...openid])]] : [oauth, openid];
}

/** A text as a form has it; both parts of HTTP Basic are encoded like that (RFC 6749 section 2.3.1). */
export function formEncoded(text: string): string {
  return new URLSearchParams([["", text]]).toString().slice(1);
}

const SCOPE_TOKEN = /^[\x21\x23-\x5b\x5d-\x7e]+$/;

/** Whether a text is one scope (RFC 6749 section 3.3). */
export function isScopeToken(text: string): boolean {
  return SCOPE_TOKEN.test(text);
}
