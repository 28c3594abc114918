import { inspect } from "node:util";
import { describe, expect } from "vitest";
import { Secret } from "../../src/redact.js";
import type { Seen } from "../helpers/peer.js";
import { rejection } from "../helpers/service.js";
import { createService } from "./introspection-service.js";
import { it as base, countOf, INTROSPECTION, introspecting, outcome, pass, REFUSED, startSigner } from "./support.js";

const it = base
  .extend({ options: { introspection: INTROSPECTION } })
  .extend("service", { auto: true }, ({ signer }) => createService(signer, { good: signer.claims() }))
  .extend("requested", ({ signer }) => {
    return () => countOf(signer, "/introspect");
  });

describe("asking the issuer", () => {
  it("takes a token that it calls active", async ({ server, signer }) => {
    expect(await server.verify("good")).toMatchObject({ subject: "alice", clientId: "agent", scopes: ["mcp"] });
    const [request] = signer.issuer.to("/pool/introspect") as [Seen];
    expect(request.headers["authorization"]).toBe(`Basic ${btoa("resource+server:pa%3Ass+word")}`);
    expect(request.headers["content-type"]).toBe("application/x-www-form-urlencoded");
    expect(Object.fromEntries(new URLSearchParams(request.body))).toEqual({
      token: "good",
      token_type_hint: "access_token",
    });
  });

  it("can be authenticated in other ways", async ({ signer }) => {
    const introspection = {
      async authenticate({ headers, form }: { headers: Headers; form: URLSearchParams }) {
        headers.set("authorization", "Bearer of-the-server");
        form.set("client_id", "rs");
      },
    };
    await signer.server({ introspection }).verify("good");
    await signer.server({ introspection: { clientId: "rs", clientSecret: new Secret("hidden") } }).verify("good");
    const [other, basic] = signer.issuer.to("/pool/introspect");
    expect(other?.headers["authorization"]).toBe("Bearer of-the-server");
    expect(new URLSearchParams(other?.body).get("client_id")).toBe("rs");
    expect(basic?.headers["authorization"]).toBe(`Basic ${btoa("rs:hidden")}`);
  });

  it("is for other tokens than JWTs where both are taken: those are checked here", async ({
    server,
    signer,
    requested,
  }) => {
    expect((await server.ask(await signer.sign())).status).toBe(200);
    expect((await server.ask(await signer.sign({ aud: "other" }))).status).toBe(401);
    expect(requested()).toBe(0);
  });

  it.for(["good.token.parts", "e30.e30.x", "good..", "good"])(
    "is for %s, which is no JWT",
    async (token, { signer }) => {
      createService(signer, { [token]: signer.claims() });
      expect((await signer.server({ introspection: INTROSPECTION, tokens: "both" }).ask(token)).status).toBe(200);
    },
  );

  it("is not for an encrypted token where both are taken", async ({ server, requested }) => {
    const head = Buffer.from(JSON.stringify({ alg: "ECDH-ES" })).toString("base64url");
    expect(outcome(await server.ask(`${head}.a.b.c.d`))).toEqual([401, REFUSED]);
    expect([server.reasons(), requested()]).toEqual([["encrypted"], 0]);
  });

  it("is for JWTs too where the options say so, and then they may be of any kind", async ({ signer, requested }) => {
    const token = await signer.sign({}, { typ: "JWT" });
    createService(signer, { [token]: signer.claims() });
    const always = signer.server({ introspection: INTROSPECTION, tokens: "introspection" });
    expect((await always.ask(token)).status).toBe(200);
    expect([requested(), countOf(signer, "/jwks")]).toEqual([1, 0]);
  });

  it("is not done without credentials for it", async ({ signer, requested }) => {
    const jwtOnly = signer.server();
    expect(outcome(await jwtOnly.ask("good"))).toEqual([401, REFUSED]);
    expect(requested()).toBe(0);
  });
});

