import { generateKeyPairSync } from "node:crypto";
import { calculateJwkThumbprint, exportJWK, type JWK } from "jose";
import { beforeEach, describe, expect, it } from "vitest";
import { hashOf } from "../helpers/proofs.js";
import { type Holder, makeHolder, type ProofParts } from "./proofs.js";
import {
  ALGS,
  assemble,
  METADATA_URL,
  makeKey,
  outcome,
  RESOURCE,
  type Server,
  type Signer,
  startSigner,
} from "./support.js";

let signer: Signer;
let server: Server;
let holder: Holder;
beforeEach(async () => {
  signer = await startSigner();
  server = signer.server();
  holder = await makeHolder(signer);
});

const BAD_PROOF = `DPoP error="invalid_dpop_proof", error_description="the DPoP proof was not accepted", algs="${ALGS}", resource_metadata="${METADATA_URL}"`;

/** Shows that a proof is refused, as any other that breaks a rule. */
async function refused(proof: string, reason = "proof"): Promise<void> {
  server.log.length = 0;
  expect(outcome(await server.ask(await holder.headers(proof)))).toEqual([401, BAD_PROOF]);
  expect(server.reasons()).toEqual([reason]);
}

/** A number of so many bits, as a key holds it. */
function number(bits: number): string {
  const bytes = Buffer.alloc(Math.ceil(bits / 8), 0xff);
  bytes[0] = 0xff >> (bytes.length * 8 - bits);
  return bytes.toString("base64url");
}

async function taken(parts: ProofParts): Promise<void> {
  const response = await server.ask(await holder.headers(await holder.prove(parts)));
  expect([response.status, server.log]).toEqual([200, []]);
}

describe("a proof", () => {
  it.each(ALGS.split(" "))("is taken with %s", async (alg) => {
    holder = await makeHolder(signer, alg);
    await taken({});
  });

  it("is wanted with every bound token", async () => {
    const { dpop: _, ...headers } = await holder.headers();
    expect(outcome(await server.ask(headers))).toEqual([401, BAD_PROOF]);
    expect(server.reasons()).toEqual(["proof"]);
  });

  it("comes alone", async () => {
    const [authorization, first, second] = [`DPoP ${holder.token}`, await holder.prove(), await holder.prove()];
    const headers: [string, string][] = [
      ["authorization", authorization],
      ["dpop", first],
      ["dpop", second],
    ];
    expect(outcome(await server.ask(headers))).toEqual([401, BAD_PROOF]);
    const presented = { scheme: "DPoP", proof: [first, second], method: "POST", url: "/mcp" } as const;
    await expect(server.verify(holder.token, { presented })).rejects.toMatchObject({ code: "invalid_dpop_proof" });
    await expect(server.verify(holder.token, { presented: { ...presented, proof: first } })).resolves.toBeDefined();
  });

  it("is not looked at beyond 8 KB", async () => {
    await taken({ claims: { filler: "x".repeat(5000) } });
    await refused(await holder.prove({ claims: { filler: "x".repeat(6000) } }));
  });

  it.each<[string, (proof: string) => string]>([
    ["no JWT", () => "x"],
    ["one part short", (proof) => proof.split(".").slice(0, 2).join(".")],
    ["one part long", (proof) => `${proof}.x`],
    ["of no JSON", (proof) => proof.replace(/\.[^.]+\./, ".AAAA.")],
    ["unsigned", (proof) => proof.replace(/[^.]+$/, "")],
  ])("is refused where it is %s", async (_what, change) => {
    await refused(change(await holder.prove()));
  });

  it("is refused where a member comes twice", async () => {
    const [head = "", body = ""] = (await holder.prove()).split(".");
    const claims = Buffer.from(body, "base64url").toString().replace("{", '{"htm":"GET",');
    await refused(assemble(Buffer.from(head, "base64url").toString(), claims, "AAAA"));
  });
});

describe("the header of a proof", () => {
  it.each<[string, () => ProofParts | Promise<ProofParts>]>([
    ["another typ", () => ({ header: { typ: "JWT" } })],
    ["no typ", () => ({ header: { typ: undefined } })],
    ["no key", () => ({ header: { jwk: undefined } })],
    ["a key that is a text", () => ({ header: { jwk: "key" } })],
    ["an extension", () => ({ header: { crit: ["b64"], b64: true } })],
    ["a member of a secret key", () => ({ header: { jwk: { ...holder.jwk, k: "AAAA" } } })],
    ["the private key", async () => ({ header: { jwk: await exportJWK(holder.key.privateKey) } })],
    ["another key than it is signed with", async () => ({ by: (await makeKey()).privateKey })],
    ["HS256, by the public key", () => ({ header: { alg: "HS256" }, by: Buffer.from(JSON.stringify(holder.jwk)) })],
  ])("must not have %s", async (_what, parts) => {
    await refused(await holder.prove(await parts()));
  });

  it("must not have an algorithm that is not listed, none least of all", async () => {
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

  it.each<[string, number, number]>([
    ["at the lower bound", 2048, 65_537],
    ["at the upper bounds", 4096, 0xfffffffb],
  ])("may have an RSA key %s: %i bits", async (_what, modulusLength, publicExponent) => {
    const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength, publicExponent });
    const jwk = publicKey.export({ format: "jwk" }) as JWK;
    const token = await signer.sign({ cnf: { jkt: await calculateJwkThumbprint(jwk) } });
    const by = privateKey as unknown as Holder["key"]["privateKey"];
    const dpop = await holder.prove({ header: { alg: "RS256", jwk }, claims: { ath: hashOf(token) }, by });
    const response = await server.ask({ authorization: `DPoP ${token}`, dpop });
    expect([response.status, server.log]).toEqual([200, []]);
  });

  it.each<[string, string, string, string]>([
    ["a modulus of 2,047 bits", number(2047), "AQAB", "n of jwk has 2047 bits"],
    ["a modulus of 4,097 bits", number(4097), "AQAB", "n of jwk has 4097 bits"],
    ["a short modulus behind zeros", `AAAA${number(1024)}`, "AQAB", "n of jwk has 1024 bits"],
    ["an exponent of 33 bits", number(2048), number(33), "e of jwk has 33 bits"],
    ["an exponent of 2,048 bits", number(2048), number(2048), "e of jwk has 2048 bits"],
    ["a modulus that is no number", "!", "AQAB", "n of jwk has 0 bits"],
    ["a modulus of zeros", "AAAA", "AQAB", "n of jwk has 0 bits"],
  ])("must not have an RSA key with %s", async (_what, n, e, said) => {
    const jwk = { kty: "RSA", n, e };
    const jkt = await calculateJwkThumbprint(jwk);
    holder = { ...holder, token: await signer.sign({ cnf: { jkt } }) };
    const rsa = await makeHolder(signer, "RS256");
    await refused(await rsa.prove({ header: { jwk }, claims: { ath: hashOf(holder.token) } }));
    expect(JSON.stringify(server.log)).toContain(said);
  });

  it("keeps a key that was given away out of the log", async () => {
    const jwk = await exportJWK(holder.key.privateKey);
    await refused(await holder.prove({ header: { jwk } }));
    expect(JSON.stringify(server.log)).toContain("private member d");
    expect(JSON.stringify(server.log)).not.toContain(jwk.d);
  });
});

