import { describe, expect, it } from "vitest";
import { LOGIN_HINT, loginRemedy, loginRequired } from "../../../src/oauth/grant/login-required.js";

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