describe("what an issuer says (V7, V8)", () => {
  it.for<[string, Record<string, unknown>, string]>([
    ["active is missing", { active: undefined }, "inactive"],
    ["active is a text", { active: "true" }, "inactive"],
    ["active is 1", { active: 1 }, "inactive"],
    ["active is null", { active: null }, "inactive"],
    ["active is a list", { active: [true] }, "inactive"],
    ["active is false", { active: false }, "inactive"],
    ["aud is missing", { aud: undefined }, "audience"],
    ["aud is another", { aud: "https://mcp.example/" }, "audience"],
    ["iss is another", { iss: "https://elsewhere.example" }, "issuer"],
    ["exp is missing", { exp: undefined }, "claims"],
    ["exp is over", { exp: 1 }, "expired"],
    ["exp is a text", { exp: "9999999999" }, "claims"],
    ["nbf is to come", { nbf: 9_999_999_999 }, "not_yet"],
    ["cnf binds it to a key", { cnf: { jkt: "AAAA" } }, "bound"],
  ])("refuses a token of which %s", async ([_what, over, reason], { signer, server }) => {
    createService(signer, { odd: signer.claims(over) });
    expect(outcome(await server.ask("odd"))).toEqual([401, REFUSED]);
    expect(server.reasons()).toEqual([reason]);
    expect(await rejection(server.verify("odd"))).toMatchObject({ code: "invalid_token" });
  });

  it.for<[Record<string, unknown>]>([
    [{ token_type: "refresh_token" }],
    [{ token_type: "Refresh_Token" }],
    [{ token_type: "urn:ietf:params:oauth:token-type:refresh_token" }],
    [{ token_type: "id_token" }],
    [{ token_type: "N_A" }],
    [{ token_type: "mac" }],
    [{ token_type: "" }],
    [{ token_type: ["Bearer"] }],
    [{ token_type: "Bearer", token_use: "refresh_token" }],
    [{ token_use: "id" }],
  ])("refuses what is active and no access token: %j", async ([over], { signer, server, requested }) => {
    createService(signer, { odd: signer.claims(over) });
    expect(outcome(await server.ask("odd"))).toEqual([401, REFUSED]);
    expect(outcome(await server.ask("odd"))).toEqual([401, REFUSED]);
    expect([server.reasons(), requested()]).toEqual([["typ", "typ"], 1]);
  });

  it.for<[Record<string, unknown>]>([
    [{ token_type: "Bearer" }],
    [{ token_type: "bearer", token_use: "access_token" }],
    [{ token_type: "access_token" }],
    [{ token_type: "urn:ietf:params:oauth:token-type:access_token" }],
    [{ token_type: null, token_use: "access" }],
  ])("takes an access token however it is called: %j", async ([over], { signer, server }) => {
    createService(signer, { plain: signer.claims(over) });
    expect((await server.ask("plain")).status).toBe(200);
  });

  it("needs no iss: no other server was requested", async ({ signer, server }) => {
    createService(signer, { plain: signer.claims({ iss: undefined }) });
    expect((await server.verify("plain")).issuer).toBe(signer.issuer.issuer);
  });

  it("takes claims that are null for those that are missing", async ({ signer, server }) => {
    const unknown = { iss: null, sub: null, client_id: null, scope: null, nbf: null, iat: null, cnf: null };
    createService(signer, { plain: signer.claims(unknown), odd: signer.claims({ exp: null }) });
    const { subject, clientId, scopes, issuer, claims } = await server.verify("plain");
    expect([subject, clientId, scopes, issuer]).toEqual([undefined, undefined, [], signer.issuer.issuer]);
    expect(Object.values(claims)).not.toContain(null);
    expect(await rejection(server.verify("odd"))).toMatchObject({ code: "invalid_token" });
    expect(server.reasons()).toEqual(["claims"]);
  });

  it("takes a token without an audience where the issuer has this server alone, and none of another", async ({
    signer,
  }) => {
    const server = signer.server({ introspection: { ...INTROSPECTION, allowMissingAudience: true } });
    const plain = { plain: signer.claims({ aud: undefined }), odd: signer.claims({ aud: "https://far.example" }) };
    createService(signer, plain);
    expect((await server.verify("plain")).audience).toEqual([]);
    expect((await server.ask("odd")).status).toBe(401);
    expect((await server.ask(await signer.sign({ aud: undefined }))).status).toBe(401);
  });

  it("needs the scopes", async ({ server }) => {
    expect((await server.ask("good", { scopes: ["admin"] })).status).toBe(403);
  });

  it.for<[string, Parameters<typeof createService>[2]]>([
    ["a page", { headers: { "content-type": "text/html" }, text: "<html>active: true</html>" }],
    ["nothing", { text: "" }],
    ["an empty JSON body", { headers: { "content-type": "application/json" }, text: "" }],
    ["broken JSON", { headers: { "content-type": "application/json" }, text: '{"active":true' }],
    ["true", { json: true }],
    ["a list", { json: [{ active: true }] }],
    [
      "members that come twice",
      { headers: { "content-type": "application/json" }, text: '{"active":false,"active":true}' },
    ],
    ["a JWT", { headers: { "content-type": "application/token-introspection+jwt" }, text: "eyJ.eyJ.AAAA" }],
    ["half a megabyte", { json: { active: true, filler: "x".repeat(500_000) } }],
    ["a redirect", { status: 302, headers: { location: "/elsewhere" }, text: "" }],
    ["401: it does not know the resource server", { status: 401, json: { error: "invalid_client" } }],
    ["400", { status: 400, json: { active: true } }],
  ])(
    "takes no token on the strength of %s, and does not call it bad either",
    async ([_what, reply], { signer, server }) => {
      createService(signer, { good: signer.claims() }, reply);
      const response = await server.ask("good");
      expect([response.status, response.headers.get("retry-after")]).toEqual([503, "5"]);
      expect(server.log).toMatchObject([{ type: "unavailable", issuer: signer.issuer.issuer }]);
    },
  );
});

