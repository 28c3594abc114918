import { describe, expect, it } from "vitest";
import {
  loginFirst,
  parseMcpUrlArgument,
  printedLogin,
  printedPendingLogin,
  requestToken,
  warnOfUnusable,
} from "../../../src/cli/clients/login-first.js";
import { AgentAuthError } from "../../../src/errors.js";
import { describeLogin } from "../../../src/oauth/agent.js";
import { loginNotRequiredError, nothingThereError } from "../../../src/oauth/discovery/challenge-request.js";
import type { StoredLogin } from "../../../src/oauth/login/login-codec.js";
import { AccessToken } from "../../../src/oauth/model/grant.js";
import { Secret } from "../../../src/redact.js";
import { madeGrant } from "../../helpers/grant.js";
import { memoryContext } from "../commands/request/support.js";
import { DEVICE_LOGIN } from "./device-login.js";

const SERVER = "https://mcp.example/mcp";
const TOKEN = new AccessToken(madeGrant());
const REMEDY = { action: "login", server: SERVER } as const;
const required = (status?: number) =>
  new AgentAuthError("login_required", "a login is required", { class: "auth", status, remedy: REMEDY });
const other = new AgentAuthError("network_failed", "no answer", { class: "unavailable" });

interface Facts {
  /** What `token` returns or throws. */
  token?: AccessToken | Error;
  requires?: boolean | Error;
  logins?: number;
  found?: { isUnprotected: boolean } | undefined;
  failure?: Error;
}

/** An agent for which these facts hold, and the names of what it was asked. */
function agentOf({ token = TOKEN, requires = true, logins = 0, found, failure }: Facts) {
  const asked: string[] = [];
  const respond = (name: string, result: unknown) => async () => {
    asked.push(name);
    if (result instanceof Error) throw result;
    return result;
  };
  const agent = {
    token: respond("token", token),
    requiresLogin: respond("requiresLogin", requires),
    status: respond("status", Array(logins).fill({})),
    discover: respond("discover", { found, error: failure }),
  } as unknown as Parameters<typeof loginFirst>[0];
  return { agent, asked };
}

async function outcome<T>(work: Promise<T>): Promise<T | unknown> {
  return work.catch((error: unknown) => error);
}

describe("a login before a request", () => {
  const open = new AgentAuthError("login_required", "a login is required", {
    class: "auth",
    hint: `it answers without a token now, and after agentauth logout '${SERVER}?a=$b' it is used that way; to keep the login`,
    remedy: REMEDY,
  });
  const lost = { token: required(), logins: 1 };

  it.each<[string, Facts, unknown, string[]]>([
    ["is done where there is a token", {}, undefined, ["token"]],
    ["is not needed where the server says so", { token: loginNotRequiredError(SERVER) }, undefined, ["token"]],
    ["fails as another request does", { token: other }, other, ["token"]],
    ["fails where the server has answered that", { token: required(401) }, required(401), ["token"]],
    [
      "is not needed where the server requires none",
      { token: required(), requires: false },
      undefined,
      ["token", "requiresLogin"],
    ],
    [
      "is needed where the server is not known to require none",
      { token: required(), requires: other },
      required(),
      ["token", "requiresLogin", "status"],
    ],
    [
      "fails where nothing is there",
      { token: required(), requires: nothingThereError(SERVER) },
      nothingThereError(SERVER),
      ["token", "requiresLogin"],
    ],
    ["is needed where no user was logged in", { token: required() }, required(), ["token", "requiresLogin", "status"]],
    [
      "is needed again",
      { ...lost, found: { isUnprotected: false } },
      required(),
      ["token", "requiresLogin", "status", "discover"],
    ],
    ["is needed again where nothing is found", lost, required(), ["token", "requiresLogin", "status", "discover"]],
    [
      "is needed again where discovery fails",
      { ...lost, failure: other },
      required(),
      ["token", "requiresLogin", "status", "discover"],
    ],
    [
      "keeps from a server that is open now",
      { ...lost, found: { isUnprotected: true } },
      open,
      ["token", "requiresLogin", "status", "discover"],
    ],
    [
      "keeps from a server without one now",
      { ...lost, failure: loginNotRequiredError(SERVER) },
      open,
      ["token", "requiresLogin", "status", "discover"],
    ],
  ])("%s", async (_what, facts, expected, calls) => {
    const { agent, asked } = agentOf(facts);
    const url = expected === open ? `${SERVER}?a=$b` : SERVER;
    const result = await outcome(loginFirst(agent, url, {}));
    expect([result, asked]).toEqual([expected, calls]);
    if (expected === open) expect(result).toMatchObject({ hint: open.hint, remedy: REMEDY });
  });
});

describe("a token", () => {
  it.each<[string, Facts, unknown, string[]]>([
    ["is that of the agent", {}, TOKEN, ["token"]],
    ["fails as another request does", { token: other }, other, ["token"]],
    ["fails where the server has answered that", { token: required(401) }, required(401), ["token"]],
    ["needs a login", { token: required() }, required(), ["token", "requiresLogin"]],
    [
      "needs a login where nothing else is known",
      { token: required(), requires: other },
      required(),
      ["token", "requiresLogin"],
    ],
    [
      "is none where nothing is there",
      { token: required(), requires: nothingThereError(SERVER) },
      nothingThereError(SERVER),
      ["token", "requiresLogin"],
    ],
    [
      "is none of a server without a login",
      { token: required(), requires: false },
      loginNotRequiredError(SERVER),
      ["token", "requiresLogin"],
    ],
  ])("%s", async (_what, facts, expected, calls) => {
    const { agent, asked } = agentOf(facts);
    expect([await outcome(requestToken(agent, SERVER, {})), asked]).toEqual([expected, calls]);
  });
});

it("an address is taken as it is meant, and one that is none is a mistake of the caller", () => {
  expect(parseMcpUrlArgument("https://MCP.example:443/mcp")).toBe("https://mcp.example/mcp");
  for (const text of ["mcp.example", "http://mcp.example/mcp", "https://u:p@mcp.example/"]) {
    const expected = { code: "usage", class: "usage", cause: expect.any(TypeError) };
    expect(() => parseMcpUrlArgument(text)).toThrow(expect.objectContaining(expected));
  }
});

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
