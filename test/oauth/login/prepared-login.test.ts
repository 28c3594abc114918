import { describe, expect, it } from "vitest";
import type { PreparedLogin } from "../../../src/oauth/login/authorization.js";
import { decodeLogin, encodeLogin } from "../../../src/oauth/login/login-codec.js";
import { CodecError } from "../../../src/oauth/model/codec.js";
import type { GrantStore } from "../../../src/oauth/model/grant-store.js";
import { type Scene, startScene } from "../../helpers/issuer.js";

const SIGNAL = new AbortController().signal;

/** Begins a login as a client of one account and keeps it as text, as two processes would. */
async function begun(scene: Scene, loginHint?: string): Promise<string> {
  const prepared = await scene.agent({ loginHint }).beginLogin(scene.mcp.url, scene.login.redirectUri);
  return encodeLogin({ ...prepared, profile: "default" });
}

/** Finishes it as a client of another. */
async function finish({ agent, login }: Scene, prepared: PreparedLogin, options: Parameters<Scene["agent"]>[0] = {}) {
  const { server, issuer } = prepared;
  const session = await login.open({ resource: server, issuer: issuer.issuer, signal: SIGNAL });
  return agent(options).finishLogin(prepared, session);
}

const accountsOf = async ({ store }: Scene) =>
  (await store.list()).map(({ account, tokens }) => [account, tokens.accessToken.reveal()]).sort();

describe("a login in two steps", () => {
  it.each([undefined, "bob"])("is kept for the account it began with where the client is for %s", async (loginHint) => {
    const scene = await startScene();
    await scene.agent().login(scene.mcp.url);
    const prepared = decodeLogin(await begun(scene, "alice"));
    expect(prepared.account).toBe("alice");
    await finish(scene, prepared, { loginHint });
    expect(await accountsOf(scene)).toEqual([
      [undefined, "access-as-1"],
      ["alice", "access-as-2"],
    ]);
  });

  it("that began without an account is stored without one, by any agent that finishes it", async () => {
    const scene = await startScene();
    await finish(scene, decodeLogin(await begun(scene)), { loginHint: "bob" });
    expect(await accountsOf(scene)).toEqual([[undefined, "access-as-1"]]);
  });

  it("closes its session once, also where the client cannot even begin to finish it", async () => {
    const scene = await startScene();
    const prepared = decodeLogin(await begun(scene));
    const { overrides: _, ...damaged } = prepared;
    await expect(finish(scene, damaged as unknown as PreparedLogin)).rejects.toBeInstanceOf(TypeError);
    expect(scene.login.outcomes).toMatchObject([{ ok: false, error: { code: "internal_error", class: "internal" } }]);
    await expect(finish(scene, { ...prepared, server: "no address" })).rejects.toBeInstanceOf(TypeError);
    expect(scene.login.outcomes).toHaveLength(2);
  });

  it("closes its session once, with an internal error, where something throws what is no error of ours", async () => {
    const scene = await startScene();
    const broken: GrantStore = {
      ...scene.store,
      read: async () => {
        throw new RangeError("oops");
      },
    };
    await expect(finish(scene, decodeLogin(await begun(scene)), { store: broken })).rejects.toBeInstanceOf(RangeError);
    expect(scene.login.outcomes).toMatchObject([{ ok: false, error: { code: "internal_error" } }]);
  });

  it("closes its session with success once, and does not take a failure of that for one of the login", async () => {
    const scene = await startScene();
    const prepared = decodeLogin(await begun(scene));
    const outcomes: boolean[] = [];
    const open = scene.login.open.bind(scene.login);
    scene.login.open = async (request) => ({
      ...(await open(request)),
      close: async ({ ok }) => {
        outcomes.push(ok);
        throw new Error("the page is gone");
      },
    });
    await expect(finish(scene, prepared)).rejects.toThrow("the page is gone");
    expect(outcomes).toEqual([true]);
    expect(await scene.store.list()).toHaveLength(1);
  });
});

describe("the text of a login on its way", () => {
  it("gives back all that was kept", async () => {
    const scene = await startScene();
    scene.mcp.metadata["scopes_supported"] = ["tools"];
    const text = await begun(scene, "alice");
    expect(JSON.parse(encodeLogin(decodeLogin(text)))).toEqual(JSON.parse(text));
    expect(decodeLogin(text)).toMatchObject({ account: "alice", scope: ["tools"], overrides: [] });
  });

  it("of the form that knew no account is one without an account", async () => {
    const { account: _, ...older } = JSON.parse(await begun(await startScene(), "alice")) as Record<string, unknown>;
    const login = decodeLogin(JSON.stringify(older));
    expect([login.account, login.profile]).toEqual([undefined, "default"]);
  });

  it.each([
    ["profile"],
    ["server"],
    ["issuer"],
    ["client"],
    ["scope"],
    ["resource"],
    ["overrides"],
    ["pending"],
    ["issuer", "issuer"],
    ["issuer", "tokenEndpoint"],
    ["issuer", "promisesIss"],
    ["pending", "authorizationUrl"],
    ["pending", "redirectUri"],
    ["pending", "state"],
    ["pending", "verifier"],
  ])("is refused without its %s %s, or with a number in its place", async (outer, inner = "") => {
    const text = await begun(await startScene());
    for (const value of [undefined, 7]) {
      const members = JSON.parse(text) as Record<string, unknown>;
      if (inner) Object.assign(members[outer] as object, { [inner]: value });
      else members[outer] = value;
      const name = inner || outer;
      expect(() => decodeLogin(JSON.stringify(members))).toThrow(CodecError);
      expect(() => decodeLogin(JSON.stringify(members))).toThrow(new RegExp(`^${name} is `));
    }
  });

  it("is refused with a redirect address that is none", async () => {
    const login = JSON.parse(await begun(await startScene())) as { pending: Record<string, unknown> };
    login.pending["redirectUri"] = "nowhere";
    expect(() => decodeLogin(JSON.stringify(login))).toThrow("redirectUri is not an address");
  });
});
