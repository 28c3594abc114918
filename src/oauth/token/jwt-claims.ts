import { isJsonObject, parseStrictJson } from "../../http/strict-json.js";

/** A parsed JWT whose signature is not verified: that is up to its audience. */
export interface UnverifiedJwt {
  header: Record<string, unknown>;
  claims: Record<string, unknown>;
}

/** Reads a JWT without verifying it; undefined if it is not a JWT, such as an opaque token. */
export function readClaims(token: string): UnverifiedJwt | undefined {
  const [first = "", second = "", ...rest] = token.split(".");
  const [header, claims] = [membersOf(first), membersOf(second)];
  return rest.length === 1 && header && claims ? { header, claims } : undefined;
}

function membersOf(part: string): Record<string, unknown> | undefined {
  try {
    const binary = atob(part.replaceAll("-", "+").replaceAll("_", "/"));
    const text = new TextDecoder("utf-8", { fatal: true }).decode(
      Uint8Array.from(binary, (character) => character.charCodeAt(0)),
    );
    const value = parseStrictJson(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
