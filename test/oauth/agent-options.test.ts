import { describe, expect, it } from "vitest";
import { checkOptionNames } from "../../src/http/public-class.js";
import { AgentClient, type AgentClientOptions } from "../../src/oauth/agent.js";
import { AGENT_OPTIONS } from "../../src/oauth/agent-options.js";
import { memoryStore } from "../../src/store/memory.js";
import { startScene } from "../helpers/issuer.js";

const open = (options: object) => new AgentClient({ store: memoryStore(), ...options } as AgentClientOptions);
const client = { clientId: "c", clientSecret: "s" };
const grant = { type: "client_credentials" } as const;
const workload = { assertion: () => "a", workload: "w" };
const LONG = "x".repeat(32);
const ONE_ISSUER = "issuer, client.issuer and grant.issuer must be the same where they are set";
const [A, B] = ["https://a.example", "https://b.example"];

describe("the options of a client", () => {
  it("are each taken", () => {
    expect(() => checkOptionNames(AGENT_OPTIONS, AGENT_OPTIONS, "AgentClient")).not.toThrow();
  });

  it.each<[object, string]>([
    [{ stor: 1 }, 'AgentClient has no option "stor"; did you mean store?'],
    [{ store: undefined }, "store is required: where logins are stored"],
    [{ store: {} }, "store is required: where logins are stored"],
    [{ dpop: "on" }, 'dpop must be "off", "auto" or "required"'],
    [
      { policy: { acceptTokenType: "a b" } },
      "policy.acceptTokenType must be a name of at most 40 letters, digits, dots, hyphens and underscores, and neither Bearer, DPoP nor N_A",
    ],
    [{ loginTimeoutMs: 0 }, "loginTimeoutMs must be a number of milliseconds above 0"],
    [{ loginTimeoutMs: Number.NaN }, "loginTimeoutMs must be a number of milliseconds above 0"],
    [{ loginSecret: LONG.slice(1) }, "loginSecret must have at least 32 characters"],
    [{ loginSecret: [LONG, LONG.slice(1)] }, "loginSecret must have at least 32 characters"],
    [{ issuer: A, client: { ...client, issuer: B } }, ONE_ISSUER],
    [{ issuer: A, client, grant: { ...grant, issuer: B } }, ONE_ISSUER],
    [{ client: { ...client, issuer: A }, grant: { ...grant, issuer: B } }, ONE_ISSUER],
    [{ clientName: " " }, "clientName must not be empty"],
    [{ grant, client, idp: "stored" }, "grant and idp exclude each other"],
    [{ grant }, "grant requires a registered client: set client.clientId"],
    [{ grant, client: { clientId: "" } }, "client.clientId must not be empty"],
    [
      { grant: { type: "jwt_bearer", ...workload, workload: "" } },
      "grant.workload is required: it names the workload whose tokens are stored",
    ],
    [{ grant, client, loginHint: "ann" }, "grant and loginHint exclude each other: a machine has no account"],
    [
      { authorizationParams: { a: 1 } },
      "authorizationParams cannot set a: a value is a string of at most 1024 characters",
    ],
  ])("are refused as %o", (options, message) => {
    expect(() => open(options)).toThrow(new TypeError(message));
  });

  it.each([
    ["devise", 'flow "devise" is none of browser, device', "did you mean device?"],
    ["paste", 'flow "paste" is none of browser, device', "use one of browser, device"],
    [null, 'flow "null" is none of browser, device', "use one of browser, device"],
  ])("are refused with the flow %j", (flow, message, hint) => {
    expect(() => open({ flow })).toThrow(expect.objectContaining({ code: "usage", message, hint }));
  });

  it.each([undefined, "browser", "device"])("allow the flow %j", (flow) => {
    expect(() => open({ flow })).not.toThrow();
  });

  it("are refused with an address of an identity provider that is not safe", () => {
    expect(() => open({ idp: { issuer: "http://idp.example" } })).toThrow(
      expect.objectContaining({
        code: "usage",
        message: 'idp.issuer, "http://idp.example", must be https, or http to this machine',
      }),
    );
  });

  it.each<[object]>([
    [{}],
    [{ dpop: "required" }],
    [{ policy: { acceptTokenType: "user" } }],
    [{ loginTimeoutMs: 1 }],
    [{ loginSecret: LONG }],
    [{ loginSecret: [LONG, LONG] }],
    [{ issuer: A, client: { ...client, issuer: A }, grant: { ...grant, issuer: A } }],
    [{ clientName: "a" }],
    [{ idp: "stored" }],
    [{ idp: { issuer: "https://idp.example" } }],
    [{ grant, client }],
    [{ grant: { type: "jwt_bearer", ...workload } }],
    [{ loginHint: "ann" }],
    [{ authorizationParams: { a: "" } }],
  ])("are taken as %o", (options) => {
    expect(() => open(options)).not.toThrow();
  });
});

describe("the options of a call", () => {
  it.each([-1, Number.NaN])("are refused with the time %d", async (minTtl) => {
    const { agent, mcp, log } = await startScene();
    await expect(agent().token(mcp.url, { minTtl })).rejects.toThrow(
      new TypeError("minTtl must be a number of seconds, 0 or more"),
    );
    expect(log).toEqual([]);
  });

  it("are refused with scopes that are none, and those are named", async () => {
    const { agent, mcp, log } = await startScene();
    await expect(agent().token(mcp.url, { scope: 'a"b' })).rejects.toMatchObject({
      code: "usage",
      class: "usage",
      message:
        'the scopes "a"b" must be at most 256 scope tokens with blanks between them, in at most 8192 bytes (RFC 6749 section 3.3)',
    });
    expect(log).toEqual([]);
  });

  it("are refused where the caller has left", async () => {
    const { agent, mcp, log } = await startScene();
    const one = agent();
    const signal = AbortSignal.abort();
    for (const work of [
      () => one.token(mcp.url, { signal }),
      () => one.login(mcp.url, { signal }),
      () => one.requiresLogin(mcp.url, { signal }),
      () => one.exchange(mcp.url, { audience: A, signal }),
      () => one.disconnect(mcp.url, { signal }),
      () => one.disconnectAll({ signal }),
      () => one.retryRevocations({ signal }),
      () => one.status(mcp.url, { signal }),
      () => one.health({ signal }),
      () => one.introspect(mcp.url, { signal }),
      () => one.logoutIdp({ signal }),
    ])
      await expect(work()).rejects.toMatchObject({ code: "aborted" });
    expect(log).toEqual([]);
  });
});
