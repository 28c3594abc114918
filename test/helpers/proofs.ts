import { createHash } from "node:crypto";
import { calculateJwkThumbprint, EmbeddedJWK, type JWK, jwtVerify } from "jose";
import type { SeenRequest } from "./server.js";

/** What a proof of possession says (RFC 9449 section 4.2), its signature checked. */
export interface ReadProof {
  claims: Record<string, unknown>;
  /** The public key in it. */
  jwk: JWK;
  /** The hash of that key. */
  thumbprint: string;
}

/** Reads the one proof that a request brought; it throws for a request without one, and for one that is not signed. */
export async function readProof({ headers }: Pick<SeenRequest, "headers">): Promise<ReadProof> {
  const proof = headers["dpop"];
  if (typeof proof !== "string") throw new Error("the request brought no proof, or several");
  const { payload, protectedHeader } = await jwtVerify(proof, EmbeddedJWK, { typ: "dpop+jwt", algorithms: ["ES256"] });
  const jwk = protectedHeader.jwk as JWK;
  return { claims: payload, jwk, thumbprint: await calculateJwkThumbprint(jwk) };
}

/** The hash of a token as a proof carries it. */
export function hashOf(token: string): string {
  return createHash("sha256").update(token).digest("base64url");
}
