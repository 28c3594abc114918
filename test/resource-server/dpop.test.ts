import { generateKeyPair, generateProof } from "dpop";
import { calculateJwkThumbprint, exportJWK } from "jose";
import { describe, expect } from "vitest";
import { hashOf } from "../helpers/proofs.js";
import { rejection } from "../helpers/service.js";
import { createService } from "./introspection-service.js";
import { type Holder, makeHolder } from "./proofs.js";
import { ALGS, it as base, CHALLENGED, INTROSPECTION, METADATA_URL, outcome, REFUSED, RESOURCE } from "./support.js";
import { countVerifications } from "./verifications.js";

const it = base.extend("holder", ({ signer }) => makeHolder(signer));

const OF_DPOP = `algs="${ALGS}", resource_metadata="${METADATA_URL}"`;
const BAD_TOKEN = `DPoP error="invalid_token", error_description="the access token was not accepted", ${OF_DPOP}`;

describe("where bound tokens are supported", () => {
  it("takes one with a proof, in any case of the scheme, and a bearer token without one", async ({
    holder,
    server,
    signer,
  }) => {
    for (const scheme of ["DPoP", "dpop", "DPOP"]) {
      const headers = { ...(await holder.headers()), authorization: `${scheme} ${holder.token}` };
      expect((await server.ask(headers)).status).toBe(200);
    }
    expect((await server.ask(await signer.sign())).status).toBe(200);
    expect(server.log).toEqual([]);
  });

  it("takes the proofs of a client library", async ({ signer }) => {
    const pair = await generateKeyPair("ES256");
    const jkt = await calculateJwkThumbprint(await exportJWK(pair.publicKey));
    const iat = Math.floor(Date.now() / 1000);
    const token = await signer.sign({ iat, exp: iat + 300, cnf: { jkt } });
    const today = signer.server({ clock: undefined });
    const dpop = await generateProof(pair, RESOURCE, "POST", undefined, token);
    expect((await today.ask({ authorization: `DPoP ${token}`, dpop })).status).toBe(200);
  });

  it("takes no bound token as a bearer token, with a proof or without", async ({ holder, server }) => {
    const { dpop } = await holder.headers();
    const authorization = `Bearer ${holder.token}`;
    expect(outcome(await server.ask({ authorization }))).toEqual([401, REFUSED]);
    expect(outcome(await server.ask({ authorization, dpop }))).toEqual([401, REFUSED]);
    expect(server.reasons()).toEqual(["bound", "bound"]);
  });

  it("takes no bearer token as a bound one", async ({ signer, holder, server }) => {
    const token = await signer.sign();
    const dpop = await holder.prove({ claims: { ath: hashOf(token) } });
    expect(outcome(await server.ask({ authorization: `DPoP ${token}`, dpop }))).toEqual([401, BAD_TOKEN]);
    expect(server.reasons()).toEqual(["unbound"]);
  });

  it("takes no proof by another key than the token's", async ({ signer, holder, server }) => {
    const thief = await makeHolder(signer);
    const dpop = await thief.prove({ claims: { ath: hashOf(holder.token) } });
    expect(outcome(await server.ask({ authorization: `DPoP ${holder.token}`, dpop }))).toEqual([401, BAD_TOKEN]);
    expect(server.reasons()).toEqual(["bound"]);
  });

  it.for<[string, unknown]>([
    ["to a certificate", { "x5t#S256": "A".repeat(43) }],
    ["to a certificate as well", { jkt: "", "x5t#S256": "A".repeat(43) }],
    ["to what is no thumbprint", { jkt: 5 }],
    ["to a list of thumbprints", { jkt: ["A".repeat(43)] }],
    ["to nothing", {}],
    ["to null", null],
  ])("takes no token that is bound %s", async ([_what, cnf], { signer, holder, server }) => {
    const bound = typeof cnf === "object" && cnf !== null && "jkt" in cnf && cnf.jkt === "";
    const token = await signer.sign({ cnf: bound ? { ...cnf, jkt: holder.jkt } : cnf });
    const dpop = await holder.prove({ claims: { ath: hashOf(token) } });
    expect(outcome(await server.ask({ authorization: `DPoP ${token}`, dpop }))).toEqual([401, BAD_TOKEN]);
    expect(outcome(await server.ask(token))).toEqual([401, REFUSED]);
    expect(server.reasons()).toEqual(["bound", "bound"]);
  });

  it("offers both ways, and says of scopes in the one that was used", async ({ server, holder }) => {
    expect(outcome(await server.ask())).toEqual([401, CHALLENGED]);
    const few = await server.ask(await holder.headers(), { scopes: ["admin"] });
    expect(outcome(few)).toEqual([403, `DPoP error="insufficient_scope", scope="admin", ${OF_DPOP}`]);
    expect(server.metadata()).toMatchObject({ dpop_signing_alg_values_supported: ALGS.split(" ") });
    expect(server.metadata()).not.toHaveProperty("dpop_bound_access_tokens_required");
  });

  it("verifies the token first, and a proof only with the key that the token is bound to", async ({
    signer,
    server,
    holder,
  }) => {
    const verifications = countVerifications();
    const thief = await makeHolder(signer, "RS256");
    const requested = async (token: string, by: Holder, claims = {}): Promise<[string | undefined, number]> => {
      verifications.clear();
      const dpop = await by.prove({ claims: { ath: hashOf(token), ...claims } });
      expect((await server.ask({ authorization: `DPoP ${token}`, dpop })).status).toBe(401);
      return [server.reasons().at(-1), verifications.count()];
    };
    const expired = await signer.sign({ cnf: { jkt: thief.jkt }, exp: 1 });
    expect(await requested("x", thief, { htm: "GET" })).toEqual(["not_a_jwt", 0]);
    expect(await requested(expired, thief, { htm: "GET" })).toEqual(["expired", 1]);
    expect(await requested(await signer.sign(), thief)).toEqual(["unbound", 1]);
    expect(await requested(holder.token, thief)).toEqual(["bound", 1]);
    expect(await requested(holder.token, holder, { htm: "GET" })).toEqual(["proof", 0]);
  });

  it("has no proof in its log", async ({ holder, server }) => {
    const proof = await holder.prove({ claims: { htm: "GET" } });
    await server.ask(await holder.headers(proof));
    expect(server.reasons()).toEqual(["proof"]);
    expect(JSON.stringify(server.log)).not.toContain(proof.slice(0, 40));
  });
});

