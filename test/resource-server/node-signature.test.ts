import { base64url, type CryptoKey, compactVerify, exportJWK, generateKeyPair, importJWK, SignJWT } from "jose";
import { describe, expect, it, vi } from "vitest";
import type { JsonObject } from "../../src/http/strict-json.js";
import { isSignedBy } from "../../src/resource-server/node-signature.js";
import { fc } from "../helpers/properties.js";

const ALGORITHMS = [
  "ES256",
  "ES384",
  "ES512",
  "EdDSA",
  "Ed25519",
  "RS256",
  "RS384",
  "RS512",
  "PS256",
  "PS384",
  "PS512",
];

interface Signed {
  alg: string;
  key: CryptoKey;
  token: string;
}

/** A key of an algorithm, as a key set publishes it, and a token by it. */
async function sign(alg: string, header: JsonObject = {}): Promise<Signed> {
  const { privateKey, publicKey } = await generateKeyPair(alg, { extractable: true });
  const token = await new SignJWT({ sub: "alice", jti: alg })
    .setProtectedHeader({ alg, kid: "k", ...header })
    .sign(privateKey);
  return { alg, token, key: (await importJWK(await exportJWK(publicKey), alg)) as CryptoKey };
}

const signed = await Promise.all(ALGORITHMS.map((alg) => sign(alg)));

function headerOf(token: string): JsonObject {
  return JSON.parse(new TextDecoder().decode(base64url.decode(token.split(".")[0] ?? ""))) as JsonObject;
}

function isAccepted(token: string, key: CryptoKey, algorithms = ALGORITHMS): boolean {
  let header: JsonObject;
  try {
    header = headerOf(token);
  } catch {
    return false;
  }
  return isSignedBy(token, header, key, algorithms);
}

async function joseAccepts(token: string, key: CryptoKey, algorithms = ALGORITHMS): Promise<boolean> {
  return compactVerify(token, key, { algorithms }).then(
    () => true,
    () => false,
  );
}

/** A token with one part replaced. */
function withPart(token: string, at: number, change: (part: string) => string): string {
  return token
    .split(".")
    .map((part, index) => (index === at ? change(part) : part))
    .join(".");
}

function withSignature(token: string, change: (bytes: Uint8Array) => Uint8Array): string {
  return withPart(token, 2, (part) => base64url.encode(change(base64url.decode(part))));
}

