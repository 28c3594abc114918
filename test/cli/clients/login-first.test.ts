import { describe, expect, it } from "vitest";
import { loginFirst, requestToken } from "../../../src/cli/clients/login-first.js";
import { AgentAuthError } from "../../../src/errors.js";
import { loginNotRequiredError, nothingThereError } from "../../../src/oauth/discovery/challenge-request.js";
import { AccessToken } from "../../../src/oauth/model/grant.js";
import { madeGrant } from "../../helpers/grant.js";

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
