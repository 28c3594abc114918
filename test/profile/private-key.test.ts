import { createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { jwtVerify, SignJWT } from "jose";
import { describe, expect, it } from "vitest";
import { readPrivateKey } from "../../src/profile/private-key.js";

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

  it("is called a private key where its source is not given", async () => {
    await expect(readPrivateKey("x")).rejects.toThrow("the private key is not a private key");
  });

  it("has the id that it is given, else that of its JWK", async () => {
    expect(await readPrivateKey(pem(ec))).not.toHaveProperty("keyId");
    expect(await readPrivateKey(jwk(ec, { kid: 5 }))).not.toHaveProperty("keyId");
    expect((await readPrivateKey(jwk(ec, { kid: "one" }))).keyId).toBe("one");
    expect((await readPrivateKey(jwk(ec, { kid: "one" }), { keyId: "two" })).keyId).toBe("two");
  });

  const passphrase = { cipher: "aes-256-cbc", passphrase: "hush-hush" };
  const small = generateKeyPairSync("rsa", { modulusLength: 1024 }).privateKey;
  const p521 = generateKeyPairSync("ec", { namedCurve: "P-521" }).privateKey;
  const KINDS = "use an RSA key of 2048 bits or more, an EC key on P-256 or P-384, or an Ed25519 key";
  const FORMS = "PEM (PKCS #8, PKCS #1 or SEC 1) or a JWK";
  const UNLOCK = /openssl pkey -in <file> -out <new file>.* writes it without one$/;
  const pss = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
  const x25519 = generateKeyPairSync("x25519").privateKey;
  it.each<[string, string, RegExp, string | RegExp]>([
    [
      "encrypted in PKCS #8",
      ec.export({ format: "pem", type: "pkcs8", ...passphrase }) as string,
      /^--private-key is encrypted, and agentauth does not ask for passphrases$/,
      UNLOCK,
    ],
    [
      "encrypted in SEC 1",
      ec.export({ format: "pem", type: "sec1", ...passphrase }) as string,
      /^--private-key is encrypted, and agentauth does not ask for passphrases$/,
      UNLOCK,
    ],
    [
      "a public key",
      createPublicKey(ec).export({ format: "pem", type: "spki" }) as string,
      /public key or a certificate$/,
      "use the private key that belongs to it",
    ],
    [
      "an RSA public key",
      createPublicKey(pss).export({ format: "pem", type: "pkcs1" }) as string,
      /public key or a certificate$/,
      "use the private key that belongs to it",
    ],
    [
      "a certificate",
      "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
      /public key or a certificate$/,
      "use the private key that belongs to it",
    ],
    [
      "a public JWK",
      JSON.stringify(createPublicKey(ec).export({ format: "jwk" })),
      /is a public key$/,
      "use the private one, whose JWK has a member d",
    ],
    ["an RSA key of 1024 bits", pem(small), /is of a kind that is not supported$/, KINDS],
    ["an EC key on P-521", pem(p521), /is of a kind that is not supported$/, KINDS],
    ["a key for encryption", pem(x25519), /is of a kind that is not supported$/, KINDS],
    ["a symmetric JWK", '{"kty":"oct","k":"aHVzaC1odXNo"}', /not the JWK of a private key/, `use one key, as ${FORMS}`],
    [
      "a set of JWKs",
      JSON.stringify({ keys: [JSON.parse(jwk(ec))] }),
      /not the JWK of a private key \(RFC 7517\)$/,
      `use one key, as ${FORMS}`,
    ],
    ["JSON cut short", '{"kty":"EC","d":"hush-hush', /is not JSON, although it starts like a JWK$/, `use ${FORMS}`],
    ["a JWK whose parts do not fit", jwk(ec, { x: "AAAA", d: "hush-hush" }), /cannot be read/, `${KINDS}, as ${FORMS}`],
    [
      "for an algorithm that is not its own",
      jwk(rsa, { alg: "ES256" }),
      /^--private-key: alg "ES256" is not one of RS256, PS256$/,
      "correct or remove alg",
    ],
    [
      "PEM that is damaged",
      "-----BEGIN PRIVATE KEY-----\naHVzaC1odXNo\n-----END PRIVATE KEY-----",
      /cannot be read as a private key$/,
      `${KINDS}, as ${FORMS}`,
    ],
    ["a token", "hush-hush", /is not a private key$/, `${KINDS}, as ${FORMS}`],
    ["empty", "", /is not a private key$/, `${KINDS}, as ${FORMS}`],
  ])("that is %s is refused, with what to give, and not shown", async (_what, text, rule, hint) => {
    const error = await readPrivateKey(text, { from: "--private-key" }).catch((thrown: unknown) => thrown);
    const wanted = typeof hint === "string" ? hint : expect.stringMatching(hint);
    expect(error).toMatchObject({ code: "usage", message: expect.stringMatching(rule), hint: wanted });
    expect(JSON.stringify(error)).toContain("--private-key");
    expect(String(error)).not.toMatch(/hush-hush|aHVzaC1odXNo/);
    expect((error as Error).cause).toBeUndefined();
  });
});