describe("a signature that node:crypto verifies", () => {
  it.each(signed)("is accepted with $alg", async ({ token, key }) => {
    expect([isAccepted(token, key), await joseAccepts(token, key)]).toEqual([true, true]);
  });

  it.each(signed)("is not verified by a key of another kind or algorithm than $alg", async ({ alg, token, key }) => {
    for (const other of signed) {
      if (other.key === key) continue;
      expect(isAccepted(token, other.key), `${alg} with the key of ${other.alg}`).toBe(false);
      const claimed = withPart(token, 0, () => base64url.encode(JSON.stringify({ alg: other.alg })));
      expect(isAccepted(claimed, key), `${alg} as ${other.alg}`).toBe(false);
    }
  });

  it.each(signed)("must have the form of $alg: no other length, no other encoding", async ({ alg, token, key }) => {
    const forms = [
      withSignature(token, (bytes) => bytes.subarray(1)),
      withSignature(token, (bytes) => new Uint8Array([0, ...bytes])),
      withSignature(token, (bytes) => new Uint8Array([...bytes, 0])),
      withSignature(token, (bytes) => new Uint8Array(bytes.length)),
      withSignature(token, () => new Uint8Array()),
      withPart(token, 2, (part) => `${part}=`),
      withPart(token, 2, (part) => ` ${part}`),
      withPart(token, 2, (part) => `${part}\n`),
      `${token}.`,
      `${token}.${token}`,
    ];
    if (alg.startsWith("ES")) forms.push(withSignature(token, derOf));
    for (const form of forms) {
      expect(isAccepted(form, key), form).toBe(false);
    }
  });

  it("is of an algorithm that is accepted", async () => {
    for (const { alg, token, key } of signed) {
      expect(isAccepted(token, key, ["HS256", ...ALGORITHMS.filter((other) => other !== alg)]), alg).toBe(false);
      expect(isSignedBy(token, { ...headerOf(token), alg: "none" }, key, ["none"])).toBe(false);
    }
  });

  it("has no extension", async () => {
    const [{ token, key }] = signed as [Signed];
    for (const extension of [{ crit: ["b64"], b64: true }, { crit: [] }, { b64: false }]) {
      expect(isSignedBy(token, { ...headerOf(token), ...extension }, key, ALGORITHMS)).toBe(false);
    }
  });

  it("is by a public key for signatures, of 2048 bits or more", async () => {
    const about = { name: "RSASSA-PKCS1-v1_5", modulusLength: 1024, publicExponent: new Uint8Array([1, 0, 1]) };
    const pair = await crypto.subtle.generateKey({ ...about, hash: "SHA-256" }, true, ["sign", "verify"]);
    const input = `${base64url.encode('{"alg":"RS256"}')}.${base64url.encode("{}")}`;
    const bytes = await crypto.subtle.sign(about.name, pair.privateKey, new TextEncoder().encode(input));
    const token = `${input}.${base64url.encode(new Uint8Array(bytes))}`;
    expect([isAccepted(token, pair.publicKey), await joseAccepts(token, pair.publicKey)]).toEqual([false, false]);
    const { privateKey } = await generateKeyPair("ES256", { extractable: true });
    const own = await new SignJWT({}).setProtectedHeader({ alg: "ES256" }).sign(privateKey);
    expect(isAccepted(own, privateKey)).toBe(false);
  });

  it("is by a key for the hash of its algorithm", async () => {
    const { privateKey, publicKey } = await generateKeyPair("RS256", { extractable: true });
    const token = await new SignJWT({}).setProtectedHeader({ alg: "RS256" }).sign(privateKey);
    const key = (await importJWK({ ...(await exportJWK(publicKey)), alg: "RS384" })) as CryptoKey;
    expect([isAccepted(token, key), await joseAccepts(token, key)]).toEqual([false, false]);
  });

  it("is verified by jose alone where there is no node:crypto", () => {
    const [{ token, key }] = signed as [Signed];
    const builtin = vi.spyOn(process, "getBuiltinModule").mockReturnValue(undefined as never);
    try {
      expect(isAccepted(token, key)).toBe(false);
    } finally {
      builtin.mockRestore();
    }
    expect(isAccepted(token, key)).toBe(true);
  });

  it.each(signed)("is accepted only where jose accepts it: $alg, mutated", async ({ token, key }) => {
    const characters = fc.constantFrom(..."AQgw-_019az.= \n+/é");
    const edit = fc.record({
      at: fc.nat(token.length),
      remove: fc.nat(2),
      insert: fc.array(characters, { maxLength: 2 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(edit, { minLength: 1, maxLength: 3 }), async (edits) => {
        let mutated = token;
        for (const { at, remove, insert } of edits) {
          mutated = mutated.slice(0, at) + insert.join("") + mutated.slice(at + remove);
        }
        if (isAccepted(mutated, key)) expect(await joseAccepts(mutated, key), mutated).toBe(true);
      }),
      { numRuns: Number(process.env["FUZZ_RUNS"] ?? 300) },
    );
  });
});

/** An ECDSA signature in DER (RFC 3279 section 2.2.3), as other protocols have it. */
function derOf(bytes: Uint8Array): Uint8Array {
  const integer = (part: Uint8Array) => [0x02, part.length + 1, 0, ...part];
  const half = bytes.length / 2;
  const content = [...integer(bytes.subarray(0, half)), ...integer(bytes.subarray(half))];
  return new Uint8Array([0x30, content.length, ...content]);
}
