import { createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { jwtVerify, SignJWT } from "jose";
import { describe, expect, it } from "vitest";
import { readPrivateKey } from "../../src/transport/private-key.js";

const ec = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey;
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
const p384 = generateKeyPairSync("ec", { namedCurve: "P-384" }).privateKey;
const ed25519 = generateKeyPairSync("ed25519").privateKey;
const pem = (key: KeyObject, type: "pkcs8" | "pkcs1" | "sec1" = "pkcs8") =>
  key.export({ format: "pem", type } as never) as unknown as string;
const jwk = (key: KeyObject, more: object = {}) => JSON.stringify({ ...key.export({ format: "jwk" }), ...more });

describe("a private key", () => {
  it.each<[string, string, KeyObject, string]>([
    ["RSA in PKCS #8", pem(rsa), rsa, "RS256"],
    ["RSA in PKCS #1", pem(rsa, "pkcs1"), rsa, "RS256"],
    ["EC P-256 in PKCS #8", pem(ec), ec, "ES256"],
    ["EC P-256 in SEC 1", pem(ec, "sec1"), ec, "ES256"],
    ["EC P-384 in PKCS #8", pem(p384), p384, "ES384"],
    ["Ed25519 in PKCS #8", pem(ed25519), ed25519, "EdDSA"],
    ["RSA as a JWK", `\n ${jwk(rsa)}\n`, rsa, "RS256"],
    ["RSA as a JWK for PS256", jwk(rsa, { alg: "PS256" }), rsa, "PS256"],
    ["EC P-256 as a JWK", jwk(ec, { alg: "ES256" }), ec, "ES256"],
    ["Ed25519 as a JWK", jwk(ed25519, { alg: "Ed25519" }), ed25519, "Ed25519"],
    ["text before the key", `Bag Attributes\n  friendlyName: me\n${pem(ec)}`, ec, "ES256"],
  ])("%s signs what its public half verifies", async (_what, text, pair, algorithm) => {
    const { key, algorithm: found } = await readPrivateKey(text);
    expect(found).toBe(algorithm);
    const jwt = await new SignJWT({ sub: "me" }).setProtectedHeader({ alg: found }).sign(key);
    await expect(jwtVerify(jwt, createPublicKey(pair))).resolves.toMatchObject({ payload: { sub: "me" } });
    expect(key.extractable).toBe(false);
  });

  it("has the id that it is given, else that of its JWK", async () => {
    expect(await readPrivateKey(pem(ec))).not.toHaveProperty("keyId");
    expect((await readPrivateKey(jwk(ec, { kid: "one" }))).keyId).toBe("one");
    expect((await readPrivateKey(jwk(ec, { kid: "one" }), { keyId: "two" })).keyId).toBe("two");
  });

  const passphrase = { cipher: "aes-256-cbc", passphrase: "hush-hush" };
  const small = generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey;
  const p521 = generateKeyPairSync("ec", { namedCurve: "P-521" }).privateKey;
  it.each<[string, string, RegExp]>([
    [
      "encrypted in PKCS #8",
      ec.export({ format: "pem", type: "pkcs8", ...passphrase }) as string,
      /encrypted.*passphrase/,
    ],
    [
      "encrypted in SEC 1",
      ec.export({ format: "pem", type: "sec1", ...passphrase }) as string,
      /encrypted.*passphrase/,
    ],
    ["a public key", createPublicKey(ec).export({ format: "pem", type: "spki" }) as string, /public key/],
    ["a public JWK", JSON.stringify(createPublicKey(ec).export({ format: "jwk" })), /is a public key/],
    ["an RSA key of 1024 bits", pem(small), /kind that is not supported/],
    ["an EC key on P-521", pem(p521), /kind that is not supported/],
    ["a symmetric JWK", '{"kty":"oct","k":"aHVzaC1odXNo"}', /not the JWK of a private key/],
    ["a set of JWKs", JSON.stringify({ keys: [JSON.parse(jwk(ec))] }), /not the JWK of a private key/],
    ["JSON cut short", '{"kty":"EC","d":"hush-hush', /is not JSON/],
    ["a JWK whose parts do not fit", jwk(ec, { x: "AAAA", d: "hush-hush" }), /cannot be read/],
    ["for an algorithm that is not its own", jwk(ec, { alg: "RS256" }), /alg "RS256" is not one of ES256/],
    ["PEM that is damaged", "-----BEGIN PRIVATE KEY-----\naHVzaC1odXNo\n-----END PRIVATE KEY-----", /cannot be read/],
    ["a token", "hush-hush", /is not a private key/],
    ["empty", "", /is not a private key/],
  ])("that is %s is refused, with what to give, and not shown", async (_what, text, rule) => {
    const error = await readPrivateKey(text, { from: "--private-key" }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "usage", message: expect.stringMatching(rule), hint: expect.any(String) });
    expect(JSON.stringify(error)).toContain("--private-key");
    expect(String(error)).not.toMatch(/hush-hush|aHVzaC1odXNo/);
    expect((error as Error).cause).toBeUndefined();
  });
});
