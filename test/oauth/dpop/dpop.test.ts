import { describe, expect, it } from "vitest";
import { createProver, generateProofKey } from "../../../src/oauth/dpop/dpop.js";
import { Nonces } from "../../../src/oauth/http/http.js";
import { SECRET_MASK, Secret } from "../../../src/redact.js";
import { pendingError } from "../../helpers/captured.js";
import { plainGrant } from "../../helpers/grant.js";
import { type Handler, type Reply, type Scene, startScene } from "../../helpers/issuer.js";
import { hashOf, readProof } from "../../helpers/proofs.js";

const SIGNAL = new AbortController().signal;
const TOKEN = "/pool/token";
const MCP = "/mcp";

/** A scene whose issuer binds tokens to keys, and whose server takes no others. */
async function boundScene(): Promise<Scene> {
  const scene = await startScene();
  const { issuer, mcp } = scene;
  issuer.metadata["dpop_signing_alg_values_supported"] = ["RS256", "ES256"];
  issuer.tokenAnswer = { token_type: "DPoP" };
  mcp.challenge = mcp.challenge?.replace("Bearer", "DPoP");
  mcp.routes[MCP] = ({ headers }) => {
    return headers.authorization?.startsWith("DPoP access-") ? { json: { ok: true } } : mcp.refusal();
  };
  return scene;
}

/** The same with a login; the requests so far are forgotten. */
async function loggedIn(): Promise<Scene & { sent: () => Scene["mcp"]["requests"] }> {
  const scene = await boundScene();
  await scene.agent().login(scene.mcp.url);
  const before = scene.mcp.to(MCP).length;
  return { ...scene, sent: () => scene.mcp.to(MCP).slice(before) };
}

const wantsNonce = (nonce: string): Reply => ({
  status: 400,
  headers: { "dpop-nonce": nonce },
  json: { error: "use_dpop_nonce" },
});

/** A route that answers only requests whose proof has the nonce of the moment. */
function guarded(route: Handler, nonceOf: (nth: number) => string, refusal: (nonce: string) => Reply): Handler {
  return async (request, nth) => {
    if (request.headers["dpop"] === undefined) return route(request, nth);
    const { claims } = await readProof(request);
    return claims["nonce"] === nonceOf(nth) ? route(request, nth) : refusal(nonceOf(nth));
  };
}

