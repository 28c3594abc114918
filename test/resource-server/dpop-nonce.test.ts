import { describe, expect } from "vitest";
import { rejection } from "../helpers/service.js";
import { makeHolder } from "./proofs.js";
import { ALGS, it as base, METADATA_URL, outcome, pass, RESOURCE } from "./support.js";

const it = base
  .extend({ options: { dpopNonces: true } })
  .extend("holder", ({ signer }) => makeHolder(signer))
  /** Asks with a good proof that has this nonce. */
  .extend("ask", ({ server, holder }) => async (nonce?: unknown, by = server): Promise<Response> => {
    return by.ask(await holder.headers(await holder.prove({ claims: { nonce } })));
  });

const USE_NONCE = `DPoP error="use_dpop_nonce", error_description="the DPoP proof needs the nonce of this answer", algs="${ALGS}", resource_metadata="${METADATA_URL}"`;
const nonceOf = (response: Response) => response.headers.get("dpop-nonce");

describe("a server that wants nonces", () => {
  it("gives one in its refusal, and takes it", async ({ ask, server }) => {
    const first = await ask();
    expect(outcome(first)).toEqual([401, USE_NONCE]);
    expect(server.reasons()).toEqual(["nonce"]);
    expect(nonceOf(first)).toMatch(/^[\w-]{43}$/);
    const second = await ask(nonceOf(first));
    expect([second.status, nonceOf(second)]).toEqual([200, null]);
  });

  it("gives one to who comes without a token, and with every other refusal", async ({ server, holder }) => {
    const current = await server.dpopNonce();
    for (const response of [await server.ask(), await server.ask("x"), await server.ask(await holder.headers("x"))]) {
      expect([response.status, nonceOf(response)]).toEqual([401, current]);
    }
    const headers = await holder.headers(await holder.prove({ claims: { nonce: current } }));
    const few = await server.ask(headers, { scopes: ["admin"] });
    expect([few.status, nonceOf(few)]).toEqual([403, current]);
  });

  it.for<[string, unknown]>([
    ["made up", "A".repeat(43)],
    ["no text", 5],
    ["empty", ""],
  ])("takes none that is %s", async ([_what, nonce], { ask }) => {
    expect(outcome(await ask(nonce))).toEqual([401, USE_NONCE]);
  });

  it("takes none of another server", async ({ signer, ask }) => {
    const other = signer.server({ dpopNonces: true });
    expect((await ask(await other.dpopNonce(), other)).status).toBe(200);
    expect(outcome(await ask(await other.dpopNonce()))).toEqual([401, USE_NONCE]);
  });

  it("takes the one before the current one, and gives the current one with its answer", async ({
    server,
    signer,
    ask,
  }) => {
    const early = await server.dpopNonce();
    await pass(signer, 300);
    const response = await ask(early);
    const current = await server.dpopNonce();
    expect(current).not.toBe(early);
    expect([response.status, nonceOf(response)]).toEqual([200, current]);
    expect((await ask(current)).status).toBe(200);
    await pass(signer, 300);
    expect(outcome(await ask(early))).toEqual([401, USE_NONCE]);
  });

  it("adds its nonce to an answer whose headers cannot be changed", async ({ server, signer, holder }) => {
    const early = await server.dpopNonce();
    await pass(signer, 300);
    const handler = server.protect(() => Response.redirect("https://mcp.example/elsewhere", 307));
    const headers = await holder.headers(await holder.prove({ claims: { nonce: early } }));
    const response = await handler(new Request(RESOURCE, { method: "POST", headers }));
    expect([response.status, response.headers.get("location"), nonceOf(response)]).toEqual([
      307,
      "https://mcp.example/elsewhere",
      await server.dpopNonce(),
    ]);
  });

  it("wants it from a program that verifies by itself, too", async ({ server, holder }) => {
    const claims = { nonce: await server.dpopNonce() };
    const presentedWith = async (parts: object) =>
      ({ scheme: "DPoP", proof: await holder.prove(parts), method: "POST", url: RESOURCE }) as const;
    const bare = server.verify(holder.token, { presented: await presentedWith({}) });
    const message = "the DPoP proof needs the nonce of this answer";
    expect(await rejection(bare)).toMatchObject({ code: "use_dpop_nonce", class: "auth", status: 401, message });
    const good = server.verify(holder.token, { presented: await presentedWith({ claims }) });
    await expect(good).resolves.toMatchObject({ subject: "alice" });
  });

  it("gives none with the answer to a bearer token", async ({ server, signer }) => {
    const response = await server.ask(await signer.sign());
    expect([response.status, nonceOf(response)]).toEqual([200, null]);
  });

  it("says first what else is wrong with a proof", async ({ server, holder }) => {
    const response = await server.ask(await holder.headers(await holder.prove({ claims: { htm: "GET" } })));
    expect(await response.json()).toMatchObject({ error: "invalid_dpop_proof" });
  });
});

describe("a server that wants none", () => {
  it("gives none, and does not mind one", async ({ signer, ask }) => {
    const plain = signer.server();
    expect(await plain.dpopNonce()).toBeUndefined();
    expect(nonceOf(await plain.ask())).toBeNull();
    expect((await ask("the other key's", plain)).status).toBe(200);
  });
});
