import { describe, expect, it } from "vitest";
import { LOGIN_HINT, loginRemedy, loginRequired } from "../../../src/oauth/grant/grant-requirements.js";
import { startScene } from "../../helpers/issuer.js";
import { heldError } from "../../helpers/told.js";

describe("a login that is stored", () => {
  it("is not used in place of one for another resource", async () => {
    const { agent, mcp, issuer } = await startScene();
    await agent().login(mcp.url);
    const resource = "https://other.example/mcp";
    expect(await heldError(agent({ resource, login: undefined }).token(mcp.url))).toMatchObject({
      code: "login_required",
      message: expect.stringContaining(`the token is for "${mcp.url}"`),
    });
    expect((await agent({ resource }).token(mcp.url)).resource).toBe(resource);
    expect(issuer.form("/pool/token", 1).get("resource")).toBe(resource);
    expect((await agent({ resource }).token(mcp.url)).value).toBe("access-as-2");
    expect((await agent().token(mcp.url)).value).toBe("access-as-2");
  });

  it("is not used in place of one of another client", async () => {
    const { agent, mcp, issuer } = await startScene();
    await agent().login(mcp.url);
    const client = { clientId: "mine", clientSecret: "secret" };
    expect(await heldError(agent({ client, login: undefined }).token(mcp.url))).toMatchObject({
      code: "login_required",
      message: expect.stringContaining('the token was issued to the client "client-as-1"'),
    });
    expect((await agent({ client }).token(mcp.url)).value).toBe("access-as-2");
    expect(atob(issuer.to("/pool/token")[1]?.headers.authorization?.replace("Basic ", "") ?? "")).toBe("mine:secret");
    expect((await agent({ client, login: undefined }).token(mcp.url)).value).toBe("access-as-2");
  });

  it("is used where the caller names no resource and no client", async () => {
    const { agent, mcp } = await startScene();
    const client = { clientId: "mine", clientSecret: "secret" };
    await agent({ client, resource: "https://other.example/mcp" }).login(mcp.url);
    expect((await agent({ login: undefined }).token(mcp.url)).value).toBe("access-as-1");
  });
});

const server = "https://mcp.example/mcp";

describe("the login that helps", () => {
  it("names what it is for, and leaves out what is the default", () => {
    expect(loginRemedy({ profile: "default", server }, { dpop: "auto", scope: "" })).toEqual({
      action: "login",
      server,
    });
    expect(loginRemedy({ profile: "work", server, account: "ann" }, { scope: "a b", dpop: "required" })).toEqual({
      action: "login",
      server,
      profile: "work",
      account: "ann",
      scope: "a b",
      dpop: "required",
    });
  });

  it("is the remedy of an error that names the profile and the account", () => {
    const error = loginRequired({ profile: "work", server, account: "ann" }, "no login", { scope: "a" });
    expect(error).toMatchObject({ code: "login_required", class: "auth", hint: LOGIN_HINT });
    expect(error.message).toBe(`a login is required for "${server}" (profile work, account "ann"): no login`);
    expect(error.remedy).toEqual({ action: "login", server, profile: "work", account: "ann", scope: "a" });
  });
});