describe("where bound tokens are required", () => {
  it.override({ options: { dpop: "required" } });

  it("takes no others, and offers nothing else", async ({ server, holder, signer }) => {
    expect((await server.ask(await holder.headers())).status).toBe(200);
    expect(outcome(await server.ask())).toEqual([401, `DPoP ${OF_DPOP}`]);
    expect(outcome(await server.ask(await signer.sign()))).toEqual([401, `DPoP ${OF_DPOP}`]);
    expect(await rejection(server.verify(await signer.sign()))).toMatchObject({ code: "invalid_token" });
    expect(server.reasons()).toEqual(["missing", "missing", "scheme"]);
  });

  it("takes no unbound token with a proof", async ({ signer, holder, server }) => {
    const token = await signer.sign();
    const dpop = await holder.prove({ claims: { ath: hashOf(token) } });
    expect(outcome(await server.ask({ authorization: `DPoP ${token}`, dpop }))).toEqual([401, BAD_TOKEN]);
  });

  it("says so in the metadata", ({ server }) => {
    expect(server.metadata()).toMatchObject({
      dpop_signing_alg_values_supported: ALGS.split(" "),
      dpop_bound_access_tokens_required: true,
    });
  });
});

describe("where bound tokens are off", () => {
  it("takes none, and does not speak of them", async ({ signer, holder }) => {
    const server = signer.server({ dpop: "off" });
    const bearer = `Bearer resource_metadata="${METADATA_URL}"`;
    expect(outcome(await server.ask(await holder.headers()))).toEqual([401, bearer]);
    const refused = bearer.replace(
      " ",
      ' error="invalid_token", error_description="the access token was not accepted", ',
    );
    expect(outcome(await server.ask(holder.token))).toEqual([401, refused]);
    const presented = { scheme: "DPoP", proof: await holder.prove(), method: "POST", url: RESOURCE } as const;
    expect(await rejection(server.verify(holder.token, { presented }))).toMatchObject({ code: "invalid_token" });
    expect(server.reasons()).toEqual(["missing", "bound", "scheme"]);
    expect(Object.keys(server.metadata())).toEqual(["resource", "authorization_servers"]);
  });
});

