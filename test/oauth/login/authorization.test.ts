import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { Nonces } from "../../../src/oauth/http/http.js";
import { buildAuthorization, checkCallback, type PreparedLogin } from "../../../src/oauth/login/authorization.js";
import { SECRET_MASK, Secret } from "../../../src/redact.js";
import { madeClient } from "../../helpers/grant.js";
import { serverMetadata, startScene } from "../../helpers/issuer.js";

const ISSUER = "https://as.example/pool";
const LOGIN = {
  server: "https://mcp.example/mcp",
  account: undefined,
  issuer: serverMetadata(),
  client: madeClient(),
  scope: [],
  addedScope: [],
  resource: "https://mcp.example/mcp",
  overrides: [],
  proofKey: undefined,
};

const build = ({ loginHint, ...over }: Partial<PreparedLogin> & { loginHint?: string } = {}) =>
  buildAuthorization({ loginHint, nonces: new Nonces() }, { ...LOGIN, ...over }, "http://127.0.0.1:49152/callback");

const prepared = ({ promisesIss = false, state = "the-state" }: { promisesIss?: boolean; state?: string } = {}) => ({
  ...LOGIN,
  issuer: serverMetadata({ issuer: ISSUER, promisesIss }),
  pending: { authorizationUrl: "", redirectUri: "", state, verifier: new Secret("the-verifier") },
});

const callback = (members: Record<string, string>, more = "") =>
  new URLSearchParams(`${new URLSearchParams({ state: "the-state", ...members })}${more}`);

