import { exportJWK, type JWK, SignJWT } from "jose";
import { describe, expect, it } from "vitest";
import type { Grant } from "../../../src/oauth/model/grant.js";
import { isCurrent, verifyIdToken } from "../../../src/oauth/token/token.js";
import { Secret } from "../../../src/redact.js";
import { clientKey, unsignedJwt } from "../../helpers/client-keys.js";
import { madeGrant } from "../../helpers/grant.js";
import { rejection } from "../../helpers/service.js";

const NOW = 1_800_000_000_000;
const EXP = NOW / 1000 + 600;
const GOOD = { iss: "https://as.example/pool", aud: "client-1", sub: "ann", exp: EXP, iat: EXP - 600 };
const JWKS = "https://as.example/pool/jwks";

/** An issuer whose key sets are answered in turn. */
async function provider(statuses: number[] = []) {
  const { key, publicKey } = await clientKey("ES256");
  const other = await clientKey("ES256");
  const jwk = { ...(await exportJWK(publicKey)), kid: "k1", alg: "ES256" };
  const sets: JWK[][] = [[jwk]];
  let [reads, forgotten] = [0, 0];
  const http = {
    document: async (url: string) => {
      const status = statuses[reads] ?? 200;
      const text = JSON.stringify({ keys: sets[Math.min(reads++, sets.length - 1)] });
      const response = new Response(text, { status, headers: { "content-type": "application/json" } });
      return { response, status, url, text, json: undefined, requestId: undefined };
    },
    forgetDocuments: () => void forgotten++,
  };
  const sign = (claims: Record<string, unknown>, by = key.key, kid = "k1") =>
    new SignJWT(claims).setProtectedHeader({ alg: "ES256", kid }).sign(by);
  const verify = async (idToken: string | undefined, over: Partial<Grant> = {}) => {
    const { tokens } = madeGrant();
    const secret = idToken === undefined ? undefined : new Secret(idToken);
    const grant = madeGrant({ ...over, tokens: { ...tokens, idToken: secret } });
    return verifyIdToken(grant, { http, now: NOW });
  };
  return { sign, verify, sets, jwk, other: other.key.key, reads: () => reads, forgotten: () => forgotten };
}

