import { createHash, timingSafeEqual } from "node:crypto";

/** The parameters that decide what a callback means: a repeated one makes it ambiguous. */
const SINGLE = ["state", "code", "iss", "error"] as const;

/** The first of the deciding parameters that is there more than once (RFC 6749 section 3.1 forbids it). */
export function repeatedParameter(parameters: URLSearchParams): string | undefined {
  return SINGLE.find((name) => parameters.getAll(name).length > 1);
}

/** Compares in constant time. */
export function sameSecret(given: string, expected: string): boolean {
  const digest = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digest(given), digest(expected));
}