describe("a login for tokens that are bound to a key", () => {
  it("names the key in the authorization request, and proves it to the token endpoint", async () => {
    const { agent, mcp, issuer, login, store } = await boundScene();
    const token = await agent().login(mcp.url);
    expect([token.value, token.tokenType]).toEqual(["access-as-1", "DPoP"]);
    const [request] = issuer.to(TOKEN);
    const { claims, jwk, thumbprint } = await readProof(request ?? { headers: {} });
    expect(claims).toEqual({
      htm: "POST",
      htu: `${issuer.issuer}/token`,
      jti: expect.stringMatching(/^.{16,}$/),
      iat: expect.closeTo(Date.now() / 1000, -2),
    });
    expect(jwk).not.toHaveProperty("d");
    expect(login.requested().get("dpop_jkt")).toBe(thumbprint);
    expect((await agent().status(mcp.url))[0]).toMatchObject({ token_type: "DPoP" });
    expect(await store.list()).toMatchObject([{ proofKey: expect.any(Secret) }]);
  });

  it("uses another key every time, so that servers cannot link the logins", async () => {
    const { agent, mcp, issuer } = await boundScene();
    await agent().login(mcp.url);
    await agent().login(mcp.url);
    const keys = await Promise.all(issuer.to(TOKEN).map(async (request) => (await readProof(request)).thumbprint));
    expect(new Set(keys).size).toBe(2);
  });

  it("is made for a server whose metadata says that it takes no others", async () => {
    const { agent, mcp } = await boundScene();
    mcp.challenge = mcp.challenge?.replace("DPoP", "Bearer");
    mcp.metadata["dpop_bound_access_tokens_required"] = true;
    expect((await agent().login(mcp.url)).tokenType).toBe("DPoP");
  });

  const plain: [string, (scene: Scene) => unknown, "off" | "auto"][] = [
    ["the server takes bearer tokens as well", ({ mcp }) => (mcp.challenge += `, Bearer realm="a"`), "auto"],
    ["the issuer names no algorithm of ours", ({ issuer }) => alterAlgorithms(issuer, ["EdDSA"]), "auto"],
    ["the issuer names no algorithm at all", ({ issuer }) => alterAlgorithms(issuer, undefined), "auto"],
    ["it is switched off", () => undefined, "off"],
  ];
  it.each(plain)("is not made where %s", async (_title, change, dpop) => {
    const scene = await boundScene();
    change(scene);
    scene.issuer.tokenAnswer = {};
    expect((await scene.agent({ dpop }).login(scene.mcp.url)).tokenType).toBe("Bearer");
    expect(scene.issuer.to(TOKEN)[0]?.headers).not.toHaveProperty("dpop");
    expect(scene.login.requested().has("dpop_jkt")).toBe(false);
  });

  it("on another device proves the key with every poll, and not where the code is requested", async () => {
    const { agent, mcp, issuer } = await boundScene();
    const route = issuer.routes[TOKEN] as Handler;
    const pending: Reply = { status: 400, json: { error: "authorization_pending" } };
    const polled = guarded(
      (request, nth) => (nth < 4 ? pending : route(request, nth)),
      () => "n-1",
      wantsNonce,
    );
    issuer.routes[TOKEN] = polled;
    expect((await agent({ flow: "device" }).login(mcp.url)).tokenType).toBe("DPoP");
    expect(issuer.to("/pool/device")[0]?.headers).not.toHaveProperty("dpop");
    expect(issuer.to(TOKEN)).toHaveLength(4);
  });

  it("for a machine is bound too, and requested again with the same key", async () => {
    const { agent, mcp, issuer, clock } = await boundScene();
    const machine = agent({
      grant: { type: "client_credentials" },
      client: { clientId: "robot", clientSecret: "robot-secret" },
    });
    expect((await machine.token(mcp.url)).tokenType).toBe("DPoP");
    await clock.sleep(3_600_000, SIGNAL);
    expect((await machine.token(mcp.url)).value).toBe("access-as-2");
    expect((await machine.fetch(mcp.url)).status).toBe(200);
    const keys = await Promise.all(issuer.to(TOKEN).map(async (request) => (await readProof(request)).thumbprint));
    expect(new Set(keys).size).toBe(1);
  });
});

function alterAlgorithms(issuer: Scene["issuer"], names: string[] | undefined): void {
  issuer.metadata["dpop_signing_alg_values_supported"] = names;
}

describe("a stored login", () => {
  it.each([
    ["required", "Bearer"],
    ["off", "DPoP"],
  ] as const)("is not used with the policy %s when its token is of type %s", async (policy, before) => {
    const scene = await boundScene();
    const { agent, mcp, issuer } = scene;
    issuer.tokenAnswer = { token_type: before };
    await agent({ dpop: before === "DPoP" ? "required" : "off" }).login(mcp.url);
    expect(await pendingError(agent({ dpop: policy, login: undefined }).token(mcp.url))).toMatchObject({
      code: "login_required",
      message: expect.stringContaining("bound to a key"),
    });
    issuer.tokenAnswer = { token_type: policy === "off" ? "Bearer" : "DPoP" };
    expect((await agent({ dpop: policy }).token(mcp.url)).value).toBe("access-as-2");
    expect((await agent({ dpop: "auto" }).token(mcp.url)).value).toBe("access-as-2");
  });
});

describe("a login of another process", () => {
  it("does not do where its token is of another kind than is requested", async () => {
    const { agent, mcp, issuer, login } = await boundScene();
    issuer.routes[TOKEN] = ({ headers }, nth) => {
      return { json: { ...issuer.tokens(nth), token_type: headers["dpop"] === undefined ? "Bearer" : "DPoP" } };
    };
    let second: Promise<unknown> | undefined;
    login.before = () => {
      second ??= agent({ dpop: "required" }).token(mcp.url);
    };
    expect((await agent({ dpop: "off" }).login(mcp.url)).tokenType).toBe("Bearer");
    expect(await second).toMatchObject({ tokenType: "DPoP" });
  });
});

