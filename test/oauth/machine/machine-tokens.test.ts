import { describe, expect, it } from "vitest";
import { idJagAssertion, jwtBearerTokens } from "../../../src/oauth/machine/machine-request.js";
import { quote, Secret } from "../../../src/redact.js";
import { pendingError } from "../../helpers/captured.js";
import { unsignedJwt } from "../../helpers/client-keys.js";
import { startScene } from "../../helpers/issuer.js";
import { rejection } from "../../helpers/service.js";
import { tokenCall } from "../token/token-call.js";

/** A request with an assertion whose issuer takes everything. */
async function workload() {
  const { issuer, clock } = await startScene();
  const call = tokenCall(issuer.issuer, { client: { clientId: "" }, clock });
  const now = clock.epoch() / 1000;
  const good = { iss: "platform", sub: "ci", exp: now + 60, aud: issuer.issuer };
  const send = async (claims: object, audience?: string) =>
    jwtBearerTokens(call, { assertion: await unsignedJwt({ ...good, ...claims }), audience });
  return { issuer, call, now, send, clock };
}

describe("an assertion", () => {
  it.each<[string, (issuer: string, now: number) => object, string | undefined]>([
    ["for the issuer", () => ({}), undefined],
    ["for its token endpoint", (issuer) => ({ aud: `${issuer}/token` }), undefined],
    ["for the issuer in a list", (issuer) => ({ aud: [issuer] }), undefined],
    ["for the audience that is named", () => ({ aud: "sts.example" }), "sts.example"],
    ["that expired within a minute", (_issuer, now) => ({ exp: now - 59 }), undefined],
  ])("is sent: %s", async (_what, claims, audience) => {
    const { issuer, now, send } = await workload();
    const tokens = await send(claims(issuer.issuer, now), audience);
    expect(tokens.accessToken.reveal()).toBe("access-as-1");
    // A machine requests a new token when this one expires.
    expect([tokens.refreshToken, tokens.idToken]).toEqual([undefined, undefined]);
    expect(Object.fromEntries(issuer.form("/pool/token"))).toEqual({
      grant_type: "urn:ietf:params:oauth:grant-type:jwt-bearer",
      assertion: expect.any(String),
    });
  });

  const NO_ISS = "does not name its issuer (iss), and is not sent (RFC 7523 section 3)";
  const NAMES = "use an assertion that names the platform that signed it";

  it.each<[object, string, string, string, string]>([
    [{ iss: undefined }, "usage", "usage", NO_ISS, NAMES],
    [{ iss: "" }, "usage", "usage", NO_ISS, NAMES],
    [{ iss: 7 }, "usage", "usage", NO_ISS, NAMES],
    [
      { exp: undefined },
      "usage",
      "usage",
      "has no expiry (exp), and is not sent (RFC 7523 section 3)",
      "use an assertion that expires",
    ],
    [
      { exp: 1 },
      "invalid_grant",
      "auth",
      "expired at 1970-01-01T00:00:01.000Z (exp), and is not sent (RFC 7523 section 3)",
      "have the platform issue a current one",
    ],
    [
      { exp: -1e300 },
      "invalid_grant",
      "auth",
      'expired at "-1e+300" (exp), and is not sent (RFC 7523 section 3)',
      "have the platform issue a current one",
    ],
  ])("with %j is not sent", async (claims, code, kind, problem, hint) => {
    const { issuer, send } = await workload();
    expect(await rejection(send(claims))).toMatchObject({
      code,
      class: kind,
      message: `the assertion ${problem}`,
      hint,
      remedy: { action: "configure", option: "assertion" },
    });
    expect(issuer.to("/pool/token")).toEqual([]);
  });

  it("that expired a minute ago is not sent", async () => {
    const { now, send } = await workload();
    expect(await pendingError(send({ exp: now - 60 }))).toMatchObject({ code: "invalid_grant" });
  });

  it.each<[unknown, string | undefined, string]>([
    ["other", undefined, 'is for "other" (aud)'],
    [undefined, undefined, "has no aud"],
    [["a", "b"], undefined, `is for ${quote(["a", "b"])} (aud)`],
    ["other", "sts.example", 'is for "other" (aud)'],
  ])("for %j is not sent where %s is wanted", async (aud, audience, shown) => {
    const { issuer, call, send } = await workload();
    const rule =
      audience === undefined
        ? `its aud must be the issuer "${call.issuer}" or its token endpoint "${call.tokenEndpoint}" alone`
        : `its aud must be "${audience}" alone`;
    expect(await rejection(send({ aud }, audience))).toMatchObject({
      code: "wrong_audience",
      class: "refused",
      message: `the assertion ${shown}, and is not sent: ${rule} (RFC 7523 section 3)`,
      hint: "have it issued for this issuer; if it is for another one, check the MCP server and the option issuer",
      remedy: { action: "configure", option: "issuer" },
    });
    expect(issuer.to("/pool/token")).toEqual([]);
  });

  it.each([
    ["", "is empty"],
    [" ", "is empty"],
    ["opaque", "is no JWT: three parts of base64url, with dots between them"],
    ["a.b", "is no JWT: three parts of base64url, with dots between them"],
    ["a.b.c.d", "is no JWT: three parts of base64url, with dots between them"],
    ["Bearer a.b.c", "is no JWT: three parts of base64url, with dots between them"],
    ["a.b.c!", "is no JWT: three parts of base64url, with dots between them"],
    [".b.c", "is no JWT: three parts of base64url, with dots between them"],
  ])("as %j is refused, and not shown", async (assertion, problem) => {
    const { call } = await workload();
    expect(await rejection(jwtBearerTokens(call, { assertion }))).toMatchObject({
      code: "usage",
      class: "usage",
      message: `the assertion ${problem} (RFC 7519 section 3)`,
      hint: "give it as it was issued, without quotes and without a scheme before it",
    });
    const expected = { iss: undefined, sub: undefined, clientId: "" };
    const request = { idToken: new Secret(assertion), audience: "a", expected };
    expect(await rejection(idJagAssertion(call, request))).toMatchObject({
      message: `the id token ${problem} (RFC 7519 section 3)`,
    });
  });

  it("has blanks around it left out, and asks for the resource and the scopes", async () => {
    const { issuer, call, clock } = await workload();
    const claims = { iss: "p", exp: clock.epoch() / 1000 + 60, aud: issuer.issuer };
    const assertion = await unsignedJwt(claims);
    await jwtBearerTokens(call, { assertion: ` ${assertion}\n`, resource: "https://r.example", scope: "a b" });
    expect(Object.fromEntries(issuer.form("/pool/token"))).toMatchObject({
      assertion,
      resource: "https://r.example",
      scope: "a b",
    });
    await jwtBearerTokens(call, { assertion: new Secret(assertion), scope: "" });
    expect(issuer.form("/pool/token", 1).has("scope")).toBe(false);
  });
});

