import { describe, expect, it } from "vitest";
import type { LoginMethod } from "../../src/oauth/login.js";
import { type Reply, type Scene, startScene } from "../helpers/issuer.js";

const TOKEN = "/pool/token";
const pending: Reply = { status: 400, json: { error: "authorization_pending" } };

/** Signs in by device, where the token endpoint gives these answers in turn and then a token. */
async function deviceLogin(answers: Reply[] = [], change: (scene: Scene) => void = () => undefined) {
  const scene = await startScene();
  scene.issuer.routes[TOKEN] = (_request, nth) => answers[nth - 1] ?? { json: scene.issuer.tokens(nth) };
  change(scene);
  const work = scene.agent({ flow: "device" }).login(scene.mcp.url, { scope: "a b" });
  const token = await work.catch(() => undefined);
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown as { code: string; class: string },
  );
  return { ...scene, token, error };
}

describe("signing in on another device", () => {
  it("shows the code, asks until the person is done, and keeps the grant", async () => {
    const { token, login, issuer, store, clock, mcp } = await deviceLogin([pending, pending]);
    expect(token?.value).toBe("access-as-3");
    expect(login.prompts).toEqual([
      {
        verificationUri: `${issuer.issuer}/go`,
        verificationUriComplete: undefined,
        userCode: "ABCD-EFGH",
        expiresIn: 60,
      },
    ]);
    expect(login.opened).toEqual([]);
    expect(clock.waits).toEqual([5000, 5000, 5000]);
    expect(await store.list()).toMatchObject([{ server: mcp.url, requestedScope: "a b" }]);
  });

  it("[20] names the resource and the scopes when it asks for the code, and the resource with every poll (2025-06-18)", async () => {
    const { issuer, mcp } = await deviceLogin([pending]);
    expect(Object.fromEntries(issuer.form("/pool/device"))).toMatchObject({ resource: mcp.url, scope: "a b" });
    for (const nth of [0, 1]) {
      expect(Object.fromEntries(issuer.form(TOKEN, nth))).toEqual({
        grant_type: "urn:ietf:params:oauth:grant-type:device_code",
        device_code: "device-1",
        resource: mcp.url,
      });
    }
  });

  it("registers for its grant", async () => {
    const { issuer } = await deviceLogin();
    expect(JSON.parse(issuer.to("/pool/register")[0]?.body ?? "")).toMatchObject({
      grant_types: ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
    });
  });

  it("asks five seconds less often each time it is told to slow down", async () => {
    const slower: Reply = { status: 400, json: { error: "slow_down" } };
    const { clock, token } = await deviceLogin([pending, slower, slower]);
    expect(clock.waits).toEqual([5000, 5000, 10_000, 15_000]);
    expect(token).toBeDefined();
  });

  it("goes on after an answer that says nothing", async () => {
    const { token } = await deviceLogin([{ status: 503, text: "" }, { raw: (response) => response.socket?.destroy() }]);
    expect(token?.value).toBe("access-as-3");
  });

  it.each(["access_denied", "expired_token"])("ends with %s", async (code) => {
    const { error, store, issuer } = await deviceLogin([pending, { status: 400, json: { error: code } }]);
    expect(error).toMatchObject({ code, class: "auth" });
    expect(issuer.to(TOKEN)).toHaveLength(2);
    expect(await store.list()).toEqual([]);
  });

  it("ends when nobody enters the code in time", async () => {
    const { error, clock } = await deviceLogin(Array.from({ length: 50 }, () => pending));
    expect(error).toMatchObject({ code: "expired_token", class: "auth" });
    expect(clock.waits.reduce((sum, wait) => sum + wait, 0)).toBe(60_000);
  });

  it("ends when the caller leaves", async () => {
    const scene = await startScene();
    const controller = new AbortController();
    scene.issuer.routes[TOKEN] = () => {
      controller.abort();
      return pending;
    };
    const work = scene.agent({ flow: "device" }).login(scene.mcp.url, { signal: controller.signal });
    await expect(work).rejects.toMatchObject({ code: "aborted" });
    expect(scene.issuer.to(TOKEN)).toHaveLength(1);
  });

  it.each(["javascript:alert(1)", "http://as.example/go", "https://user@as.example/"])(
    "[41] refuses to show the address %s to a person (2026-07-28)",
    async (address) => {
      for (const field of ["verification_uri", "verification_uri_complete"]) {
        const { error, login } = await deviceLogin([], ({ issuer }) => {
          const members = { device_code: "d", user_code: "u", expires_in: 60, verification_uri: `${issuer.issuer}/go` };
          issuer.routes["/pool/device"] = { json: { ...members, [field]: address } };
        });
        expect(error).toMatchObject({ code: "bad_address", class: "refused" });
        expect(login.prompts).toEqual([]);
      }
    },
  );

  it("says so where the issuer has no endpoint for it, or nobody can be shown a code", async () => {
    const { error } = await deviceLogin([], ({ issuer }) => {
      delete issuer.metadata["device_authorization_endpoint"];
    });
    expect(error).toMatchObject({ code: "no_device_flow", class: "auth" });
    const scene = await startScene();
    const method: LoginMethod = { open: (request) => scene.login.open(request) };
    await expect(scene.agent({ flow: "device", login: method }).login(scene.mcp.url)).rejects.toMatchObject({
      code: "no_device_flow",
    });
    expect(scene.issuer.to("/pool/register")).toEqual([]);
  });
});
