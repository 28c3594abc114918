import { describe, expect, it } from "vitest";
import { ManagementClient } from "../src/api/client.js";
import { AgentClient } from "../src/oauth/agent.js";
import { keepAlive } from "../src/oauth/keep-alive.js";
import { createResourceServer } from "../src/resource-server/resource-server.js";
import { memoryStore } from "../src/store/memory.js";

const MCP = "https://mcp.example/mcp";
/** Options as a program without types gives them. */
const misspelt = (options: object) => options as never;

const service = new ManagementClient({ baseUrl: "https://service.example", token: "t" });
const agent = new AgentClient({ store: memoryStore() });

describe("an option that a public call does not have", () => {
  it.each<[string, () => unknown, RegExp]>([
    [
      "of a list",
      () => service.devices.list({ pool_id: "p" }, misspelt({ maxItems: 1 })),
      /a list has no option "maxItems"/,
    ],
    [
      "of a list, nearly",
      () => service.pools.list({ domain_id: "d" }, misspelt({ pagesize: 1 })),
      /did you mean pageSize\?/,
    ],
    [
      "of token",
      () => agent.token(MCP, misspelt({ minTTL: 1 })),
      /token\(\) has no option "minTTL"; did you mean minTtl\?/,
    ],
    [
      "of login",
      () => agent.login(MCP, misspelt({ scopes: "a" })),
      /login\(\) has no option "scopes"; did you mean scope\?/,
    ],
    ["of exchange", () => agent.exchange(MCP, misspelt({ audiences: "a" })), /did you mean audience\?/],
    ["of startLogin", () => agent.startLogin(MCP, misspelt({ redirectUrl: "x" })), /did you mean redirectUri\?/],
    ["of status", () => agent.status(MCP, misspelt({ every: true })), /status\(\) has no option "every"/],
    ["of disconnect", () => agent.disconnect(MCP, misspelt({ acount: "a" })), /did you mean account\?/],
    ["of disconnectAll", () => agent.disconnectAll(misspelt({ tennant: "a" })), /did you mean tenant\?/],
    ["of introspect", () => agent.introspect(MCP, misspelt({ signall: 1 })), /did you mean signal\?/],
    ["of discover", () => agent.discover(MCP, misspelt({ signall: 1 })), /did you mean signal\?/],
    ["of a provider", () => agent.authProvider(MCP, misspelt({ scop: "a" })), /did you mean scope\?/],
    ["of for", () => agent.for(misspelt({ usr: "a" })), /did you mean user\?/],
    ["of keepAlive", () => keepAlive(agent, misspelt({ every: "1h", tenant: 1 })), /did you mean tenants\?/],
    [
      "of the client",
      () => new AgentClient(misspelt({ store: memoryStore(), client: { clientID: "c" } })),
      /client has no option "clientID"/,
    ],
    [
      "of the policy",
      () => new AgentClient(misspelt({ store: memoryStore(), policy: { allowPrivate: true } })),
      /policy has no option/,
    ],
    [
      "of the provider of a company",
      () => new AgentClient(misspelt({ store: memoryStore(), idp: { isuer: "x" } })),
      /did you mean issuer\?/,
    ],
    [
      "of a resource server",
      () => createResourceServer(misspelt({ resource: MCP, scopes: [] })),
      /createResourceServer has no option/,
    ],
    [
      "of its introspection",
      () => createResourceServer(misspelt({ introspection: { clientid: "c" } })),
      /did you mean clientId\?/,
    ],
  ])("%s is a TypeError that names the nearest one", async (_what, call, message) => {
    const thrown = await Promise.resolve()
      .then(call)
      .catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(TypeError);
    expect(String(thrown)).toMatch(message);
  });
});
