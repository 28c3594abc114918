import { toBase64url } from "../http/base64url.js";
import type { Scheme } from "./credentials.js";
import { type ProofKey, readProof, requestAddress } from "./dpop-proof.js";
import type { ResourceServerSettings } from "./options.js";
import { TokenRefusal } from "./refusal.js";
import { TokenCache } from "./token-cache.js";

/** How a token was presented, for `verify`. */
export interface Presentation {
  /** The scheme of the `Authorization` header. */
  scheme: Scheme;
  /** Every value of the `DPoP` header (RFC 9449 section 4). */
  proof?: string | readonly string[] | undefined;
  /** The HTTP method of the request. */
  method: string;
  /** The path of the request, or its whole address. Its origin is ignored: clients use that of `resource`. */
  url: string;
}

/** The schemes that a resource server accepts; the one that more clients support comes first. */
const ACCEPTED_SCHEMES: Readonly<Record<ResourceServerSettings["dpop"], readonly Scheme[]>> = {
  off: ["Bearer"],
  supported: ["Bearer", "DPoP"],
  required: ["DPoP"],
};
/**
 * How many used proofs are remembered. When there are more, the oldest go, and could be used a second time until they are
 * too old anyway. Only a client with a valid token and its key adds any, and it takes 400 requests a second to fill this.
 */
const MAX_USED = 50_000;
/** How many keys of proofs are remembered, by the headers that hold them. */
const MAX_KEYS = 1000;
/** Seconds: the minimum age that is accepted, whatever the clock skew. */
const MIN_WINDOW = 60;
const NONCE_STEP_MS = 300_000;

/** Checks tokens against the keys that they are bound to (RFC 9449 section 7). */
export class Dpop {
  readonly acceptedSchemes: readonly Scheme[];
  readonly #settings: ResourceServerSettings;
  readonly #used = new TokenCache<true>(MAX_USED);
  readonly #keys = new TokenCache<ProofKey>(MAX_KEYS);
  #nonceSecret: Uint8Array<ArrayBuffer> | undefined;

  constructor(settings: ResourceServerSettings) {
    this.#settings = settings;
    this.acceptedSchemes = ACCEPTED_SCHEMES[settings.dpop];
  }

  /** Checks that the scheme is accepted, before the token is verified. @throws TokenRefusal */
  checkScheme(scheme: Scheme): void {
    if (!this.acceptedSchemes.includes(scheme)) throw new TokenRefusal("scheme", `${scheme} is not accepted`);
  }

  /**
   * Checks the proof of a verified token, and records it as used. Not before the token is verified: anyone could cause
   * that work.
   *
   * @param digest the SHA-256 of the token in base64url
   * @param boundTo the thumbprint of the key that the token is bound to
   * @returns whether the nonce of the proof expires soon
   * @throws TokenRefusal
   */
  async check(
    digest: string,
    { scheme, proof = [], method, url }: Presentation,
    boundTo: string | undefined,
  ): Promise<boolean> {
    if (scheme === "Bearer") {
      if (boundTo !== undefined) throw new TokenRefusal("bound", "the token is bound to a key, no bearer token");
      return false;
    }
    if (boundTo === undefined) throw new TokenRefusal("unbound", "a bearer token, presented as bound to a key");
    const { resource, proofClock, clockSkewSeconds: skew } = this.#settings;
    const [address, now] = [requestAddress(resource, url), proofClock.epoch() / 1000];
    const rules = { digest, boundTo, method, address, now, window: Math.max(MIN_WINDOW, skew), skew };
    const { jti, nonce, endsAt } = await readProof([proof].flat(), rules, this.#keys);
    const isNonceOld = await this.#isOld(nonce);
    const id = `${boundTo} ${jti}`;
    if (this.#used.get(id, proofClock.epoch())) throw new TokenRefusal("replayed", "the proof was used before");
    this.#used.put(id, true, endsAt * 1000);
    return isNonceOld;
  }

  /** The nonce that proofs need from now on (RFC 9449 section 9); undefined where they need none. */
  async nonce(): Promise<string | undefined> {
    return this.#settings.dpopNonces ? this.#nonceOf(this.#nonceStep()) : undefined;
  }

  /** Whether the nonce of a proof is accepted for the last time. @throws TokenRefusal */
  async #isOld(nonce: unknown): Promise<boolean> {
    const step = this.#nonceStep();
    if (!this.#settings.dpopNonces || nonce === (await this.#nonceOf(step))) return false;
    if (nonce === (await this.#nonceOf(step - 1))) return true;
    throw new TokenRefusal("nonce", "the nonce of the proof is missing, or none of ours");
  }

  #nonceStep(): number {
    return Math.floor(this.#settings.clock.epoch() / NONCE_STEP_MS);
  }

  /**
   * Derives a nonce from the time and a random key, so that no state is stored about clients. It is valid for the
   * five-minute step in which it was made, and for the next one.
   */
  async #nonceOf(step: number): Promise<string> {
    // Not before the first request: workers have no randomness while they are being loaded.
    this.#nonceSecret ??= crypto.getRandomValues(new Uint8Array(32));
    const algorithm = { name: "HMAC", hash: "SHA-256" };
    const key = await crypto.subtle.importKey("raw", this.#nonceSecret, algorithm, false, ["sign"]);
    const mac = await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(String(step)));
    return toBase64url(new Uint8Array(mac));
  }
}