describe("the authorization request", () => {
  it("asks for a code with everything that belongs to it", async () => {
    const request = await build({ scope: ["a", "b"], loginHint: "me@example.com" });
    const { searchParams } = new URL(request.authorizationUrl);
    expect(Object.fromEntries(searchParams)).toEqual({
      response_type: "code",
      client_id: "client-1",
      redirect_uri: "http://127.0.0.1:49152/callback",
      code_challenge: expect.any(String),
      code_challenge_method: "S256",
      state: request.state,
      scope: "a b",
      resource: "https://mcp.example/mcp",
      login_hint: "me@example.com",
    });
  });

  it("[22] sends the S256 challenge of a verifier that is new each time (2025-06-18)", async () => {
    const requests = await Promise.all([build(), build(), build()]);
    for (const { verifier: hidden, authorizationUrl } of requests) {
      expect(JSON.stringify(hidden)).toBe(JSON.stringify(SECRET_MASK));
      const verifier = hidden.reveal();
      expect(verifier).toMatch(/^[\w.~-]{43,128}$/);
      const challenge = createHash("sha256").update(verifier).digest("base64url");
      expect(new URL(authorizationUrl).searchParams.get("code_challenge")).toBe(challenge);
      expect(authorizationUrl).not.toContain(verifier);
    }
    expect(new Set(requests.map(({ verifier }) => verifier.reveal())).size).toBe(3);
  });

  it("[26] sends a state that is new each time (2025-06-18)", async () => {
    const requests = await Promise.all([build(), build(), build()]);
    for (const { state } of requests) expect(state.length).toBeGreaterThanOrEqual(32);
    expect(new Set(requests.map(({ state }) => state)).size).toBe(3);
  });

  it("[23] sends no scope at all where none was chosen (2025-11-25)", async () => {
    expect(new URL((await build()).authorizationUrl).searchParams.has("scope")).toBe(false);
  });

  it("asks for consent exactly where offline_access is requested", async () => {
    const prompt = async (scope: string[]) =>
      new URL((await build({ scope })).authorizationUrl).searchParams.get("prompt");
    expect(await prompt(["a"])).toBeNull();
    expect(await prompt(["a", "offline_access"])).toBe("consent");
  });

  it.each([
    ["https://login.microsoftonline.com/tenant/v2.0", null],
    ["https://login.microsoftonline.us/tenant/v2.0", null],
    ["https://login.partner.microsoftonline.cn/tenant/v2.0", null],
    ["https://sts.windows.net/tenant/", null],
    ["https://login.microsoftonline.com.evil.example/tenant/v2.0", "consent"],
    ["https://evil-login.microsoftonline.com/tenant/v2.0", "consent"],
    ["https://login.microsoftonline.com:8443/tenant/v2.0", "consent"],
    ["http://login.microsoftonline.com/tenant/v2.0", "consent"],
    ["https://constructor/", "consent"],
  ])("forces consent at %s: %s", async (issuer, expected) => {
    const scope = ["offline_access"];
    const authorizationEndpoint = new URL("authorize", issuer).href;
    // Also where an earlier login got no refresh token, and where another issuer sends its users there.
    for (const server of [{ issuer }, { authorizationEndpoint }]) {
      for (const needsConsent of [undefined, true]) {
        const { authorizationUrl } = await build({ issuer: serverMetadata(server), scope, needsConsent });
        expect(new URL(authorizationUrl).searchParams.get("prompt")).toBe(expected);
      }
    }
  });

  it("has the user's parameters, which decide over the consent and cannot set one of its own", async () => {
    const scope = ["offline_access"];
    const queryOf = async (authorizationParams: Record<string, string>, endpoint = "https://as.example/authorize") => {
      const issuer = serverMetadata({ authorizationEndpoint: endpoint });
      return new URL((await build({ issuer, scope, authorizationParams })).authorizationUrl).searchParams;
    };
    const query = await queryOf({ audience: "a&scope=b", prompt: "login", response_type: "token" });
    expect(query.get("audience")).toBe("a&scope=b");
    expect(query.getAll("prompt")).toEqual(["login"]);
    expect(query.getAll("response_type")).toEqual(["code"]);
    expect(query.getAll("scope")).toEqual(["offline_access"]);
    const without = await queryOf({ prompt: "", kc: "" }, "https://as.example/authorize?kc=1");
    expect([without.has("prompt"), without.has("kc")]).toEqual([false, false]);
  });

  it("[27] is in one record with the issuer, the state and the verifier for the answer (2026-07-28)", async () => {
    const { agent, mcp } = await startScene();
    const { issuer, pending } = await agent().beginLogin(mcp.url, "http://127.0.0.1/callback");
    expect(new URL(pending.authorizationUrl).searchParams.get("state")).toBe(pending.state);
    expect(new URL(issuer.authorizationEndpoint).origin).toBe(new URL(pending.authorizationUrl).origin);
    expect(pending.verifier.reveal()).toMatch(/^[\w.~-]{43,128}$/);
  });

  it("[42] writes what a server put into the address so that no shell would take it for more (2026-07-28)", async () => {
    const issuer = serverMetadata({ authorizationEndpoint: "https://as.example/a`id`;b|c<d>\"e'^?x=$(id)&y=\u2028" });
    const { authorizationUrl } = await build({ issuer });
    expect(authorizationUrl).not.toMatch(/[\s"<>\u0080-\uffff]/);
    expect(new URL(authorizationUrl).href).toBe(authorizationUrl);
  });
});

describe("the callback's iss", () => {
  const outcome = (promisesIss: boolean, iss: string | undefined) => {
    const parameters = callback({ code: "the-code", ...(iss !== undefined && { iss }) });
    try {
      return checkCallback(prepared({ promisesIss }), parameters).get("code");
    } catch (error) {
      return (error as { code: string }).code;
    }
  };

  it.each<[string, boolean, string | undefined, string]>([
    ["promised and right: continues", true, ISSUER, "the-code"],
    ["promised and wrong: refused", true, "https://evil.example", "iss_mismatch"],
    ["promised and absent: refused", true, undefined, "iss_mismatch"],
    ["not promised and right: continues", false, ISSUER, "the-code"],
    ["not promised and wrong: refused", false, "https://evil.example", "iss_mismatch"],
    ["not promised and absent: continues", false, undefined, "the-code"],
  ])("[28] %s (2026-07-28)", (_what, promised, iss, expected) => {
    expect(outcome(promised, iss)).toBe(expected);
  });

  it("allows a bare code to be pasted only where the issuer promises no iss", async () => {
    const { agent, mcp, issuer, login } = await startScene();
    await agent().login(mcp.url);
    issuer.metadata["authorization_response_iss_parameter_supported"] = true;
    await agent().login(mcp.url);
    expect(login.bareCodes).toEqual([true, false]);
  });
});

describe("the rest of the callback", () => {
  const check =
    (parameters: URLSearchParams, over: Parameters<typeof prepared>[0] = {}) =>
    () =>
      checkCallback(prepared(over), parameters);
  const failing = (code: string, kind: string, message = "") =>
    expect.objectContaining({ code, class: kind, message: expect.stringContaining(message) });

  it.each(["", "another-state", "the-stat", "THE-STATE"])("[26] refuses the state %j (2025-06-18)", (state) => {
    expect(check(callback({ code: "c", state }))).toThrow(failing("state_mismatch", "refused"));
    expect(check(new URLSearchParams("code=c"))).toThrow(failing("state_mismatch", "refused"));
  });

  it.each(["state", "iss", "code", "error"])("refuses %s twice", (name) => {
    const parameters = callback({ code: "c" }, `&${name}=x&${name}=x`);
    expect(check(parameters)).toThrow(failing("bad_callback", "refused", name));
  });

  it.each(["", "&code=", "&error=", "&error=&code=", "&error=&error_description=no"])(
    "refuses an answer with neither code nor error (%j)",
    (more) => {
      expect(check(callback({}, more))).toThrow(failing("bad_callback", "refused", "code"));
    },
  );

  it("takes a code beside an empty error", () => {
    expect(check(callback({ code: "c", error: "" }))().get("code")).toBe("c");
  });

  it.each<[string, Record<string, string>]>([
    ["its text", { error: "access_denied", error_description: "not k/secret code, nor k%2Fsecret%20code" }],
    ["its name", { error: "k/secret code" }],
  ])("shows no code that an issuer repeats in %s", (_where, members) => {
    const code = "k/secret code";
    expect(check(callback({ code, ...members }))).toThrow(
      failing(members["error"] === code ? "http_error" : "access_denied", "auth", "********"),
    );
    expect(check(callback({ code, ...members }))).not.toThrow(code);
  });

  it("takes no code of ours from an issuer", () => {
    expect(check(callback({ error: "timeout" }))).toThrow(failing("http_error", "auth", '"timeout"'));
  });

  it.each(["temporarily_unavailable", "server_error"])("takes %s for something that passes", (error) => {
    expect(check(callback({ error }))).toThrow(failing(error, "unavailable"));
  });

  it.each<[string, Parameters<typeof prepared>[0], Record<string, string>]>([
    ["a wrong iss", {}, { iss: "https://evil.example" }],
    ["no iss where one was promised", { promisesIss: true }, {}],
    ["an iss with a slash", { promisesIss: true }, { iss: `${ISSUER}/` }],
    ["a wrong state", { state: "other" }, {}],
  ])("[30] shows nothing of an error that comes with %s (2026-07-28)", (_what, over, members) => {
    const texts = { error: "canary-error", error_description: "canary-text", error_uri: "https://canary.example" };
    try {
      check(callback({ ...texts, ...members }), over)();
      expect.unreachable();
    } catch (error) {
      expect(JSON.stringify(error) + String(error) + String((error as Error).cause)).not.toContain("canary");
      expect(error).toMatchObject({ class: "refused" });
    }
  });

  it("passes on what the token request needs", () => {
    expect(check(callback({ code: "the-code" }))().get("code")).toBe("the-code");
  });
});
