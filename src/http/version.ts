/** The version of this package; a test holds it against package.json. */
export const VERSION = "0.1.0";

/** The `User-Agent` of requests; a program puts its own name in front. */
export function userAgent(program?: string): string {
  return program ? `${program} agentauth/${VERSION}` : `agentauth/${VERSION}`;
}
