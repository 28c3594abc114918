import { generateKeyPairSync } from "node:crypto";
import { calculateJwkThumbprint, exportJWK, type JWK } from "jose";
import { describe, expect } from "vitest";
import { hashOf } from "../helpers/proofs.js";
import { rejection } from "../helpers/service.js";
import { type Holder, holderTest, makeHolder, type ProofParts } from "./proofs.js";
import { ALGS, assemble, METADATA_URL, makeKey, outcome, RESOURCE, type Server } from "./support.js";

const BAD_PROOF = `DPoP error="invalid_dpop_proof", error_description="the DPoP proof was not accepted", algs="${ALGS}", resource_metadata="${METADATA_URL}"`;

/** Shows that a server refuses a proof, as any other that breaks a rule. */
async function expectRefused(server: Server, { headers }: Holder, proof: string, reason = "proof"): Promise<void> {
  server.log.length = 0;
  expect(outcome(await server.ask(await headers(proof)))).toEqual([401, BAD_PROOF]);
  expect(server.reasons()).toEqual([reason]);
}

/** Shows that a server takes a proof with these parts. */
async function expectTaken(server: Server, holder: Holder, parts: ProofParts): Promise<void> {
  const response = await server.ask(await holder.headers(await holder.prove(parts)));
  expect([response.status, server.log]).toEqual([200, []]);
}

const it = holderTest
  .extend(
    "refused",
    ({ server, holder }) =>
      (proof: string, reason?: string) =>
        expectRefused(server, holder, proof, reason),
  )
  .extend(
    "taken",
    ({ server, holder }) =>
      (parts: ProofParts) =>
        expectTaken(server, holder, parts),
  );

/** A number of so many bits, as a key holds it. */
function number(bits: number): string {
  const bytes = Buffer.alloc(Math.ceil(bits / 8), 0xff);
  bytes[0] = 0xff >> (bytes.length * 8 - bits);
  return bytes.toString("base64url");
}

describe("a proof", () => {
  it.for(ALGS.split(" "))("is taken with %s", async (alg, { signer, server }) => {
    await expectTaken(server, await makeHolder(signer, alg), {});
  });

  it("is wanted with every bound token", async ({ server, holder }) => {
    const { dpop: _, ...headers } = await holder.headers();
    expect(outcome(await server.ask(headers))).toEqual([401, BAD_PROOF]);
    expect(server.reasons()).toEqual(["proof"]);
  });

  it("comes alone", async ({ server, holder }) => {
    const [authorization, first, second] = [`DPoP ${holder.token}`, await holder.prove(), await holder.prove()];
    const headers: [string, string][] = [
      ["authorization", authorization],
      ["dpop", first],
      ["dpop", second],
    ];
    expect(outcome(await server.ask(headers))).toEqual([401, BAD_PROOF]);
    const presented = { scheme: "DPoP", proof: [first, second], method: "POST", url: "/mcp" } as const;
    expect(await rejection(server.verify(holder.token, { presented }))).toMatchObject({ code: "invalid_dpop_proof" });
    await expect(server.verify(holder.token, { presented: { ...presented, proof: first } })).resolves.toBeDefined();
  });

  it("is not looked at beyond 8 KB", async ({ holder, refused, taken }) => {
    await taken({ claims: { filler: "x".repeat(5000) } });
    await refused(await holder.prove({ claims: { filler: "x".repeat(6000) } }));
  });

  it.for<[string, (proof: string) => string]>([
    ["no JWT", () => "x"],
    ["no JWT of 8,192 characters", () => "x".repeat(8192)],
    ["longer than 8,192 characters", () => "x".repeat(8193)],
    ["one part short", (proof) => proof.split(".").slice(0, 2).join(".")],
    ["one part long", (proof) => `${proof}.x`],
    ["of no JSON", (proof) => proof.replace(/\.[^.]+\./, ".AAAA.")],
    ["padded", (proof) => `${proof}==`],
    ["unsigned", (proof) => proof.replace(/[^.]+$/, "")],
  ])("is refused where it is %s", async ([_what, change], { holder, refused }) => {
    await refused(change(await holder.prove()));
  });

  it("is refused where a member comes twice", async ({ holder, refused }) => {
    const [head = "", body = ""] = (await holder.prove()).split(".");
    const claims = Buffer.from(body, "base64url").toString().replace("{", '{"htm":"GET",');
    await refused(assemble(Buffer.from(head, "base64url").toString(), claims, "AAAA"));
  });
});

