import { envelope } from "../../../src/store/seal/envelope.js";
import { type KeyRing, type KeyRingOptions, keyRing } from "../../../src/store/seal/key-ring.js";
import type { Sealing } from "../../../src/store/seal/sealing.js";

/** A key of 32 equal bytes. */
export const key = (byte: number) => new Uint8Array(32).fill(byte);

export const NAME_KEY = key(9);

/** A ring of one key, unless others are named. */
export function testRing(over: Partial<KeyRingOptions> = {}): KeyRing {
  return keyRing({ current: "a", keys: { a: key(1) }, nameKey: NAME_KEY, ...over });
}

/** An envelope, and how often its key management service was asked. */
export function testEnvelope(): { sealing: Sealing; calls: { wrap: number; unwrap: number } } {
  const calls = { wrap: 0, unwrap: 0 };
  const turn = (bytes: Uint8Array) => bytes.map((byte) => byte ^ 0xff);
  const sealing = envelope({
    wrap: async (bytes) => {
      calls.wrap++;
      return turn(bytes);
    },
    unwrap: async (bytes) => {
      calls.unwrap++;
      return turn(bytes);
    },
    nameKey: NAME_KEY,
  });
  return { sealing, calls };
}
