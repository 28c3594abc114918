import type * as oauth from "oauth4webapi";
import { refused } from "../../http/refuse.js";

/** The types that have another meaning than "used as a bearer token". */
const OTHER_MEANING: readonly string[] = ["bearer", "dpop", "n_a"];

/** What {@link isAcceptableTokenType} requires, to be read after the name of the option. */
export const TOKEN_TYPE_RULE =
  "must be a name of at most 40 letters, digits, dots, hyphens and underscores, and neither Bearer, DPoP nor N_A";

/** Whether tokens of a type may be used as bearer tokens if the user allows it (RFC 6749 appendix A.13). */
export function isAcceptableTokenType(type: string): boolean {
  return /^[a-z][\w.-]{0,39}$/i.test(type) && !OTHER_MEANING.includes(type.toLowerCase());
}

/** Leaves the check of token types to {@link checkTokenType}, whose error names the option that accepts one. */
export const ANY_TOKEN_TYPE: NonNullable<oauth.ProcessTokenResponseOptions["recognizedTokenTypes"]> = new Proxy(
  {},
  { get: () => () => {} },
);

/** How the tokens of a request are to be used. */
export interface WantedTokenType {
  /** The address of the token endpoint. */
  tokenEndpoint: string;
  /** Whether they are bound to a key (RFC 9449). */
  isBound: boolean;
  /** A type that is used as a bearer token by the choice of the user. */
  acceptedTokenType: string | undefined;
}

/**
 * Checks the type of a token, which is case-insensitive (RFC 6749 section 5.1). A token that is not bound to the key is
 * not the one requested, and usable by anyone who finds it.
 *
 * @throws `AgentAuthError` `bad_token_answer`
 */
export function checkTokenType(
  value: string,
  { tokenEndpoint: from, isBound, acceptedTokenType }: WantedTokenType,
): void {
  const type = value.toLowerCase();
  if (type === (isBound ? "dpop" : "bearer")) return;
  if (!isBound && isAcceptableTokenType(type) && type === acceptedTokenType?.toLowerCase()) return;
  const rule = isBound ? 'must be "DPoP" (RFC 9449 section 5)' : 'must be "Bearer" (RFC 6749 section 5.1)';
  const mayAccept = !isBound && isAcceptableTokenType(type);
  const override = mayAccept ? ({ override: "acceptTokenType", overrideValue: type } as const) : {};
  throw refused("bad_token_answer", { field: "token_type", value, from, rule, ...override });
}