describe("a stored token of a machine", () => {
  it("is not used where the policy asks for another kind", async () => {
    const { agent, mcp, issuer } = await boundScene();
    const client = { clientId: "robot", clientSecret: "robot-secret" };
    const machine = { grant: { type: "client_credentials" }, client } as const;
    await agent({ ...machine, dpop: "required" }).token(mcp.url);
    issuer.tokenAnswer = {};
    const token = await agent({ ...machine, dpop: "off" }).token(mcp.url);
    expect([token.value, token.tokenType]).toEqual(["access-as-2", "Bearer"]);
    expect((await agent(machine).token(mcp.url)).value).toBe("access-as-2");
  });
});

describe("a refresh", () => {
  it("proves the key of the login, which stays what it is", async () => {
    const { agent, mcp, issuer, clock, store } = await loggedIn();
    const [before] = (await store.list()).map(plainGrant);
    await clock.sleep(3_600_000, SIGNAL);
    expect((await agent().token(mcp.url)).value).toBe("access-as-2");
    const [first, second] = await Promise.all(issuer.to(TOKEN).map(readProof));
    expect(second?.thumbprint).toBe(first?.thumbprint);
    expect(second?.claims["jti"]).not.toBe(first?.claims["jti"]);
    expect((await store.list()).map(plainGrant)).toMatchObject([{ generation: 2, proofKey: before?.proofKey }]);
  });

  it("is sent once more with the nonce that the issuer wants: that is no use of the refresh token", async () => {
    const { agent, mcp, issuer, clock } = await loggedIn();
    issuer.routes[TOKEN] = guarded(
      (_request, nth) => ({ json: issuer.tokens(nth) }),
      () => "n-1",
      wantsNonce,
    );
    await clock.sleep(3_600_000, SIGNAL);
    expect((await agent().token(mcp.url)).value).toBe("access-as-3");
    expect(issuer.form(TOKEN, 1).get("refresh_token")).toBe("refresh-as-1");
    expect(issuer.form(TOKEN, 2).get("refresh_token")).toBe("refresh-as-1");
  });
});

