import type { CryptoKey } from "jose";

/** The part of `node:crypto` that is used where it is: a hash costs a fortieth of that of Web Crypto, a signature a third. */
export interface NodeCrypto {
  createHash(name: "sha256"): { update(text: string): { digest(encoding: "base64url"): string } };
  verify(
    hash: string | null,
    data: Uint8Array,
    key: { key: object; dsaEncoding?: "ieee-p1363"; padding?: number; saltLength?: number },
    signature: Uint8Array,
  ): boolean;
  KeyObject: { from(key: CryptoKey): object };
}

type WithBuiltins = { process?: { getBuiltinModule?: (name: "node:crypto") => NodeCrypto | undefined } };

/** `node:crypto`, or undefined in other runtimes. */
export function nodeCrypto(): NodeCrypto | undefined {
  return (globalThis as WithBuiltins).process?.getBuiltinModule?.("node:crypto");
}
