import { expect, onTestFinished, vi } from "vitest";
import { hashOf } from "../helpers/proofs.js";
import { rejection } from "../helpers/service.js";
import { makeHolder } from "./proofs.js";
import { it as base, makeKey, pass } from "./support.js";
import { countVerifications } from "./verifications.js";

/** Tests that count how often a signature is verified. */
const it = base.extend("verifications", () => countVerifications().count);

it("the signature of a token is checked once a minute", async ({ signer, server, verifications }) => {
  const token = await signer.sign();
  const first = await server.verify(token);
  await pass(signer, 59);
  expect(await server.verify(token)).toEqual(first);
  expect(verifications()).toBe(1);
  await pass(signer, 1);
  await server.verify(token);
  expect(verifications()).toBe(2);
  await server.verify(await signer.sign({ jti: "id-2" }));
  expect(verifications()).toBe(3);
});

it("tokenCacheSeconds shortens it, down to a check at each request", async ({ signer, verifications }) => {
  const [off, short] = [0, 5].map((tokenCacheSeconds) => signer.server({ tokenCacheSeconds }));
  const token = await signer.sign();
  for (let time = 0; time < 3; time++) await off?.verify(token);
  expect(verifications()).toBe(3);
  await short?.verify(token);
  await pass(signer, 5);
  await short?.verify(token);
  expect(verifications()).toBe(5);
  expect(() => signer.server({ tokenCacheSeconds: 61 })).toThrow("tokenCacheSeconds must be seconds from 0 to 60");
});

it("a token expires at its time", async ({ signer }) => {
  const server = signer.server({ clockSkewSeconds: 0 });
  const token = await signer.sign({ exp: Number(signer.claims()["iat"]) + 10 });
  await server.verify(token);
  await pass(signer, 10);
  expect(await rejection(server.verify(token))).toMatchObject({ code: "invalid_token" });
  expect(server.reasons()).toEqual(["expired"]);
});

it("a token of a removed key ends with the cached keys", async ({ signer }) => {
  const server = signer.server({ keyTtlSeconds: 20 });
  const token = await signer.sign();
  await server.verify(token);
  signer.keys.splice(0, 1, (await makeKey("key-2")).jwk);
  await pass(signer, 19);
  await server.verify(token);
  await pass(signer, 1);
  expect(await rejection(server.verify(token))).toMatchObject({ code: "invalid_token" });
  expect(server.reasons()).toEqual(["key"]);
});

it("keys that another token caused to be read again count at once", async ({ signer }) => {
  const server = signer.server();
  const [late, next] = [await signer.sign(), await makeKey("key-2")];
  await server.verify(await signer.sign({ jti: "id-2" }));
  await pass(signer, 60);
  await server.verify(late);
  signer.keys.splice(0, 1, next.jwk);
  await server.verify(await signer.sign({}, { kid: "key-2" }, next));
  expect(await rejection(server.verify(late))).toMatchObject({ code: "unknown_key", status: 503 });
  await pass(signer, 60);
  expect(await rejection(server.verify(late))).toMatchObject({ code: "invalid_token" });
});

it("the last two thousand tokens are remembered", async ({ signer, server, verifications }) => {
  const tokens = await Promise.all(Array.from({ length: 2001 }, (_, at) => signer.sign({ jti: `id-${at}` })));
  const [first = "", second = "", ...others] = tokens;
  for (const token of [first, second, first, ...others]) await server.verify(token);
  expect(verifications()).toBe(2001);
  await server.verify(first);
  expect(verifications()).toBe(2001);
}, 120_000);

it("a token that is known to one server is not known to another", async ({ signer, server }) => {
  const other = signer.server({ audience: "https://other.example" });
  const token = await signer.sign();
  await server.verify(token);
  expect(await rejection(other.verify(token))).toMatchObject({ code: "invalid_token" });
  expect(other.reasons()).toEqual(["audience"]);
});

it("the scopes of a known token are checked at each request", async ({ signer, server }) => {
  const token = await signer.sign();
  expect((await server.ask(token)).status).toBe(200);
  expect((await server.ask(token, { scopes: ["other"] })).status).toBe(403);
  expect((await server.ask(token)).status).toBe(200);
});

it("a known token needs a proof of its own key at each request", async ({ signer, server }) => {
  const [holder, thief] = [await makeHolder(signer), await makeHolder(signer)];
  const authorization = `DPoP ${holder.token}`;
  const ath = hashOf(holder.token);
  expect((await server.ask(await holder.headers())).status).toBe(200);
  expect((await server.ask(await holder.headers())).status).toBe(200);
  const stolen = [
    { authorization },
    { authorization: `Bearer ${holder.token}` },
    { authorization, dpop: await thief.prove({ claims: { ath } }) },
    // The key of the token in the header, and the signature of another.
    { authorization, dpop: await holder.prove({ by: thief.key.privateKey }) },
  ];
  for (const headers of stolen) expect((await server.ask(headers)).status).toBe(401);
  expect(server.reasons()).toEqual(["proof", "bound", "bound", "proof"]);
});

it("no request changes the claims of the next one", async ({ signer, server }) => {
  const { claims } = await server.verify(
    await signer.sign({ aud: ["https://mcp.example/mcp"], extra: { list: [1], none: null } }),
  );
  expect(() => (claims.aud as string[]).push("https://other.example")).toThrow(TypeError);
  expect(() => (claims["extra"] as { list: number[] }).list.push(2)).toThrow(TypeError);
});

it("a digest is the same without the crypto module of Node", async () => {
  const { digestToken: digestOf } = await import("../../src/resource-server/dpop.js");
  const expected = await digestOf("tökén");
  const builtin = vi.spyOn(process, "getBuiltinModule").mockReturnValue(undefined as never);
  onTestFinished(() => builtin.mockRestore());
  expect(await digestOf("tökén")).toBe(expected);
  expect(builtin).toHaveBeenCalled();
  onTestFinished(() => void vi.unstubAllGlobals());
  for (const other of [{}, undefined]) {
    vi.stubGlobal("process", other);
    expect(await digestOf("tökén")).toBe(expected);
  }
});
