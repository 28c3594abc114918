import { randomUUID } from "node:crypto";
import { calculateJwkThumbprint, type JWK, type JWTHeaderParameters, type JWTPayload, SignJWT } from "jose";
import { hashOf } from "../helpers/proofs.js";
import { it as base, type Key, makeKey, RESOURCE, type Signer } from "./support.js";

/** What a proof says in place of what a good one says. */
export interface ProofParts {
  claims?: Record<string, unknown>;
  header?: Record<string, unknown>;
  /** What it is signed with. */
  by?: Key["privateKey"] | Uint8Array;
}

/** A client that holds a key, and a token that is bound to it. */
export interface Holder {
  key: Key;
  /** The key as a proof shows it. */
  jwk: JWK;
  /** Its thumbprint. */
  jkt: string;
  token: string;
  /** A proof for a POST to the resource, with the token. */
  prove(parts?: ProofParts): Promise<string>;
  /** The headers of a request with the token, and with a good proof where none is given. */
  headers(proof?: string): Promise<{ authorization: string; dpop: string }>;
}

/** The RSA key of each algorithm, made once a file: one takes up to a second. */
const rsaKeys = new Map<string, Promise<Key>>();

/** A client with a new key; clients with the same RSA algorithm share one key. */
export async function makeHolder(signer: Signer, alg = "ES256"): Promise<Holder> {
  const made = rsaKeys.get(alg) ?? makeKey(undefined, alg);
  if (/^[RP]S/.test(alg)) rsaKeys.set(alg, made);
  const key = await made;
  const { use: _, alg: __, ...jwk } = key.jwk;
  const jkt = await calculateJwkThumbprint(jwk);
  const token = await signer.sign({ cnf: { jkt }, exp: Math.floor(signer.clock.epoch() / 1000) + 3600 });
  const prove = ({ claims, header, by = key.privateKey }: ProofParts = {}): Promise<string> => {
    const iat = Math.floor(signer.clock.epoch() / 1000);
    const good = { htm: "POST", htu: RESOURCE, iat, jti: randomUUID(), ath: hashOf(token) };
    return new SignJWT({ ...good, ...claims } as JWTPayload)
      .setProtectedHeader({ alg, typ: "dpop+jwt", jwk, ...header } as JWTHeaderParameters)
      .sign(by);
  };
  const headers = async (proof?: string) => ({ authorization: `DPoP ${token}`, dpop: proof ?? (await prove()) });
  return { key, jwk, jkt, token, prove, headers };
}

/** Tests with a signer, a resource server that takes its tokens, and a client that holds a key. */
export const holderTest = base.extend("holder", ({ signer }) => makeHolder(signer));
