import { isDeepStrictEqual } from "node:util";
import { cliHint } from "../../src/cli/runtime/hints.js";
import { AgentAuthError } from "../../src/errors.js";
import type { LoginRemedy, Remedy } from "../../src/remedy.js";

/** Matches a remedy that has these members and no others. */
export function remedy(expected: Remedy): unknown {
  return {
    asymmetricMatch: (actual: unknown) => isDeepStrictEqual(actual, expected),
    toString: () => "remedy",
    toAsymmetricMatcher: () => `remedy ${JSON.stringify(expected)}`,
  };
}

/** Matches the remedy that is a login at a server. */
export function loginAt(server: string, more: Partial<LoginRemedy> = {}): unknown {
  return remedy({ action: "login", server, ...more });
}

/** Matches a remedy that the command line turns into this hint. */
export function asHint(expected: string): unknown {
  const hintOf = (given: Remedy) => cliHint(new AgentAuthError("x", "", { class: "auth", remedy: given })).hint;
  return {
    asymmetricMatch: (actual: unknown) => hintOf(actual as Remedy) === expected,
    toString: () => "hint",
    toAsymmetricMatcher: () => `hint ${expected}`,
  };
}
