import { describe, expect, it } from "vitest";
import { printedLogin, printedPendingLogin, warnOfUnusable } from "../../../src/cli/clients/login-first.js";
import { AgentAuthError } from "../../../src/errors.js";
import { describeLogin } from "../../../src/oauth/agent.js";
import type { StoredLogin } from "../../../src/oauth/login/login-codec.js";
import { Secret } from "../../../src/redact.js";
import { madeGrant } from "../../helpers/grant.js";
import { memoryContext } from "../commands/request/support.js";
import { DEVICE_LOGIN } from "./device-login.js";

const BROWSER_LOGIN = { ...DEVICE_LOGIN, flow: undefined } as unknown as StoredLogin;
const LOGIN = {
  profile: "default",
  server: "https://mcp.example/mcp",
  account: null,
  grant: "login",
  token_type: "Bearer",
  resource: "https://mcp.example/mcp",
  issuer: DEVICE_LOGIN.issuer.issuer,
  exceptions: [],
  client_id: "client-1",
  scope: "mcp",
  expires_at: "1970-01-01T00:00:02.000Z",
  logged_in_at: "1970-01-01T00:00:01.000Z",
  state: "pending",
  refreshable: false,
  refresh_lost_at: null,
  reason: null,
  stored_in: "/home/ann",
  login_id: "abcdefghijkl",
  flow: "device",
};

describe("a started login, as it is printed", () => {
  it.each<[string, StoredLogin, Partial<typeof LOGIN> | object]>([
    ["on another device", DEVICE_LOGIN, {}],
    ["in a browser", BROWSER_LOGIN, { flow: "browser" }],
    ["without a scope", { ...DEVICE_LOGIN, scope: [] }, { scope: null }],
    ["with two scopes", { ...DEVICE_LOGIN, scope: ["mcp", "tools"] }, { scope: "mcp tools" }],
    ["of an account", { ...DEVICE_LOGIN, account: "ann" }, { account: "ann" }],
    ["at an identity provider", { ...DEVICE_LOGIN, account: "grant:idp" }, { account: "grant:idp", grant: "idp" }],
    ["with a key", { ...DEVICE_LOGIN, proofKey: new Secret("key") }, { token_type: "DPoP" }],
  ])("%s", (_what, login, over) => {
    const pending = { id: "abcdefghijkl", login, startedAt: 1000, expiresAt: 2000 };
    expect(printedPendingLogin(pending, "/home/ann")).toEqual({ ...LOGIN, ...over });
  });
});

it("a stored login is printed with its exceptions as flags", () => {
  const overrides = ["allowPrivateNetwork", "resource"] as const;
  const login = describeLogin(madeGrant({ overrides: [...overrides], resource: "none" }), 0, "here");
  expect(printedLogin(login)).toEqual({ ...login, exceptions: ["--allow-private-network", "--resource none"] });
});

it("stored logins that cannot be read are warned of, with what helps and without secrets", () => {
  const context = memoryContext();
  context.redactor.add("a-secret");
  const error = (hint?: string) => new AgentAuthError("store_failed", "a-secret is wrong", { class: "store", hint });
  const login = { action: "login", server: "https://mcp.example/mcp" } as const;
  const lost = new AgentAuthError("store_failed", "lost", { class: "store", remedy: login });
  warnOfUnusable([error(), error("move it away"), lost], context);
  expect(context.io.err()).toBe(
    "warning: a stored login cannot be used: ******** is wrong\n" +
      "warning: a stored login cannot be used: ******** is wrong\nhint: move it away\n" +
      "warning: a stored login cannot be used: lost\nhint: agentauth login https://mcp.example/mcp\n",
  );
});
