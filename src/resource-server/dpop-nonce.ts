import { base64url } from "jose";
import type { Clock } from "../http/deadline.js";

/** The nonces that a server wants in proofs (RFC 9449 section 9). */
export interface Nonces {
  /** The one that is to be used from here on. */
  current(): Promise<string>;
  /** How good a nonce is: `old` is still taken, and is to be replaced. */
  judge(nonce: unknown): Promise<"current" | "old" | "unknown">;
}

const STEP_MS = 300_000;

/**
 * Makes nonces out of the time and a key of their own, so that nothing has to be kept about clients. One is good for the
 * step of five minutes in which it was made and for the next.
 */
export function createNonces(clock: Pick<Clock, "epoch">): Nonces {
  let secret: Uint8Array<ArrayBuffer> | undefined;
  const nonceOf = async (step: number): Promise<string> => {
    // Not before the first request: workers have no randomness while they are being loaded.
    secret ??= crypto.getRandomValues(new Uint8Array(32));
    const key = await crypto.subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
    const mac = await crypto.subtle.sign("HMAC", key, new TextEncoder().encode(String(step)));
    return base64url.encode(new Uint8Array(mac));
  };
  const step = () => Math.floor(clock.epoch() / STEP_MS);
  return {
    current: () => nonceOf(step()),
    async judge(nonce) {
      const now = step();
      if (nonce === (await nonceOf(now))) return "current";
      return nonce === (await nonceOf(now - 1)) ? "old" : "unknown";
    },
  };
}
