import { describe, expect, it } from "vitest";
import type { AgentClientOptions } from "../../../src/oauth/agent.js";
import type { LoginMethod } from "../../../src/oauth/login/login-method.js";
import { captureError, pendingError } from "../../helpers/captured.js";
import { type Reply, reset, type Scene, startScene } from "../../helpers/issuer.js";
import { loginAt } from "../../helpers/remedy.js";

const TOKEN = "/pool/token";
/** Makes the code one that is good for long enough, with these members in place of the usual. */
const lasting = (members: Record<string, unknown>) => (scene: Scene) => {
  const verification_uri = `${scene.issuer.issuer}/go`;
  scene.issuer.routes["/pool/device"] = {
    json: { device_code: "device-1", user_code: "ABCD-EFGH", verification_uri, expires_in: 300, ...members },
  };
};
const pending: Reply = { status: 400, json: { error: "authorization_pending" } };

/** Signs in by device, where the token endpoint gives these answers in turn and then a token. */
async function deviceLogin(
  answers: Reply[] = [],
  change: (scene: Scene) => void = () => undefined,
  options: Partial<AgentClientOptions> = {},
) {
  const scene = await startScene();
  scene.issuer.routes[TOKEN] = (_request, nth) => answers[nth - 1] ?? { json: scene.issuer.tokens(nth) };
  change(scene);
  const work = scene.agent({ flow: "device", ...options }).login(scene.mcp.url, { scope: "a b" });
  const token = await work.catch(() => undefined);
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown as { code: string; class: string },
  );
  return { ...scene, token, error: captureError(error) };
}