describe("a request with a bound token", () => {
  it("brings a new proof every time, for its method, its address, and the token", async () => {
    const { agent, mcp, sent } = await loggedIn();
    const one = agent();
    await one.fetch(`${mcp.url}#b`);
    await one.fetch(mcp.url, { method: "post", body: "{}" });
    await one.fetch(new Request(mcp.url, { method: "DELETE" }));
    const proofs = await Promise.all(sent().map(readProof));
    const common = { htu: mcp.url, ath: hashOf("access-as-1") };
    expect(proofs.map(({ claims }) => claims)).toMatchObject(
      ["GET", "POST", "DELETE"].map((htm) => ({ ...common, htm })),
    );
    expect(new Set(proofs.map(({ claims }) => claims["jti"])).size).toBe(3);
    expect(mcp.tokens().slice(-3)).toEqual(Array(3).fill("DPoP access-as-1"));
  });

  it("is sent once more with the nonce that the server wants, and the nonce is remembered", async () => {
    const { agent, mcp, sent } = await loggedIn();
    const refusal = (nonce: string): Reply => ({
      status: 401,
      headers: { "dpop-nonce": nonce, "www-authenticate": 'DPoP error="use_dpop_nonce"' },
      text: "",
    });
    mcp.routes[MCP] = guarded(mcp.routes[MCP] as Handler, () => "n-1", refusal);
    const one = agent();
    expect((await one.fetch(mcp.url, { method: "POST", body: "{}" })).status).toBe(200);
    expect((await one.fetch(mcp.url)).status).toBe(200);
    expect(sent().map(({ method, body }) => [method, body])).toEqual([
      ["POST", "{}"],
      ["POST", "{}"],
      ["GET", ""],
    ]);
  });

  it("is sent once more also where another request received the nonce in between", async () => {
    const { agent, mcp, sent } = await loggedIn();
    const taken = mcp.routes[MCP] as Handler;
    let late: (() => void) | undefined;
    mcp.routes[MCP] = async (request, nth) => {
      const { claims } = await readProof(request);
      if (claims["nonce"] === "n-1") {
        late?.();
        return taken(request, nth);
      }
      // The first is answered only when the second has been sent once more.
      if (late === undefined) await new Promise<void>((resolve) => (late = resolve));
      return {
        status: 401,
        headers: { "dpop-nonce": "n-1", "www-authenticate": 'DPoP error="use_dpop_nonce"' },
        text: "",
      };
    };
    const one = agent();
    const responses = await Promise.all([one.fetch(mcp.url), one.fetch(mcp.url)]);
    expect(responses.map(({ status }) => status)).toEqual([200, 200]);
    expect(sent()).toHaveLength(4);
  });

  it.each<[string, Record<string, string>]>([
    ["a nonce that is wanted and not given", { "www-authenticate": 'DPoP error="use_dpop_nonce"' }],
    ["a nonce that no challenge wants", { "dpop-nonce": "n-1" }],
  ])("is not sent once more for %s", async (_what, headers) => {
    const { agent, mcp, sent } = await loggedIn();
    mcp.routes[MCP] = { status: 401, headers, text: "" };
    expect((await agent({ login: undefined }).fetch(mcp.url)).status).toBe(401);
    expect(sent().map((request) => request.headers.authorization)).toEqual(["DPoP access-as-1", "DPoP access-as-2"]);
  });

  it("follows a nonce that changes with every answer, and asks twice at most where it is never right", async () => {
    const { agent, mcp, issuer, sent } = await loggedIn();
    const refusal = (nonce: string): Reply => ({
      status: 401,
      headers: { "dpop-nonce": nonce, "www-authenticate": 'DPoP error="use_dpop_nonce"' },
      text: "",
    });
    const taken = mcp.routes[MCP] as Handler;
    const changing: Handler = async (request, nth) => ({
      ...(await taken(request, nth)),
      headers: { "dpop-nonce": `n-${nth}` },
    });
    mcp.routes[MCP] = async (request, nth) => {
      const { claims } = await readProof(request);
      return claims["nonce"] === `n-${nth - 1}` ? changing(request, nth) : refusal(`n-${nth}`);
    };
    const one = agent();
    for (let nth = 0; nth < 3; nth++) expect((await one.fetch(mcp.url)).status).toBe(200);
    expect(sent()).toHaveLength(4);
    mcp.routes[MCP] = guarded(taken, (nth) => `other-${nth}`, refusal);
    const before = sent().length;
    expect((await one.fetch(mcp.url)).status).toBe(401);
    // Twice with the stored token, twice with a refreshed one, twice after a new login.
    expect(sent().length - before).toBeLessThanOrEqual(6);
    expect(issuer.to(TOKEN).length).toBeLessThanOrEqual(3);
  });

  it("follows a redirect inside the origin with a proof for where it leads", async () => {
    const { agent, mcp, sent } = await loggedIn();
    mcp.routes["/mcp/"] = mcp.routes[MCP] as Handler;
    mcp.routes[MCP] = { status: 307, headers: { location: "/mcp/" }, text: "" };
    const response = await agent().fetch(mcp.url, { method: "POST", body: "{}" });
    expect([response.status, mcp.to("/mcp/")[0]?.body]).toEqual([200, "{}"]);
    expect((await readProof(mcp.to("/mcp/")[0] ?? { headers: {} })).claims["htu"]).toBe(`${mcp.url}/`);
    expect(sent()).toHaveLength(1);
  });

  it("goes to no other origin, by no other method, and round no loop", async () => {
    const { agent, mcp, another, log } = await loggedIn();
    const other = await another("other");
    const post = { method: "POST", body: "{}" };
    const redirects: [Reply, RequestInit][] = [
      [{ status: 307, headers: { location: `${other.origin}/mcp` } }, {}],
      [{ status: 302, headers: { location: "/else" } }, post],
      [{ status: 307, headers: { location: "http://a:b@[" } }, post],
      [{ status: 308, headers: { location: MCP } }, post],
    ];
    for (const [reply, init] of redirects) {
      mcp.routes[MCP] = { ...reply, text: "" };
      expect(await pendingError(agent().fetch(mcp.url, init))).toMatchObject({
        code: "redirect_refused",
        class: "refused",
      });
    }
    expect(log.filter((line) => line.startsWith("other ") || line.endsWith("/else"))).toEqual([]);
  });

  it("leaves redirects to callers that want to see them", async () => {
    const { agent, mcp } = await loggedIn();
    mcp.routes[MCP] = { status: 307, headers: { location: "/mcp/" }, text: "" };
    expect((await agent().fetch(mcp.url, { redirect: "manual" })).status).toBe(307);
    await expect(agent().fetch(mcp.url, { redirect: "error" })).rejects.toBeInstanceOf(TypeError);
  });

  it("is refreshed on a refusal as any other, and sent again with the proof of the new token", async () => {
    const { agent, mcp, sent } = await loggedIn();
    const taken = mcp.routes[MCP] as Handler;
    mcp.routes[MCP] = (request, nth) =>
      request.headers.authorization === "DPoP access-as-1" ? mcp.refusal() : taken(request, nth);
    expect((await agent().fetch(mcp.url)).status).toBe(200);
    const proofs = await Promise.all(sent().map(readProof));
    expect(proofs.map(({ claims }) => claims["ath"])).toEqual([hashOf("access-as-1"), hashOf("access-as-2")]);
  });

  it("with a body that can be sent once says so where a nonce is wanted", async () => {
    const { agent, mcp } = await loggedIn();
    mcp.routes[MCP] = {
      status: 401,
      headers: { "dpop-nonce": "n-1", "www-authenticate": 'DPoP error="use_dpop_nonce"' },
      text: "",
    };
    const body = new Blob(["{}"]).stream();
    const init = { method: "POST", body, duplex: "half" } as RequestInit;
    expect(await pendingError(agent().fetch(mcp.url, init))).toMatchObject({ code: "body_not_replayable" });
  });
});

