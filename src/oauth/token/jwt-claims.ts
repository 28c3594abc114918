import { isJsonObject, parseStrictJson } from "../../http/strict-json.js";

/** What a JWT says, believed by nobody: its signature is for whom it is meant for. */
export interface UnverifiedJwt {
  header: Record<string, unknown>;
  claims: Record<string, unknown>;
}

/** Reads a JWT without verifying it; undefined where it is none, such as a token that means something to its issuer alone. */
export function readClaims(token: string): UnverifiedJwt | undefined {
  const [first = "", second = "", ...rest] = token.split(".");
  const [header, claims] = [membersOf(first), membersOf(second)];
  return rest.length === 1 && header && claims ? { header, claims } : undefined;
}

function membersOf(part: string): Record<string, unknown> | undefined {
  try {
    const binary = atob(part.replaceAll("-", "+").replaceAll("_", "/"));
    const text = new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(binary, (one) => one.charCodeAt(0)));
    const value = parseStrictJson(text);
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