describe("what is remembered", () => {
  it("is requested once for all simultaneous requests, and again after half a minute", async ({
    server,
    requested,
    signer,
  }) => {
    await Promise.all(Array.from({ length: 20 }, () => server.verify("good")));
    expect(requested()).toBe(1);
    await pass(signer, 29);
    await server.verify("good");
    expect(requested()).toBe(1);
    await pass(signer, 1);
    await server.verify("good");
    expect(requested()).toBe(2);
  });

  it("is no longer good than the token", async ({ signer, requested }) => {
    const now = Math.floor(signer.clock.epoch() / 1000);
    createService(signer, { short: signer.claims({ exp: now + 5 }) });
    const exact = signer.server({ introspection: INTROSPECTION, clockSkewSeconds: 0 });
    expect((await exact.ask("short")).status).toBe(200);
    await pass(signer, 5);
    expect((await exact.ask("short")).status).toBe(401);
    expect([exact.reasons(), requested()]).toEqual([["expired"], 1]);
  });

  it("is a refusal for ten seconds", async ({ signer, server, requested }) => {
    for (const seconds of [0, 9]) {
      await pass(signer, seconds);
      expect((await server.ask("unknown")).status).toBe(401);
    }
    expect([server.reasons(), requested()]).toEqual([["inactive", "inactive"], 1]);
    createService(signer, { unknown: signer.claims() });
    await pass(signer, 1);
    expect((await server.ask("unknown")).status).toBe(200);
  });

  it("is nothing where the options say so", async ({ signer }) => {
    const server = signer.server({ introspection: { ...INTROSPECTION, cacheTtlSeconds: 0 } });
    await server.verify("good");
    createService(signer, {});
    expect((await server.ask("good")).status).toBe(401);
    createService(signer, { good: signer.claims() });
    expect((await server.ask("good")).status).toBe(200);
  });

  it("is not what was known of another token", async ({ signer, server }) => {
    createService(signer, { good: signer.claims(), other: signer.claims({ sub: "bob" }) });
    expect((await server.verify("good")).subject).toBe("alice");
    expect((await server.verify("other")).subject).toBe("bob");
  });

  it("shows no token, also where the issuer repeats it", async ({ signer, server }) => {
    const token = "canary-of-this-test";
    createService(signer, { [token]: signer.claims({ token, deep: [{ seen: `it is ${token}` }] }) });
    const verified = await server.verify(token);
    expect(verified.token.reveal()).toBe(token);
    expect(verified.claims).toMatchObject({ token: "********", deep: [{ seen: "it is ********" }] });
    const options = { depth: 20, showHidden: true } as const;
    const shown = [inspect(verified, options), JSON.stringify(verified), inspect(server, options)];
    createService(signer, { [token]: { active: token } });
    await pass(signer, 30);
    await server.ask(token);
    expect(server.reasons()).toEqual(["inactive"]);
    shown.push(JSON.stringify(server.log));
    expect(shown.join()).not.toContain(token);
    expect(shown.join()).not.toContain("pa:ss word");
  });
});

describe("an endpoint that is down or slow", () => {
  it.for([503, 429])("is left alone for five seconds after %d", async (status, { signer, server, requested }) => {
    createService(signer, {}, { status, text: "" });
    for (const token of ["one", "two", "three"]) expect((await server.ask(token)).status).toBe(503);
    expect(requested()).toBe(2);
    createService(signer, { good: signer.claims() });
    await pass(signer, 5);
    expect((await server.ask("good")).status).toBe(200);
  });

  it("is not down because of one token", async ({ signer, server }) => {
    introspecting(signer, ({ body }) =>
      body.includes("odd") ? { status: 500, text: "" } : { json: { active: true, ...signer.claims() } },
    );
    expect((await server.ask("odd")).status).toBe(503);
    expect((await server.ask("good")).status).toBe(200);
  });

  it("gets a hundred requests at once at most", async ({ signer, server, requested }) => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    introspecting(signer, () => held.then(() => ({ json: { active: true, ...signer.claims() } })));
    const answers = Array.from({ length: 101 }, (_, index) => server.ask(`token-${index}`));
    expect((await Promise.any(answers)).status).toBe(503);
    release();
    const statuses = (await Promise.all(answers)).map(({ status }) => status);
    expect([statuses.filter((status) => status === 200).length, requested()]).toEqual([100, 100]);
  });
});

describe("several issuers", () => {
  it("leave no doubt which of them may see the tokens", async ({ signer }) => {
    const other = await startSigner("other", "/other");
    const authorizationServers = [other.issuer.issuer, signer.issuer.issuer];
    const introspection = { ...INTROSPECTION, issuer: signer.issuer.issuer };
    await signer.server({ authorizationServers, introspection }).verify("good");
    expect(other.issuer.requests).toEqual([]);
    expect(() => signer.server({ authorizationServers, introspection: INTROSPECTION })).toThrow(
      /introspection\.issuer/,
    );
  });
});
