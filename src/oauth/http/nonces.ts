/** A nonce by RFC 9449 section 8.1, limited in length so that servers accept the proof. */
const NONCE = /^[\x21\x23-\x5b\x5d-\x7e]{1,2048}$/;
const MAX_ORIGINS = 256;

/** The last nonce that each server sent for our proofs (RFC 9449 sections 8 and 9), for all requests of a client. */
export class Nonces {
  readonly #byOrigin = new Map<string, string>();

  /** The nonce for a request. */
  get(url: string): string | undefined {
    return this.#byOrigin.get(new URL(url).origin);
  }

  /** Stores the nonce of a response, if it has one. */
  learn(url: string, headers: Headers): void {
    const nonce = headers.get("dpop-nonce");
    if (nonce === null || !NONCE.test(nonce)) return;
    const { origin } = new URL(url);
    this.#byOrigin.delete(origin);
    this.#byOrigin.set(origin, nonce);
    const [oldest] = this.#byOrigin.keys();
    if (this.#byOrigin.size > MAX_ORIGINS && oldest !== undefined) this.#byOrigin.delete(oldest);
  }
}

/** Signs a proof for each request that we have the key that a token is bound to (RFC 9449 section 4). */
export interface Prover {
  /** The hash of the public key (RFC 7638), which identifies it at the issuer. */
  thumbprint(): Promise<string>;
  /** A proof for one request. Each is new: a server accepts none twice. */
  proof(request: { method: string; url: string }, accessToken?: string): Promise<string>;
  /** The nonces that servers require in proofs. */
  readonly nonces: Nonces;
}
