import { toBase64url } from "../http/base64url.js";
import type { Clock } from "../http/deadline.js";

/** The nonces that a server requires in proofs (RFC 9449 section 9). */
export interface Nonces {
  /** The nonce to use from now on. */
  current(): Promise<string>;
  /** Classifies a nonce: `old` is still accepted, and must be replaced. */
  classify(nonce: unknown): Promise<"current" | "old" | "unknown">;
}

const STEP_MS = 300_000;

/**
 * Derives nonces from the time and a random key, so that no state is stored about clients. A nonce is valid for the
 * five-minute step in which it was made, and for the next one.
 */
export function createNonces(clock: Pick<Clock, "epoch">): Nonces {
  let secret: Uint8Array<ArrayBuffer> | undefined;
  const nonceOf = async (step: number): Promise<string> => {
    // Not before the first request: workers have no randomness while they are being loaded.
    secret ??= crypto.getRandomValues(new Uint8Array(32));
    const key = await crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    const mac = await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(String(step)));
    return toBase64url(new Uint8Array(mac));
  };
  const step = () => Math.floor(clock.epoch() / STEP_MS);
  return {
    current: () => nonceOf(step()),
    async classify(nonce) {
      const now = step();
      if (nonce === (await nonceOf(now))) return "current";
      return nonce === (await nonceOf(now - 1)) ? "old" : "unknown";
    },
  };
}
