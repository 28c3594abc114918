import type { Scheme } from "./credentials.js";
import { createNonces } from "./dpop-nonce.js";
import { type ProofKey, readProof, requestAddress } from "./dpop-proof.js";
import { TokenRefusal } from "./events.js";
import type { Settings } from "./resolved-options.js";
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

/** Checks tokens against the keys that they are bound to (RFC 9449 section 7). */
export interface Dpop {
  /** Checks that the scheme is accepted, before the token is verified. @throws TokenRefusal */
  checkScheme(scheme: Scheme): void;
  /**
   * Checks the proof of a verified token, and records it as used. Not before the token is verified: anyone could cause
   * that work.
   *
   * @param digest the SHA-256 of the token in base64url
   * @param boundTo the thumbprint of the key that the token is bound to
   * @throws TokenRefusal
   */
  check(digest: string, presented: Presentation, boundTo: string | undefined): Promise<Possession>;
  /** The nonce that proofs need from now on; undefined where they need none. */
  nonce(): Promise<string | undefined>;
}

/** The result of a check. */
export interface Possession {
  /** Whether the nonce of the proof expires soon. */
  isNonceOld: boolean;
}

/** The schemes that a resource server accepts; the one that more clients support comes first. */
export const ACCEPTED_SCHEMES: Readonly<Record<Settings["dpop"], readonly Scheme[]>> = {
  off: ["Bearer"],
  supported: ["Bearer", "DPoP"],
  required: ["DPoP"],
};

/** The presentation of a token without further information. */
export const BEARER: Presentation = { scheme: "Bearer", method: "GET", url: "/" };

/**
 * How many used proofs are remembered. When there are more, the oldest go, and could be used a second time until they are
 * too old anyway. Only a client with a valid token and its key adds any, and it takes 400 requests a second to fill this.
 */
const MAX_USED = 50_000;
/** How many keys of proofs are remembered, by the headers that hold them. */
const MAX_KEYS = 1000;
/** Seconds: the minimum age that is accepted, whatever the clock skew. */
const MIN_WINDOW = 60;

/** Creates the checks of proofs. */
export function createDpop(settings: Settings): Dpop {
  const { resource, dpop, clock, proofClock, clockSkewSeconds } = settings;
  const window = Math.max(MIN_WINDOW, clockSkewSeconds);
  const nonces = settings.dpopNonces ? createNonces(clock) : undefined;
  const used = new TokenCache<true>(MAX_USED);
  const keys = new TokenCache<ProofKey>(MAX_KEYS);
  return {
    checkScheme(scheme) {
      if (!ACCEPTED_SCHEMES[dpop].includes(scheme)) throw new TokenRefusal("scheme", `${scheme} is not accepted`);
    },
    async check(digest, { scheme, proof = [], method, url }, boundTo) {
      if (scheme === "Bearer") {
        if (boundTo !== undefined) throw new TokenRefusal("bound", "the token is bound to a key, no bearer token");
        return { isNonceOld: false };
      }
      if (boundTo === undefined) throw new TokenRefusal("unbound", "a bearer token, presented as bound to a key");
      const [address, now] = [requestAddress(resource, url), proofClock.epoch() / 1000];
      const rules = { digest, boundTo, method, address, now, window, skew: clockSkewSeconds };
      const { nonce, ...facts } = await readProof([proof].flat(), rules, keys);
      const nonceState = (await nonces?.classify(nonce)) ?? "current";
      if (nonceState === "unknown")
        throw new TokenRefusal("nonce", "the nonce of the proof is missing, or none of ours");
      const id = `${facts.thumbprint} ${facts.jti}`;
      if (used.get(id, proofClock.epoch())) throw new TokenRefusal("replayed", "the proof was used before");
      used.put(id, true, facts.endsAt * 1000);
      return { isNonceOld: nonceState === "old" };
    },
    nonce: async () => nonces?.current(),
  };
}
