import type { Scheme } from "./credentials.js";
import { createNonces } from "./dpop-nonce.js";
import { type ProofFacts, readProof, requestAddress } from "./dpop-proof.js";
import { TokenRefusal } from "./events.js";
import type { Settings } from "./settings.js";
import { TokenCache } from "./token-cache.js";

/** How a token came, for `verify`. */
export interface Presentation {
  /** The scheme of the `Authorization` header. */
  scheme: Scheme;
  /** Every value of the `DPoP` header (RFC 9449 section 4). */
  proof?: string | readonly string[] | undefined;
  /** The HTTP method of the request. */
  method: string;
  /** The path of the request, or its whole address. Its origin is not heeded: clients know that of `resource`. */
  url: string;
}

/** Holds tokens against the keys that they are bound to (RFC 9449 section 7). */
export interface Dpop {
  /**
   * Checks how a token is presented, before anything is asked about the token: what is told about a proof is no word about
   * the token.
   *
   * @returns what its proof says; undefined for a bearer token
   * @throws TokenRefusal
   */
  check(token: string, presented: Presentation): Promise<Proof | undefined>;
  /**
   * Holds the key of a good token against the proof, and notes the proof as used.
   *
   * @param boundTo the thumbprint of the key that the token is bound to
   * @throws TokenRefusal
   */
  bind(boundTo: string | undefined, proof: Proof | undefined): void;
  /** The nonce that proofs need from here on; undefined where they need none. */
  nonce(): Promise<string | undefined>;
}

/** A proof that breaks no rule of its own. */
export interface Proof extends Omit<ProofFacts, "nonce"> {
  /** Whether the nonce in it is good no more for long. */
  isNonceOld: boolean;
}

/** The schemes that a resource server takes, the one first that more clients know. */
export const SCHEMES_TAKEN: Readonly<Record<Settings["dpop"], readonly Scheme[]>> = {
  off: ["Bearer"],
  supported: ["Bearer", "DPoP"],
  required: ["DPoP"],
};

/** How a token is presented that comes alone. */
export const BEARER: Presentation = { scheme: "Bearer", method: "GET", url: "/" };

/**
 * How many used proofs are remembered. When there are more, the oldest go, and could be used a second time until they are
 * too old anyway. Only who holds a good token and its key adds any, and it takes 400 requests a second to fill this.
 */
const MAX_USED = 50_000;
/** Seconds: a proof is made for one request, whatever clocks are trusted with. */
const MIN_WINDOW = 60;

/** Makes the judge of proofs. */
export function createDpop(settings: Settings): Dpop {
  const { resource, dpop, clock, proofClock, clockSkew } = settings;
  const window = Math.max(MIN_WINDOW, clockSkew);
  const nonces = settings.dpopNonces ? createNonces(clock) : undefined;
  const used = new TokenCache<true>(MAX_USED);
  return {
    async check(token, { scheme, proof = [], method, url }) {
      if (!SCHEMES_TAKEN[dpop].includes(scheme)) throw new TokenRefusal("scheme", `${scheme} is not taken`);
      if (scheme === "Bearer") return undefined;
      const [address, now] = [requestAddress(resource, url), proofClock.epoch() / 1000];
      const rules = { token, method, address, now, window, skew: clockSkew };
      const { nonce, ...facts } = await readProof([proof].flat(), rules);
      const age = (await nonces?.judge(nonce)) ?? "current";
      if (age === "unknown") throw new TokenRefusal("nonce", "the nonce of the proof is missing, or none of ours");
      return { ...facts, isNonceOld: age === "old" };
    },
    bind(boundTo, proof) {
      if (!proof) {
        if (boundTo !== undefined) throw new TokenRefusal("bound", "the token is bound to a key, no bearer token");
        return;
      }
      if (boundTo === undefined) throw new TokenRefusal("unbound", "a bearer token, presented as bound to a key");
      if (boundTo !== proof.thumbprint) throw new TokenRefusal("bound", "the proof is by another key than the token's");
      const id = `${proof.thumbprint} ${proof.jti}`;
      if (used.get(id, proofClock.epoch())) throw new TokenRefusal("replayed", "the proof was used before");
      used.put(id, true, proof.endsAt * 1000);
    },
    nonce: async () => nonces?.current(),
  };
}