describe("what a proof says", () => {
  it.each<[string, ProofParts["claims"]]>([
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
  ])("must not be %s", async (_what, claims) => {
    await refused(await holder.prove({ claims: claims ?? {} }));
  });

  it.each([
    ["upper case and the port spelled out", "HTTPS://MCP.example:443/mcp"],
    ["a query and a fragment", `${RESOURCE}?a=b#c`],
    ["dots", "https://mcp.example/x/../mcp"],
    ["letters that are escaped", "https://mcp.example/%6Dcp"],
  ])("may name the address with %s", async (_what, htu) => {
    await taken({ claims: { htu } });
  });

  it.each([
    [-59, true],
    [-60, false],
    [60, true],
    [61, false],
  ])("may have been written %i s from now: %s", async (seconds, good) => {
    const iat = Math.floor(signer.clock.epoch() / 1000) + seconds;
    if (good) await taken({ claims: { iat } });
    else await refused(await holder.prove({ claims: { iat } }));
  });

  it("may be as old as clocks may differ, and a minute where they must not", async () => {
    const ago = (seconds: number) => ({ claims: { iat: Math.floor(signer.clock.epoch() / 1000) - seconds } });
    server = signer.server({ clockSkew: 300 });
    await taken(ago(299));
    server = signer.server({ clockSkew: 0 });
    await taken(ago(59));
    await refused(await holder.prove(ago(60)));
  });

  it.each<[string, (now: number) => Record<string, unknown>, boolean]>([
    ["ends in 5 s", (now) => ({ exp: now + 5 }), true],
    ["ended 59 s ago", (now) => ({ exp: now - 59 }), true],
    ["ended 60 s ago", (now) => ({ exp: now - 60 }), false],
    ["ended long ago", () => ({ exp: 5 }), false],
    ["ends at a text", (now) => ({ exp: String(now + 5) }), false],
    ["ends at null", () => ({ exp: null }), false],
    ["begins in 60 s", (now) => ({ nbf: now + 60 }), true],
    ["begins in 61 s", (now) => ({ nbf: now + 61 }), false],
    ["begins at a text", () => ({ nbf: "0" }), false],
  ])("is held to its own times: it %s", async (_what, times, good) => {
    const claims = times(Math.floor(signer.clock.epoch() / 1000));
    if (good) await taken({ claims });
    else await refused(await holder.prove({ claims }));
  });

  it("is held to its end exactly where clocks must not differ", async () => {
    server = signer.server({ clockSkew: 0 });
    const now = Math.floor(signer.clock.epoch() / 1000);
    await taken({ claims: { exp: now + 1 } });
    await refused(await holder.prove({ claims: { exp: now } }));
  });

  it("may have an id of 256 characters", async () => {
    await taken({ claims: { jti: "x".repeat(256) } });
  });

  it("counts once", async () => {
    const proof = await holder.prove({ claims: { iat: Math.floor(signer.clock.epoch() / 1000) + 60 } });
    expect((await server.ask(await holder.headers(proof))).status).toBe(200);
    await refused(proof, "replayed");
    await signer.clock.sleep(119_000, new AbortController().signal);
    await refused(proof, "replayed");
    await signer.clock.sleep(1000, new AbortController().signal);
    await refused(proof, "proof");
  });

  it("counts once also where it comes twice at the same time", async () => {
    const headers = await holder.headers();
    const answers = await Promise.all([server.ask(headers), server.ask(headers), server.ask(headers)]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 401, 401]);
  });

  it("has an id of its key: another client may have the same", async () => {
    const other = await makeHolder(signer);
    for (const one of [holder, other]) {
      const proof = await one.prove({ claims: { jti: "1" } });
      expect((await server.ask(await one.headers(proof))).status).toBe(200);
    }
  });

  it("is not used up by a token that is not taken", async () => {
    const proof = await holder.prove();
    const far = signer.server({ audience: "https://far.example" });
    expect((await far.ask(await holder.headers(proof))).status).toBe(401);
    expect(far.reasons()).toEqual(["audience"]);
    expect((await far.ask(await holder.headers(proof))).status).toBe(401);
    expect(far.reasons()).toEqual(["audience", "audience"]);
  });
});