describe("the header of a proof", () => {
  it.for<[string, string, (holder: Holder) => ProofParts | Promise<ProofParts>]>([
    ["another typ", 'typ "JWT" must be dpop+jwt', () => ({ header: { typ: "JWT" } })],
    ["no typ", "must be dpop+jwt", () => ({ header: { typ: undefined } })],
    ["no key", "jwk must be a key", () => ({ header: { jwk: undefined } })],
    ["a key that is a text", "jwk must be a key", () => ({ header: { jwk: "key" } })],
    ["an extension", "is not understood", () => ({ header: { crit: ["b64"], b64: true } })],
    ["a member of a secret key", "private member k", (holder) => ({ header: { jwk: { ...holder.jwk, k: "AAAA" } } })],
    ["the private key", "private member d", async ({ key }) => ({ header: { jwk: await exportJWK(key.privateKey) } })],
    ["another key than it is signed with", "signature", async () => ({ by: (await makeKey()).privateKey })],
    [
      "HS256, by the public key",
      'alg "HS256" is not among',
      (holder) => ({ header: { alg: "HS256" }, by: Buffer.from(JSON.stringify(holder.jwk)) }),
    ],
  ])("must not have %s", async ([_what, detail, parts], { server, holder, refused }) => {
    await refused(await holder.prove(await parts(holder)));
    expect(server.log).toMatchObject([{ detail: expect.stringContaining(detail) }]);
  });

  it.for(["p", "q", "dp", "dq", "qi", "oth", "priv"])(
    "must not have a key with the private member %s",
    async (member, { server, holder, refused }) => {
      await refused(await holder.prove({ header: { jwk: { ...holder.jwk, [member]: "AAAA" } } }));
      expect(server.log).toMatchObject([{ detail: `jwk has the private member ${member}` }]);
    },
  );

  it("must not have an algorithm that is not listed, none least of all", async ({ signer, holder, refused }) => {
    const { key, jwk } = holder;
    const es384 = await makeHolder(signer, "ES384");
    await refused(await es384.prove());
    const secret = { kty: "oct", k: "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA" };
    await refused(
      await holder.prove({ header: { alg: "HS256", jwk: secret }, by: Buffer.from(secret.k, "base64url") }),
    );
    const [, body = ""] = (await holder.prove({ by: key.privateKey })).split(".");
    const claims = Buffer.from(body, "base64url").toString();
    await refused(assemble({ alg: "none", typ: "dpop+jwt", jwk }, claims));
  });

  it.for<[string, number, number]>([
    ["at the lower bound", 2048, 65_537],
    ["at the upper bounds", 4096, 0xfffffffb],
  ])("may have an RSA key %s: %i bits", async ([_what, modulusLength, publicExponent], { signer, server, holder }) => {
    const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength, publicExponent });
    const jwk = publicKey.export({ format: "jwk" }) as JWK;
    const token = await signer.sign({ cnf: { jkt: await calculateJwkThumbprint(jwk) } });
    const by = privateKey as unknown as Holder["key"]["privateKey"];
    const dpop = await holder.prove({ header: { alg: "RS256", jwk }, claims: { ath: hashOf(token) }, by });
    const response = await server.ask({ authorization: `DPoP ${token}`, dpop });
    expect([response.status, server.log]).toEqual([200, []]);
  });

  it.for<[string, string, string, string]>([
    ["a modulus of 2,047 bits", number(2047), "AQAB", "n of jwk has 2047 bits"],
    ["a modulus of 4,097 bits", number(4097), "AQAB", "n of jwk has 4097 bits"],
    ["a short modulus behind zeros", `AAAA${number(1024)}`, "AQAB", "n of jwk has 1024 bits"],
    ["an exponent of 33 bits", number(2048), number(33), "e of jwk has 33 bits"],
    ["an exponent of 2,048 bits", number(2048), number(2048), "e of jwk has 2048 bits"],
    ["a modulus that is no number", "!", "AQAB", "n of jwk has 0 bits"],
    ["a modulus of zeros", "AAAA", "AQAB", "n of jwk has 0 bits"],
  ])("must not have an RSA key with %s", async ([_what, n, e, said], { signer, server }) => {
    const jwk = { kty: "RSA", n, e };
    const jkt = await calculateJwkThumbprint(jwk);
    const token = await signer.sign({ cnf: { jkt } });
    const rsa = await makeHolder(signer, "RS256");
    const dpop = await rsa.prove({ header: { jwk }, claims: { ath: hashOf(token) } });
    expect(outcome(await server.ask({ authorization: `DPoP ${token}`, dpop }))).toEqual([401, BAD_PROOF]);
    expect(server.reasons()).toEqual(["proof"]);
    expect(JSON.stringify(server.log)).toContain(said);
  });

  it("keeps a key that was given away out of the log", async ({ server, holder, refused }) => {
    const jwk = await exportJWK(holder.key.privateKey);
    await refused(await holder.prove({ header: { jwk } }));
    expect(JSON.stringify(server.log)).toContain("private member d");
    expect(JSON.stringify(server.log)).not.toContain(jwk.d);
  });
});

