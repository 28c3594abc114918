import { expect, it, onTestFinished, vi } from "vitest";
import { digestToken, TokenCache } from "../../src/resource-server/dpop.js";
import { createIntrospect } from "../../src/resource-server/verifier.js";
import { FakeClock } from "../helpers/clock.js";
import { INTROSPECTION, startSigner } from "./support.js";

it("a thousand distinct bad tokens leave what is known of good ones as it is (V15)", async () => {
  const signer = await startSigner();
  const requested: string[] = [];
  const fetch: typeof globalThis.fetch = async (input) => {
    const request = input as Request;
    if (request.method === "GET") return Response.json(signer.issuer.metadata);
    const token = new URLSearchParams(await request.text()).get("token") ?? "";
    requested.push(token);
    return Response.json(token === "good" ? { active: true, ...signer.claims() } : { active: false });
  };
  const server = signer.server({ introspection: INTROSPECTION, fetch });
  await server.verify("good");
  const bad = Array.from({ length: 1000 }, (_, at) => `bad-${at}`);
  for (let at = 0; at < 1000; at += 100) {
    const answers = await Promise.all(bad.slice(at, at + 100).map((token) => server.ask(token)));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
  }
  await server.verify("good");
  expect(requested.toSorted()).toEqual(["good", ...bad].toSorted());
}, 120_000);

it("a thousand JWTs with made-up keys, issuers and signatures cause no request (V15)", async () => {
  const signer = await startSigner();
  const server = signer.server();
  const [head, body] = (await signer.sign()).split(".");
  await server.ask(await signer.sign());
  const sent = signer.issuer.requests.length;
  for (let at = 0; at < 1000; at++) {
    const kid = Buffer.from(JSON.stringify({ alg: "ES256", typ: "at+jwt", kid: `k${at}` })).toString("base64url");
    const signature = Buffer.from(`signature ${at}`).toString("base64url");
    await server.ask(at % 2 === 0 ? `${kid}.${body}.${signature}` : `${head}.${body}.${signature}`);
  }
  expect(signer.issuer.requests).toHaveLength(sent);
}, 120_000);

it("what is remembered of bad tokens is a thousand of them at most (V15)", async () => {
  const clock = new FakeClock();
  let requested = 0;
  const introspect = createIntrospect(
    {
      issuer: "https://as.example",
      keys: async () => ({}),
      introspect: async () => {
        requested++;
        return { active: false };
      },
    },
    { cacheTtlSeconds: 30, clock },
  );
  const refuse = (token: string) =>
    expect(introspect(token, token, undefined)).rejects.toMatchObject({
      name: "TokenRefusal",
      reason: "inactive",
    });
  await refuse("first");
  for (let at = 0; at < 999; at++) await refuse(`bad-${at}`);
  await refuse("bad-998");
  expect(requested).toBe(1000);
  // The one that came first makes room for the next.
  await refuse("another");
  await refuse("first");
  expect(requested).toBe(1002);
});

it("a cache forgets an entry at its time, and holds no more than it may", () => {
  const cache = new TokenCache<number>(4);
  for (let at = 0; at < 3; at++) cache.put(`t${at}`, at, 100);
  expect([cache.get("t0", 99), cache.get("t0", 100)]).toEqual([0, undefined]);
  for (let at = 3; at < 8; at++) cache.put(`t${at}`, at, 100);
  expect(["t0", "t1", "t2", "t7"].map((name) => cache.get(name, 99))).toEqual([undefined, undefined, undefined, 7]);
  cache.put("t7", 77, 200);
  expect(cache.get("t7", 150)).toBe(77);
});

it("a token is known by its SHA-256, from the crypto module of Node where there is one", async () => {
  const slow = vi.spyOn(crypto.subtle, "digest");
  onTestFinished(() => slow.mockRestore());
  expect(await digestToken("abc")).toBe("ungWv48Bz-pBQUDeXa4iI7ADYaOWF3qctBD_YfIAFa0");
  expect(slow).not.toHaveBeenCalled();
});
