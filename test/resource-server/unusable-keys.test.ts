import { exportJWK, type JWK } from "jose";
import { describe, expect } from "vitest";
import { rejection } from "../helpers/service.js";
import { it as base, countOf, makeKey, outcome, pass, REFUSED, type Server } from "./support.js";

const [rsa, other] = await Promise.all([makeKey("rsa", "RS256"), makeKey("rsa", "RS256")]);

const it = base
  .extend("keySet", { auto: true }, ({ signer }) => {
    signer.keys = [rsa.jwk];
  })
  .extend("token", ({ signer }) => signer.sign({}, { alg: "RS256", kid: "rsa" }, rsa))
  .extend("unjudged", ({ server, token, signer }) => async (by: Server = server): Promise<void> => {
    by.log.length = 0;
    const response = await by.ask(token);
    expect([response.status, response.headers.get("retry-after")]).toEqual([503, "5"]);
    expect(response.headers.get("www-authenticate")).toBeNull();
    expect(by.log).toMatchObject([{ type: "unavailable", issuer: signer.issuer.issuer, code: "bad_envelope" }]);
  });

const BROKEN: [string, () => JWK | Promise<JWK>][] = [
  ["is no base64", () => ({ ...rsa.jwk, n: "!!!" })],
  ["lacks a member", () => ({ kty: "RSA", kid: "rsa", alg: "RS256", e: "AQAB" })],
  ["is of 8 bits", () => ({ ...rsa.jwk, n: "AA" })],
  ["is of 1024 bits", async () => ({ ...(await smallKey()), kid: "rsa", alg: "RS256" })],
  ["is private", async () => ({ ...(await exportJWK(rsa.privateKey)), kid: "rsa", alg: "RS256" })],
];

async function smallKey(): Promise<JWK> {
  const details = { name: "RSASSA-PKCS1-v1_5", modulusLength: 1024, publicExponent: new Uint8Array([1, 0, 1]) };
  const { publicKey } = await crypto.subtle.generateKey({ ...details, hash: "SHA-256" }, true, ["sign", "verify"]);
  return exportJWK(publicKey);
}

describe("a key that cannot be used (V12)", () => {
  it.for(BROKEN)(
    "says nothing of a token: one that %s",
    async ([_what, broken], { signer, unjudged, server, token }) => {
      signer.keys = [await broken()];
      await unjudged();
      expect(server.log).toMatchObject([{ detail: expect.stringContaining('the key "rsa" cannot be used') }]);
      expect(await rejection(server.verify(token))).toMatchObject({ class: "unavailable", status: 503 });
      const { d = "no private part" } = await exportJWK(rsa.privateKey);
      expect(JSON.stringify(server.log)).not.toContain(d);
    },
  );

  it.for(BROKEN)(
    "does not stand before a good one of the same name: one that %s",
    async ([_what, broken], { signer, token }) => {
      for (const keys of [
        [await broken(), rsa.jwk],
        [rsa.jwk, await broken()],
        [await broken(), other.jwk, rsa.jwk],
      ]) {
        signer.keys = keys;
        const fresh = signer.server();
        expect([(await fresh.ask(token)).status, fresh.log]).toEqual([200, []]);
      }
    },
  );

  it.for(BROKEN)(
    "leaves the verdict to a good one of the same name: one that %s",
    async ([_what, broken], { signer }) => {
      const token = await signer.sign({}, { alg: "RS256", kid: "rsa" }, other);
      for (const keys of [
        [await broken(), rsa.jwk],
        [rsa.jwk, await broken()],
      ]) {
        signer.keys = keys;
        const fresh = signer.server();
        expect(outcome(await fresh.ask(token))).toEqual([401, REFUSED]);
        expect(fresh.reasons()).toEqual(["signature"]);
      }
    },
  );

  it("says nothing of a token either where none of its name can be used", async ({ signer, unjudged }) => {
    const small = { ...(await smallKey()), kid: "rsa" };
    signer.keys = [{ ...rsa.jwk, n: "!!!" }, small];
    await unjudged();
    signer.keys = [
      { ...rsa.jwk, n: "!!!" },
      { ...rsa.jwk, n: "AA" },
    ];
    await unjudged(signer.server());
    signer.keys = [...Array.from({ length: 9 }, () => small), rsa.jwk];
    await unjudged(signer.server());
  });

  it("is named as it was looked for", async ({ signer, unjudged, server }) => {
    signer.keys = [{ ...rsa.jwk, n: "!!!" }];
    const nameless = await signer.sign({}, { alg: "RS256", kid: undefined }, rsa);
    expect((await server.ask(nameless)).status).toBe(503);
    expect(server.log).toMatchObject([{ detail: expect.stringContaining('the key "" cannot be used: ') }]);
    await unjudged();
    expect(server.log).toMatchObject([{ detail: expect.stringContaining('the key "rsa" cannot be used: ') }]);
  });

  it("is no matter for the tokens of another key", async ({ signer, server, unjudged }) => {
    signer.keys = [{ ...rsa.jwk, n: "!!!" }, signer.key.jwk];
    expect((await server.ask(await signer.sign())).status).toBe(200);
    await unjudged();
  });

  it("is read again once a minute, by when it may have been mended", async ({ signer, unjudged, server, token }) => {
    signer.keys = [{ ...rsa.jwk, n: "!!!" }];
    for (let i = 0; i < 5; i++) await unjudged();
    expect(countOf(signer, "/jwks")).toBe(1);
    signer.keys = [rsa.jwk];
    await pass(signer, 60);
    expect((await server.ask(token)).status).toBe(200);
    expect(countOf(signer, "/jwks")).toBe(2);
  });
});

describe("a set without keys (V12)", () => {
  it("says nothing of a token, and is read again once a minute", async ({ signer, unjudged, server, token }) => {
    signer.keys = [];
    for (let i = 0; i < 5; i++) await unjudged();
    expect(server.log).toMatchObject([{ detail: "the key set has no keys" }]);
    await pass(signer, 60);
    for (let i = 0; i < 5; i++) await unjudged();
    expect(countOf(signer, "/jwks")).toBe(2);
    signer.keys = [rsa.jwk];
    await pass(signer, 60);
    expect((await server.ask(token)).status).toBe(200);
  });

  it("is no set that has other keys alone: of those, a token that names none of them is not", async ({
    signer,
    server,
    token,
  }) => {
    signer.keys = [signer.key.jwk];
    expect(outcome(await server.ask(token))).toEqual([401, REFUSED]);
    expect(server.reasons()).toEqual(["key"]);
  });
});