describe("an assertion of an identity provider", () => {
  const ID_JAG = "urn:ietf:params:oauth:token-type:id-jag";

  async function provider(claims: object, header: object = { typ: "oauth-id-jag+jwt" }) {
    const scene = await workload();
    const access_token = await unsignedJwt({ ...claims }, { ...header });
    scene.issuer.routes["/pool/token"] = {
      json: { access_token, issued_token_type: ID_JAG, token_type: "N_A", expires_in: 60 },
    };
    const expected = { iss: "https://idp.example", sub: "ann", clientId: "client-1" };
    const subject = { idToken: await unsignedJwt({ sub: "ann" }), audience: "https://as.example", expected };
    return { ...scene, access_token, subject };
  }

  const REQUESTED = { aud: "https://as.example", iss: "https://idp.example", sub: "ann", client_id: "client-1" };

  it.each<[string, unknown, string]>([
    ["iss", "https://other.example", "the identity provider that it was requested from"],
    ["sub", "bob", "the user of the id token"],
    ["sub", ["ann"], "the user of the id token"],
    ["sub", undefined, "the user of the id token"],
    ["client_id", "client-2", "the client that it was requested for"],
    ["resource", "https://other.example/mcp", "alone, the resource that it was requested for"],
    [
      "resource",
      ["https://r.example/mcp", "https://other.example/mcp"],
      "alone, the resource that it was requested for",
    ],
    ["resource", undefined, "alone, the resource that it was requested for"],
  ])("is refused with another %s than the requested one: %j", async (claim, value, rule) => {
    const resource = "https://r.example/mcp";
    const { call, subject } = await provider({ ...REQUESTED, resource, [claim]: value });
    expect(await rejection(idJagAssertion(call, { ...subject, resource }))).toMatchObject({
      code: "bad_token_answer",
      message: expect.stringMatching(new RegExp(`^${claim} of the ID-JAG.*${rule}$`)),
    });
    const right = await provider({ ...REQUESTED, resource: [resource] });
    await idJagAssertion(right.call, { ...right.subject, resource });
    const { expected: _, ...unknown } = right.subject;
    await idJagAssertion(right.call, { ...unknown, expected: { iss: undefined, sub: undefined, clientId: "" } });
  });

  it.each([["https://as.example"], [["https://as.example"]]])("is taken for %j", async (aud) => {
    const { issuer, call, subject, access_token } = await provider({ ...REQUESTED, aud });
    expect((await idJagAssertion(call, subject)).value).toBe(access_token);
    expect(Object.fromEntries(issuer.form("/pool/token"))).toMatchObject({
      subject_token: subject.idToken,
      subject_token_type: "urn:ietf:params:oauth:token-type:id_token",
      requested_token_type: ID_JAG,
      audience: "https://as.example",
    });
    const { idToken: _, ...byRefresh } = { ...subject, refreshToken: "refresh-1" };
    await idJagAssertion(call, byRefresh);
    expect(Object.fromEntries(issuer.form("/pool/token", 1))).toMatchObject({
      subject_token: "refresh-1",
      subject_token_type: "urn:ietf:params:oauth:token-type:refresh_token",
    });
  });

  it("is refused for another issuer, for several, and of another type", async () => {
    for (const aud of [["https://as.example", "https://other.example"], undefined]) {
      const { call, subject } = await provider({ aud });
      const [shown, missing] = aud === undefined ? ["", "is missing, and "] : [` ${quote(aud)}`, ""];
      expect(await rejection(idJagAssertion(call, subject))).toMatchObject({
        code: "bad_token_answer",
        message: `aud of the ID-JAG${shown} (from "${call.tokenEndpoint}") ${missing}must be "https://as.example" alone, the issuer that it was requested for`,
      });
    }
    const { call, subject } = await provider({ aud: "https://as.example" }, { typ: "JWT" });
    expect(await rejection(idJagAssertion(call, subject))).toMatchObject({
      message: `typ of the ID-JAG "JWT" (from "${call.tokenEndpoint}") must be "oauth-id-jag+jwt"`,
    });
  });
});