describe("what a proof says", () => {
  it.for<[string, ProofParts["claims"]]>([
    ["another method", { htm: "GET" }],
    ["the method in small letters", { htm: "post" }],
    ["no method", { htm: undefined }],
    ["another path", { htu: "https://mcp.example/mcp/" }],
    ["another server", { htu: "https://other.example/mcp" }],
    ["another port", { htu: "https://mcp.example:8443/mcp" }],
    ["another scheme", { htu: "http://mcp.example/mcp" }],
    ["a user name", { htu: "https://a@mcp.example/mcp" }],
    ["an escaped slash for one", { htu: "https://mcp.example%2fmcp" }],
    ["a path alone", { htu: "/mcp" }],
    ["no address", { htu: undefined }],
    ["no time", { iat: undefined }],
    ["a time that is a text", { iat: "1893456000" }],
    ["no id", { jti: undefined }],
    ["an empty id", { jti: "" }],
    ["an id that is a number", { jti: 5 }],
    ["an id of 257 characters", { jti: "x".repeat(257) }],
    ["no token", { ath: undefined }],
    ["another token", { ath: hashOf("another") }],
  ])("must not be %s", async ([_what, claims], { holder, refused }) => {
    await refused(await holder.prove({ claims: claims ?? {} }));
  });

  it.for([
    ["upper case and the port spelled out", "HTTPS://MCP.example:443/mcp"],
    ["a query and a fragment", `${RESOURCE}?a=b#c`],
    ["dots", "https://mcp.example/x/../mcp"],
    ["letters that are escaped", "https://mcp.example/%6Dcp"],
  ])("may name the address with %s", async ([_what, htu], { taken }) => {
    await taken({ claims: { htu } });
  });

  it.for<[number, boolean]>([
    [-59, true],
    [-60, false],
    [60, true],
    [61, false],
  ])("may have been written %i s from now: %s", async ([seconds, good], { signer, holder, refused, taken }) => {
    const iat = Math.floor(signer.clock.epoch() / 1000) + seconds;
    if (good) await taken({ claims: { iat } });
    else await refused(await holder.prove({ claims: { iat } }));
  });

  it("may be as old as clocks may differ, and a minute where they must not", async ({ signer, holder }) => {
    const ago = (seconds: number) => ({ claims: { iat: Math.floor(signer.clock.epoch() / 1000) - seconds } });
    await expectTaken(signer.server({ clockSkewSeconds: 300 }), holder, ago(299));
    const exact = signer.server({ clockSkewSeconds: 0 });
    await expectTaken(exact, holder, ago(59));
    await expectRefused(exact, holder, await holder.prove(ago(60)));
  });

  it.for<[string, (now: number) => Record<string, unknown>, boolean]>([
    ["ends in 5 s", (now) => ({ exp: now + 5 }), true],
    ["ended 59 s ago", (now) => ({ exp: now - 59 }), true],
    ["ended 60 s ago", (now) => ({ exp: now - 60 }), false],
    ["ended long ago", () => ({ exp: 5 }), false],
    ["ends at a text", (now) => ({ exp: String(now + 5) }), false],
    ["ends at null", () => ({ exp: null }), false],
    ["begins in 60 s", (now) => ({ nbf: now + 60 }), true],
    ["begins in 61 s", (now) => ({ nbf: now + 61 }), false],
    ["begins at a text", () => ({ nbf: "0" }), false],
  ])("is held to its own times: it %s", async ([_what, times, good], { signer, holder, refused, taken }) => {
    const claims = times(Math.floor(signer.clock.epoch() / 1000));
    if (good) await taken({ claims });
    else await refused(await holder.prove({ claims }));
  });

  it("is held to its end exactly where clocks must not differ", async ({ signer, holder }) => {
    const exact = signer.server({ clockSkewSeconds: 0 });
    const now = Math.floor(signer.clock.epoch() / 1000);
    await expectTaken(exact, holder, { claims: { exp: now + 1 } });
    await expectRefused(exact, holder, await holder.prove({ claims: { exp: now } }));
  });

  it("may have an id of 256 characters", async ({ taken }) => {
    await taken({ claims: { jti: "x".repeat(256) } });
  });

  it("counts once", async ({ signer, server, holder, refused }) => {
    const proof = await holder.prove({ claims: { iat: Math.floor(signer.clock.epoch() / 1000) + 60 } });
    expect((await server.ask(await holder.headers(proof))).status).toBe(200);
    await refused(proof, "replayed");
    await signer.clock.sleep(119_000, new AbortController().signal);
    await refused(proof, "replayed");
    await signer.clock.sleep(1000, new AbortController().signal);
    await refused(proof, "proof");
  });

  it("counts once also where it comes twice at the same time", async ({ server, holder }) => {
    const headers = await holder.headers();
    const answers = await Promise.all([server.ask(headers), server.ask(headers), server.ask(headers)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401]);
  });

  it("has an id of its key: another client may have the same", async ({ signer, server, holder }) => {
    const other = await makeHolder(signer);
    for (const one of [holder, other]) {
      const proof = await one.prove({ claims: { jti: "1" } });
      expect((await server.ask(await one.headers(proof))).status).toBe(200);
    }
  });

  it("is not used up by a token that is not taken", async ({ signer, holder }) => {
    const proof = await holder.prove();
    const far = signer.server({ audience: "https://far.example" });
    expect((await far.ask(await holder.headers(proof))).status).toBe(401);
    expect(far.reasons()).toEqual(["audience"]);
    expect((await far.ask(await holder.headers(proof))).status).toBe(401);
    expect(far.reasons()).toEqual(["audience", "audience"]);
  });
});
