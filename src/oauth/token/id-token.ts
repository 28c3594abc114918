import { quote } from "../../redact.js";
import type { TraceEntry } from "../http/trace.js";
import { readClaims } from "./jwt-claims.js";

/** The party that an id token must come from and be for. */
export interface IdTokenExpectation {
  issuer: string;
  clientId: string;
  /** The nonce of the authorization request, if it had one. */
  nonce?: string | undefined;
  /** The address of the token endpoint, for the trace. */
  tokenEndpoint: string;
  trace?: ((entry: TraceEntry) => void) | undefined;
}

/** Far above any real id token. */
const MAX_ID_TOKEN = 64 * 1024;

/**
 * The id token of a token response, if it is of the issuer and for the client; any other is ignored, with an entry in
 * the trace. MCP uses no id token: a valid one is stored only to be sent back to its issuer at a logout. For that
 * neither its times nor its signature matter: it came directly from the issuer (OpenID Connect Core section 3.1.3.7).
 */
export function usableIdToken(value: unknown, expected: IdTokenExpectation): string | undefined {
  if (value === undefined) return undefined;
  const why = defectOf(value, expected);
  if (why === undefined) return String(value);
  const { trace, tokenEndpoint: url } = expected;
  trace?.({ step: "token", method: "POST", url, used: true, why: `the id_token of the response is ignored: ${why}` });
  return undefined;
}

function defectOf(value: unknown, { issuer, clientId, nonce }: IdTokenExpectation): string | undefined {
  const jwt = typeof value === "string" && value.length <= MAX_ID_TOKEN ? readClaims(value) : undefined;
  if (jwt === undefined) return "it is not a signed JWT";
  const { alg } = jwt.header;
  const { iss, aud, azp, nonce: returned } = jwt.claims;
  if (typeof alg !== "string" || alg.toLowerCase() === "none") return "it is not signed";
  if (iss !== issuer) return `its iss is not ${quote(issuer)}`;
  if (![aud].flat().includes(clientId) || (azp !== undefined && azp !== clientId))
    return `it is not for the client ${quote(clientId)}`;
  if (nonce !== undefined && returned !== nonce) return "its nonce is not that of the request";
  return undefined;
}