describe("verify", () => {
  it("judges a token with how it came, at the address that clients know", async ({ holder, server }) => {
    for (const url of ["/mcp?a=b", "http://10.0.0.1:8080/mcp", RESOURCE]) {
      const presented = { scheme: "DPoP", proof: await holder.prove(), method: "POST", url } as const;
      expect(await server.verify(holder.token, { presented })).toMatchObject({ subject: "alice" });
    }
    for (const url of ["/other", "//mcp.example/mcp", "*", "mailto:mcp"]) {
      const presented = { scheme: "DPoP", proof: await holder.prove(), method: "POST", url } as const;
      expect(await rejection(server.verify(holder.token, { presented }))).toMatchObject({
        code: "invalid_dpop_proof",
        class: "auth",
        status: 401,
        message: "the DPoP proof was not accepted",
      });
    }
  });

  it("takes no proof of no address for a request that has none", async ({ holder, server }) => {
    const proof = await holder.prove({ claims: { htu: undefined } });
    const presented = { scheme: "DPoP", proof, method: "POST", url: "*" } as const;
    expect(await rejection(server.verify(holder.token, { presented }))).toMatchObject({ code: "invalid_dpop_proof" });
  });

  it("wants a proof of a token that came as a bound one", async ({ holder, server }) => {
    const presented = { scheme: "DPoP", method: "POST", url: RESOURCE } as const;
    expect(await rejection(server.verify(holder.token, { presented }))).toMatchObject({ code: "invalid_dpop_proof" });
    expect(server.log).toEqual([{ type: "refused", reason: "proof", detail: "no DPoP header" }]);
  });

  it("takes a token alone for a bearer token", async ({ server, holder, signer }) => {
    expect(await rejection(server.verify(holder.token))).toMatchObject({ code: "invalid_token" });
    expect((await server.verify(await signer.sign())).subject).toBe("alice");
  });
});

describe("a token that the issuer introspects", () => {
  it("is held against the key that the issuer names", async ({ holder, signer }) => {
    const present = async (token: string) => ({
      authorization: `DPoP ${token}`,
      dpop: await holder.prove({ claims: { ath: hashOf(token) } }),
    });
    const cnf = { jkt: holder.jkt };
    createService(signer, {
      bound: signer.claims({ cnf, token_type: "DPoP" }),
      other: signer.claims({ cnf: { jkt: "A".repeat(43) }, token_type: "DPoP" }),
      plain: signer.claims({ token_type: "Bearer" }),
      unsaid: signer.claims({ token_type: "dpop" }),
    });
    const server = signer.server({ introspection: INTROSPECTION });
    const statuses: Record<string, number[]> = {};
    for (const token of ["bound", "other", "plain", "unsaid"]) {
      const answers = [await server.ask(await present(token)), await server.ask(token)];
      statuses[token] = answers.map(({ status }) => status);
    }
    expect(statuses).toEqual({ bound: [200, 401], other: [401, 401], plain: [401, 200], unsaid: [401, 401] });
  });
});