describe("signing in on another device", () => {
  it("shows the code, polls until the user is done, and stores the grant", async () => {
    const { token, login, issuer, store, clock, mcp } = await deviceLogin([pending, pending]);
    expect(token?.value).toBe("access-as-3");
    expect(login.prompts).toEqual([
      {
        verificationUri: `${issuer.issuer}/go`,
        verificationUriComplete: undefined,
        userCode: "ABCD-EFGH",
        expiresInSeconds: 60,
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
      redirect_uris: ["http://127.0.0.1/device"],
    });
  });

  it("polls five seconds less often after each slow_down", async () => {
    const slower: Reply = { status: 400, json: { error: "slow_down" } };
    const { clock, token } = await deviceLogin([pending, slower, slower]);
    expect(clock.waits).toEqual([5000, 5000, 10_000, 15_000]);
    expect(token).toBeDefined();
  });

  it("continues after a response that says nothing", async () => {
    const { token } = await deviceLogin([{ status: 503, text: "" }, { raw: (response) => response.socket?.destroy() }]);
    expect(token?.value).toBe("access-as-3");
  });

  it.each<[string, Reply]>([
    ["503", { status: 503, text: "" }],
    ["429", { status: 429, json: {} }],
    ["a broken connection", reset],
  ])(
    "asks less and less often while the answer is %s, and as before after one that says something",
    async (_what, answer) => {
      const { clock, token } = await deviceLogin(
        [answer, answer, answer, answer, answer, pending],
        lasting({ interval: 1 }),
      );
      expect(clock.waits).toEqual([1000, 6000, 12_000, 24_000, 48_000, 60_000, 1000]);
      expect(token).toBeDefined();
    },
  );

  it("waits as long as an answer that says nothing else asks for", async () => {
    const busy: Reply = { status: 503, headers: { "retry-after": "77" }, text: "" };
    const { clock } = await deviceLogin([busy], lasting({ interval: 5 }));
    expect(clock.waits).toEqual([5000, 77_000]);
  });

  it.each([
    [undefined, 5000],
    [1e-6, 1000],
    [0.5, 1000],
    [30, 30_000],
    [1e300, 60_000],
  ])(
    "asks no more often than every second, and at least once a minute, where the interval is %s",
    async (interval, wait) => {
      const { clock, token } = await deviceLogin([pending], lasting({ interval }));
      expect(clock.waits).toEqual([wait, wait]);
      expect(token).toBeDefined();
    },
  );

  it.each<[string, Partial<AgentClientOptions>, number]>([
    ["that the client was given", { loginTimeoutMs: 12_000 }, 12],
    ["of five minutes by default", {}, 300],
  ])("ends after the time %s, however long the code is good", async (_what, options, seconds) => {
    const answers = Array.from({ length: 200 }, () => pending);
    const { error, clock, login, mcp } = await deviceLogin(answers, lasting({ expires_in: 1e300 }), options);
    expect(error).toMatchObject({ code: "timeout", class: "auth" });
    expect(error).toMatchObject({ remedy: loginAt(mcp.url, { option: "loginTimeoutMs" }) });
    expect(clock.waits.reduce((sum, wait) => sum + wait, 0)).toBe(seconds * 1000);
    expect(login.prompts).toMatchObject([{ expiresInSeconds: seconds }]);
  });

  it("ends after the time of the login page, where the client was given none", async () => {
    const { login, mcp, issuer, clock, agent } = await startScene();
    issuer.routes[TOKEN] = pending;
    const method: LoginMethod = {
      loginTimeoutMs: 7000,
      open: (request) => login.open(request),
      showDeviceCode: (prompt) => login.showDeviceCode(prompt),
    };
    expect(await pendingError(agent({ flow: "device", login: method }).login(mcp.url))).toMatchObject({
      code: "timeout",
    });
    expect(clock.waits).toEqual([5000, 2000]);
  });

  it("believes no code to be good for more than a day", async () => {
    const options = { loginTimeoutMs: Number.POSITIVE_INFINITY };
    const { login } = await deviceLogin([], lasting({ expires_in: 1e300 }), options);
    expect(login.prompts).toMatchObject([{ expiresInSeconds: 24 * 3600 }]);
  });

  it.each([0, -1, Number.NaN])("takes no time of %s milliseconds", async (loginTimeout) => {
    const { agent } = await startScene();
    expect(() => agent({ loginTimeoutMs: loginTimeout })).toThrow(TypeError);
  });

  it.each(["access_denied", "expired_token"])("ends with %s", async (code) => {
    const { error, store, issuer } = await deviceLogin([pending, { status: 400, json: { error: code } }]);
    expect(error).toMatchObject({ code, class: "auth" });
    expect(issuer.to(TOKEN)).toHaveLength(2);
    expect(await store.list()).toEqual([]);
  });

  it("registers another client next time, after the issuer has forgotten it in between", async () => {
    const gone: Reply = { status: 400, json: { error: "invalid_client" } };
    const scene = await deviceLogin([pending, gone, gone]);
    expect(scene.error).toMatchObject({ code: "invalid_client", hint: expect.stringContaining("another client") });
    await scene.agent({ flow: "device" }).login(scene.mcp.url);
    expect(scene.issuer.to("/pool/register")).toHaveLength(2);
  });

  it("fails when the code is not entered in time", async () => {
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
    expect(await pendingError(work)).toMatchObject({ code: "aborted" });
    expect(scene.issuer.to(TOKEN)).toHaveLength(1);
  });

  it.each(["javascript:alert(1)", "http://as.example/go", "https://user@as.example/"])(
    "[41] refuses to show the address %s to a user (2026-07-28)",
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

  it("says so where the issuer has no endpoint for it, or no login method shows a code", async () => {
    const { error } = await deviceLogin([], ({ issuer }) => {
      delete issuer.metadata["device_authorization_endpoint"];
    });
    expect(error).toMatchObject({ code: "no_device_flow", class: "auth" });
    const scene = await startScene();
    const method: LoginMethod = { open: (request) => scene.login.open(request) };
    expect(await pendingError(scene.agent({ flow: "device", login: method }).login(scene.mcp.url))).toMatchObject({
      code: "no_device_flow",
    });
    expect(scene.issuer.to("/pool/register")).toEqual([]);
  });
});
