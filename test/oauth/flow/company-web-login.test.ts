import { describe, expect } from "vitest";
import { isAgentAuthError } from "../../../src/errors.js";
import { AgentClient, type AgentClientOptions } from "../../../src/oauth/agent.js";
import { loginHandlers } from "../../../src/oauth/login-handlers.js";
import type { LoginRemedy } from "../../../src/remedy.js";
import { pendingError } from "../../helpers/captured.js";
import { TestLogin } from "../../helpers/login.js";
import { consent, cookieHeader, SECRET, visit } from "../login/web-support.js";
import { companySandboxTest } from "./company-support.js";

const REDIRECT_URI = "http://127.0.0.1:3000/callback";

const it = companySandboxTest
  /** A client of a user of the web app, in any of its processes. */
  .extend("agentOf", ({ machine, store }) => {
    const { idp, workloadClient, issuer } = machine;
    return (profile: string, options: Partial<AgentClientOptions> = {}) =>
      new AgentClient({
        store,
        profile,
        idp: { issuer: idp.issuer, clientId: idp.nativeClient.clientId },
        client: { ...workloadClient, issuer },
        ...options,
      });
  });

describe("a login at the company's identity provider in a web app", () => {
  it.for([undefined, SECRET])(
    "is finished by another process, with the secret %s",
    async (loginSecret, { agentOf, machine, sandbox }) => {
      const { url, saved, ...login } = await agentOf("alice", { loginSecret }).startIdpLogin({
        redirectUri: REDIRECT_URI,
        returnTo: "/inbox",
      });
      expect(new URL(url).searchParams.get("scope")).toBe("openid offline_access");
      expect(saved === undefined).toBe(loginSecret === undefined);
      const { request } = await visit({ url, saved, ...login });
      await expect(agentOf("bob", { loginSecret }).handleCallback(request.clone(), { saved })).rejects.toThrow();
      const { done } = await agentOf("alice", { loginSecret }).handleCallback(request.clone(), { saved });
      expect(done).toMatchObject({ server: machine.idp.issuer, returnTo: "http://127.0.0.1:3000/inbox" });
      expect(await pendingError(agentOf("alice", { loginSecret }).handleCallback(request, { saved }))).toMatchObject({
        code: "login_not_found",
      });
      expect(await agentOf("alice").status()).toMatchObject([{ grant: "idp", refreshable: true }]);
      expect((await agentOf("alice").token(sandbox.mcpUrl)).value).toMatch(/./);
      expect(await pendingError(agentOf("bob").token(sandbox.mcpUrl))).toMatchObject({ code: "login_required" });
    },
  );

  it("is that of one of the many users of a client", async ({ agentOf, sandbox }) => {
    const agents = agentOf("app");
    const { request } = await visit(await agents.for({ user: "alice" }).startIdpLogin({ redirectUri: REDIRECT_URI }));
    expect((await agentOf("app").for({ user: "alice" }).handleCallback(request)).done).toBeDefined();
    expect((await agents.for({ user: "alice" }).token(sandbox.mcpUrl)).value).toMatch(/./);
    expect(await pendingError(agents.for({ user: "bob" }).token(sandbox.mcpUrl))).toMatchObject({
      code: "login_required",
    });
  });

  it("begins with what the error of a token offers", async ({ agentOf, sandbox }) => {
    const startOf = async (agent: AgentClient) => {
      const error: unknown = await agent.token(sandbox.mcpUrl).catch((thrown: unknown) => thrown);
      const { start } = (isAgentAuthError(error) ? error.remedy : undefined) as LoginRemedy;
      if (start === undefined) throw new Error("the error offers no login");
      return start;
    };
    const start = await startOf(agentOf("alice"));
    const { request } = await visit(await start({ redirectUri: REDIRECT_URI }));
    expect((await agentOf("alice").handleCallback(request)).done).toBeDefined();
    // With a login method, it begins the login of a program.
    await (await startOf(agentOf("bob", { login: new TestLogin() })))();
    for (const user of ["alice", "bob"]) expect((await agentOf(user).token(sandbox.mcpUrl)).value).toMatch(/./);
  });

  it.for([true, false])("is among the login pages where they offer it: %s", async (idp, { agentOf, sandbox }) => {
    const options = { agent: () => agentOf("alice"), redirectUri: REDIRECT_URI, servers: [sandbox.mcpUrl], idp };
    const pages = loginHandlers(options);
    const started = await pages.start(new Request("http://127.0.0.1:3000/oauth/start?idp&returnTo=/inbox"));
    expect(started.status).toBe(idp ? 302 : 404);
    if (!idp) return;
    const address = await consent(started.headers.get("location") ?? "");
    const cookie = cookieHeader(...started.headers.getSetCookie());
    const finished = await pages.callback(new Request(address, { headers: { cookie } }));
    expect([finished.status, finished.headers.get("location")]).toEqual([302, "http://127.0.0.1:3000/inbox"]);
    expect((await agentOf("alice").token(sandbox.mcpUrl)).value).toMatch(/./);
  });

  it("needs a provider that is named or stored", async ({ agentOf }) => {
    const carol = agentOf("carol", { idp: "stored" });
    expect(await pendingError(carol.startIdpLogin({ redirectUri: REDIRECT_URI }))).toMatchObject({ code: "usage" });
    expect(await pendingError(carol.beginIdpLogin(REDIRECT_URI))).toMatchObject({ code: "usage" });
  });
});