describe("the id token of a login at an identity provider", () => {
  it.each<[string, Record<string, unknown>]>([
    ["for this client", GOOD],
    ["for several, issued to this client", { ...GOOD, aud: ["client-1", "other"], azp: "client-1" }],
    ["for this client in a list", { ...GOOD, aud: ["client-1"] }],
    ["that expired within a minute", { ...GOOD, exp: NOW / 1000 - 59 }],
    ["by a clock that is a minute ahead", { ...GOOD, iat: NOW / 1000 + 60 }],
  ])("is verified: %s", async (_what, claims) => {
    const { sign, verify, reads } = await provider();
    const token = await sign(claims);
    expect((await verify(token)).reveal()).toBe(token);
    expect(reads()).toBe(1);
  });

  const ISSUED_TO = 'must have been issued to the client "client-1" (azp), and is of "https://as.example/pool"';
  const VERIFIABLE = "must be verifiable (OpenID Connect Core section 3.1.3.7): ";

  it.each<[string, Record<string, unknown>, string]>([
    ["of another issuer", { ...GOOD, iss: "https://other.example" }, VERIFIABLE],
    ["for another client", { ...GOOD, aud: "other" }, VERIFIABLE],
    ["without an end", { ...GOOD, exp: undefined }, VERIFIABLE],
    ["without a subject", { ...GOOD, sub: undefined }, VERIFIABLE],
    ["with a number for a subject", { ...GOOD, sub: 7 }, "must name the user by a text (sub)"],
    ["with a subject without a character", { ...GOOD, sub: "" }, "must name the user by a text (sub)"],
    ["from the future", { ...GOOD, iat: NOW / 1000 + 61 }, "must have been issued by now (iat)"],
    ["without a time of issue", { ...GOOD, iat: undefined }, "must have been issued by now (iat)"],
    ["that has expired", { ...GOOD, exp: NOW / 1000 - 61 }, VERIFIABLE],
    ["issued to another client", { ...GOOD, azp: "other" }, ISSUED_TO],
    ["for several, of which none is named", { ...GOOD, aud: ["client-1", "other"] }, ISSUED_TO],
  ])("is refused: %s", async (_what, claims, rule) => {
    const { sign, verify } = await provider();
    const error = await rejection(verify(await sign(claims)));
    expect(error).toMatchObject({ code: "bad_token_answer", class: "refused" });
    expect(String(error)).toContain(`id_token "(not shown)" (from "https://as.example/pool/token") ${rule}`);
  });

  it("is refused with the reason where another key signed it, and where there is none", async () => {
    const { sign, verify, other } = await provider();
    expect(String(await rejection(verify(await sign(GOOD, other))))).toContain(
      `${VERIFIABLE}"signature verification failed"`,
    );
    expect(String(await rejection(verify(await unsignedJwt(GOOD))))).toContain(VERIFIABLE);
    expect(String(await rejection(verify(undefined)))).toContain("is required for a login at an identity provider");
  });

  it("is verified by a key that the issuer has had for a moment only: the keys are read once more", async () => {
    const { sign, verify, sets, jwk, reads, forgotten } = await provider();
    sets.unshift([{ ...jwk, kid: "k0" }]);
    const token = await sign(GOOD);
    expect((await verify(token)).reveal()).toBe(token);
    expect([reads(), forgotten()]).toEqual([2, 1]);
    expect(await rejection(verify(await sign(GOOD, undefined, "k9")))).toMatchObject({ code: "bad_token_answer" });
    expect([reads(), forgotten()]).toEqual([4, 2]);
  });

  it.each([
    [429, { code: "rate_limited", class: "unavailable", message: `${JWKS}: HTTP 429` }],
    [500, { code: "server_error", class: "unavailable", message: `${JWKS}: HTTP 500` }],
    [
      404,
      {
        code: "bad_server_metadata",
        class: "refused",
        message: `jwks_uri "${JWKS}" (from "https://as.example/pool") must be the address of a key set, and answered HTTP 404 (RFC 7517 section 5)`,
      },
    ],
  ])("is not verified where the keys are answered with %i", async (status, expected) => {
    const { sign, verify } = await provider([status]);
    expect(await rejection(verify(await sign(GOOD)))).toMatchObject(expected);
  });

  it("needs an issuer with keys", async () => {
    const { sign, verify } = await provider();
    const endpoints = { ...madeGrant().endpoints, jwks: undefined };
    expect(await rejection(verify(await sign(GOOD), { endpoints }))).toMatchObject({
      code: "bad_server_metadata",
      message:
        'jwks_uri (from "https://as.example/pool") is missing, and is required of an identity provider (OpenID Connect Discovery section 3)',
    });
  });
});

it.each<[Record<string, unknown>, boolean]>([
  [{ exp: NOW / 1000 + 31 }, true],
  [{ exp: NOW / 1000 + 30 }, false],
  [{ exp: NOW / 1000 + 21, iat: NOW / 1000 - 19 }, true],
  [{ exp: NOW / 1000 + 20, iat: NOW / 1000 - 20 }, false],
  [{ exp: NOW / 1000 + 29, iat: NOW / 1000 - 600 }, false],
  [{ exp: "soon" }, false],
  [{}, false],
])("an id token with %j is valid for a while longer: %s", async (claims, expected) => {
  expect(isCurrent(await unsignedJwt(claims), NOW)).toBe(expected);
});

it("no id token is valid for no while", () => {
  expect([undefined, "opaque"].map((token) => isCurrent(token, NOW))).toEqual([false, false]);
});