describe("a proof", () => {
  it("is for an address without its query and its fragment, and of a key that is nowhere in it", async () => {
    const key = await generateProofKey();
    const prover = createProver(key);
    const proof = await prover.proof({ method: "GET", url: "https://mcp.example:8443/a%20b/?c=d#e" });
    const { claims, thumbprint } = await readProof({ headers: { dpop: proof } });
    expect(claims["htu"]).toBe("https://mcp.example:8443/a%20b/");
    expect(thumbprint).toBe(await prover.thumbprint());
    const { d } = JSON.parse(key.reveal()) as { d: string };
    expect(Buffer.from(proof.split(".")[0] ?? "", "base64url").toString()).not.toContain(d);
    expect([String(key), JSON.stringify({ key })]).toEqual([SECRET_MASK, JSON.stringify({ key: SECRET_MASK })]);
  });
});

describe("the nonces that are remembered", () => {
  const given = (nonce: string) => new Headers({ "dpop-nonce": nonce });

  it("are kept by origin", () => {
    const nonces = new Nonces();
    nonces.learn("https://a.example/x?y", given("one"));
    nonces.learn("https://a.example/z", new Headers());
    expect([nonces.get("https://a.example/"), nonces.get("https://a.example:444/")]).toEqual(["one", undefined]);
  });

  it.each([
    ["one with a quote", 'a"b'],
    ["one with a blank", "a b"],
    ["one with a backslash", "a\\b"],
    ["one of more than 2,048 characters", "n".repeat(2049)],
    ["several", "a, b"],
  ])("do not include %s", (_title, nonce) => {
    const nonces = new Nonces();
    nonces.learn("https://a.example/", given(nonce));
    expect(nonces.get("https://a.example/")).toBeUndefined();
  });

  it("are no more than 256, those forgotten first that were not used for longest", () => {
    const nonces = new Nonces();
    for (let nth = 0; nth < 257; nth++) {
      nonces.learn(`https://h${nth}.example/`, given("n"));
      expect(nonces.get("https://h1.example/")).toBe(nth === 0 ? undefined : "n");
    }
    expect([nonces.get("https://h0.example/"), nonces.get("https://h256.example/")]).toEqual([undefined, "n"]);
  });
});
