import { describe, expect } from "vitest";
import { SECRET_MASK } from "../../src/redact.js";
import { it as base, CHALLENGED, type HeadersLike, INTROSPECTION, outcome, REFUSED } from "./support.js";

const it = base.extend<{ good: string }>({
  good: async ({ signer }, use) => use(await signer.sign()),
});

describe("requests without a token (V1)", () => {
  it.for<[string, HeadersLike]>([
    ["no header", {}],
    ["an empty header", { authorization: "" }],
    ["a blank one", { authorization: "  " }],
    ["the scheme alone", { authorization: "bearer" }],
    ["the scheme and blanks", { authorization: "Bearer   " }],
    ["another scheme", { authorization: "Basic YTpi" }],
    ["the scheme of bound tokens alone", { authorization: "DPoP" }],
    ["a scheme that only begins like it", { authorization: "BearerX abc" }],
    ["a scheme that only ends like it", { authorization: "XBearer abc" }],
  ])("get a challenge without an error: %s", async ([_what, headers], { server }) => {
    const response = await server.ask(headers);
    expect(outcome(response)).toEqual([401, CHALLENGED]);
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(await response.json()).toEqual({ error: "unauthorized" });
  });

  it("have none in an empty header", async ({ server, good }) => {
    for (const [authorization, detail] of [
      ["", "no Authorization header"],
      ["Bearer", "Bearer without a token"],
      [`Basic ${good}`, "another scheme than Bearer and DPoP"],
    ] as const) {
      server.log.length = 0;
      expect(outcome(await server.ask({ authorization }))).toEqual([401, CHALLENGED]);
      expect(server.log).toMatchObject([{ reason: "missing", detail }]);
    }
  });

  it("get the scopes that every request needs", async ({ signer }) => {
    const response = await signer.server({ requiredScopes: ["mcp", "files"] }).ask();
    const requested = CHALLENGED.replaceAll(/Bearer |DPoP /g, '$&scope="mcp files", ');
    expect(outcome(response)).toEqual([401, requested]);
  });

  it("have none in the query or the body", async ({ server, signer, good }) => {
    const handler = server.protect(() => new Response("in"));
    const body = new URLSearchParams({ access_token: good });
    for (const request of [
      new Request(`https://mcp.example/mcp?access_token=${good}`),
      new Request("https://mcp.example/mcp", { method: "POST", body }),
    ]) {
      expect(outcome(await handler(request))).toEqual([401, CHALLENGED]);
    }
    expect(signer.issuer.requests).toEqual([]);
  });
});

describe("requests whose credentials are not one token (V1)", () => {
  it.for<[string, (token: string) => [string, string][]]>([
    ["two headers", (token) => [1, 2].map(() => ["authorization", `Bearer ${token}`])],
    ["two tokens in one", (token) => [["authorization", `Bearer ${token} ${token}`]]],
    ["characters that no token has", (token) => [["authorization", `Bearer "${token}"`]]],
    ["two schemes", (token) => [["authorization", `Bearer ${token}, Basic YTpi`]]],
  ])("are refused: %s", async ([_what, headers], { server, good }) => {
    expect(outcome(await server.ask(headers(good)))).toEqual([401, REFUSED]);
    expect(server.reasons()).toEqual(["malformed"]);
  });
});

describe("a token of 16,384 characters (V1)", () => {
  const MAX = 16_384;

  it.for<[string, string, string, string]>([
    ["is read", `Bearer ${"a".repeat(MAX)}`, "not_a_jwt", "the token is no JWT"],
    ["is read after blanks", `Bearer ${" ".repeat(57)}${"a".repeat(MAX)}`, "not_a_jwt", "the token is no JWT"],
    [
      "is the longest",
      `Bearer ${"a".repeat(MAX + 1)}`,
      "too_large",
      "16385 characters, and at most 16384 are looked at",
    ],
    [
      "is not looked for in a longer header",
      `Bearer ${" ".repeat(58)}${"a".repeat(MAX)}`,
      "too_large",
      "16449 characters, and at most 16384 are looked at",
    ],
  ])("%s", async ([_what, authorization, reason, detail], { server }) => {
    expect(outcome(await server.ask({ authorization }))).toEqual([401, REFUSED]);
    expect(server.log).toEqual([{ type: "refused", reason, detail }]);
  });
});

describe("verify without a token (V1)", () => {
  it.for([undefined, null, "", "  ", 5, {}, ["token"]])(
    "refuses %j as none, without a request",
    async (given, { server, signer }) => {
      const asking = signer.server({ introspection: INTROSPECTION, tokens: "introspection" });
      for (const one of [server, asking]) {
        const presented = { scheme: "DPoP", method: "POST", url: "/mcp" } as const;
        for (const options of [{}, { presented }]) {
          const error: unknown = await one.verify(given as string, options).catch((thrown: unknown) => thrown);
          const message = "there is no access token to verify";
          expect(error).toMatchObject({ code: "not_authenticated", class: "auth", status: 401, message });
        }
        const event = { type: "refused", reason: "missing", detail: "no token" };
        expect(one.log).toEqual([event, event]);
      }
      expect(signer.issuer.requests).toEqual([]);
    },
  );
});

it("the scheme is read in any case", async ({ server, good }) => {
  for (const scheme of ["Bearer", "bearer", "BEARER"]) {
    expect((await server.ask({ authorization: `${scheme} ${good}` })).status).toBe(200);
  }
});

it("a good token is passed to the handler, without the token", async ({ server, signer, good }) => {
  const shown = (await (await server.ask(good)).json()) as Record<string, unknown>;
  expect(shown).toMatchObject({
    subject: "alice",
    clientId: "agent",
    scopes: ["mcp"],
    issuer: signer.issuer.issuer,
    audience: ["https://mcp.example/mcp"],
    token: SECRET_MASK,
    claims: { jti: "id-1" },
  });
  expect(shown["expiresAt"]).toBe(new Date(signer.clock.epoch() + 300_000).toISOString());
});
