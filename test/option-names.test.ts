import { describe, expect, it } from "vitest";
import { ManagementClient } from "../src/api/client.js";
import { createBroker } from "../src/broker/broker.js";
import { listen } from "../src/broker/listen.js";
import { terminalLogin } from "../src/login/terminal.js";
import { AgentClient } from "../src/oauth/agent.js";
import { keepAlive } from "../src/oauth/keep-alive.js";
import { loginHandlers, loginMiddlewares } from "../src/oauth/login-handlers.js";
import { createResourceServer } from "../src/resource-server/resource-server.js";
import { startSandbox } from "../src/sandbox/sandbox.js";
import { grantStore } from "../src/store/driver/grant-store.js";
import { memoryDriver } from "../src/store/driver/memory-driver.js";
import { reseal } from "../src/store/driver/tenant-records.js";
import { fileStore } from "../src/store/file/file.js";
import { keyringStore } from "../src/store/keychain/keyring.js";
import { memoryStore } from "../src/store/memory.js";
import { postgresDriver } from "../src/store/postgres/postgres-driver.js";
import { storeSql } from "../src/store/postgres/store-sql.js";
import { redisDriver } from "../src/store/redis/redis-driver.js";
import { envelope } from "../src/store/seal/envelope.js";
import { keyRing } from "../src/store/seal/key-ring.js";
import { instrument } from "../src/telemetry/otel.js";

const MCP = "https://mcp.example/mcp";
/** Options as a program without types gives them. */
const misspelt = (options: object) => options as never;

const service = new ManagementClient({ baseUrl: "https://service.example", token: "t" });
const agent = new AgentClient({ store: memoryStore() });
const driver = memoryDriver();
const KEY = new Uint8Array(32);
const RING = keyRing({ current: "a", keys: { a: KEY }, nameKey: KEY });
const POLICY = { grants: { crm: { server: MCP } }, clients: { job: { listen: "unix:/tmp/x.sock" } } };

describe("what is no object of options", () => {
  it.each([undefined, null, "store", 7])("is named by a client: %j", (value) => {
    expect(() => new AgentClient(value as never)).toThrow(new TypeError("AgentClient requires an object of options"));
    expect(() => new ManagementClient(value as never)).toThrow(/^ManagementClient requires an object of options$/);
  });

  it("is no address of a service", () => {
    expect(() => new ManagementClient({} as never)).toThrow(new TypeError("baseUrl is required"));
  });
});

describe("a required option that a program in JavaScript leaves out", () => {
  it.each<[string, (...args: never[]) => unknown, unknown[], string]>([
    [
      "redisDriver",
      redisDriver,
      [],
      "redisDriver got neither client nor send: expected { client } with a client of redis",
    ],
    [
      "redisDriver",
      redisDriver,
      [null],
      "redisDriver got neither client nor send: expected { client } with a client of redis",
    ],
    ["postgresDriver", postgresDriver, [], "the client of PostgreSQL is of no known shape"],
    ["terminalLogin", terminalLogin, [], "terminalLogin requires say, of type function"],
    ["terminalLogin", terminalLogin, [null], "terminalLogin requires say, of type function"],
    ["terminalLogin", terminalLogin, [{ env: {} }], "terminalLogin requires say, of type function"],
    ["terminalLogin", terminalLogin, [{ say: () => {} }], "terminalLogin requires env, of type object"],
    ["terminalLogin", terminalLogin, [{ say: () => {}, env: null }], "terminalLogin requires env, of type object"],
    ["fileStore", fileStore, [], "fileStore requires folder, of type string"],
    ["fileStore", fileStore, [7], "fileStore requires folder, of type string"],
    ["keyringStore", keyringStore, [], "keyringStore requires folder, of type string"],
    ["startSandbox", startSandbox, [null], "startSandbox requires options, of type object"],
  ])("is named by %s", async (_name, call, args, message) => {
    const thrown = await Promise.resolve()
      .then(() => call(...(args as never[])))
      .catch((error: unknown) => error);
    expect(thrown).toMatchObject({ code: "usage", message: expect.stringContaining(message) });
  });
});

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
    ["of a store over a driver", () => grantStore(driver, misspelt({ sael: "none" })), /did you mean seal\?/],
    [
      "of its cache",
      () => grantStore(driver, misspelt({ seal: "none", near: { ttlMs: 1, max: 1 } })),
      /near has no option "max"; did you mean maxEntries\?/,
    ],
    ["of a store in files", () => fileStore("/x", misspelt({ onEmpty: 1 })), /did you mean onEmptyFile\?/],
    ["of a store with a keychain", () => keyringStore("/x", misspelt({ falback: "file" })), /did you mean fallback\?/],
    ["of the driver in memory", () => memoryDriver(misspelt({ clok: 1 })), /did you mean clock\?/],
    [
      "of the driver for Redis",
      () => redisDriver({ send: async () => null } as never, misspelt({ prefx: "a" })),
      /did you mean prefix\?/,
    ],
    [
      "of its wait",
      () => redisDriver({ send: async () => null } as never, misspelt({ wait: { replica: 1, timeoutMs: 1 } })),
      /did you mean replicas\?/,
    ],
    [
      "of the driver for PostgreSQL",
      () => postgresDriver({ query: async () => ({ rows: [] }) }, misspelt({ tabel: "a" })),
      /did you mean table\?/,
    ],
    ["of its SQL", () => storeSql(misspelt({ tables: "a" })), /did you mean table\?/],
    ["of a key ring", () => keyRing(misspelt({ curent: "a" })), /did you mean current\?/],
    ["of an envelope", () => envelope(misspelt({ rap: 1 })), /did you mean wrap\?/],
    ["of reseal", () => reseal(driver, RING, misspelt({ onUnuseable: 1 })), /did you mean onUnusable\?/],
    ["of a broker", () => createBroker(agent, POLICY, misspelt({ onrequest: 1 })), /did you mean onRequest\?/],
    ["of its listeners", () => listen(createBroker(agent, POLICY), misspelt({ socket: {} })), /did you mean sockets\?/],
    [
      "of the pages of a login",
      () => loginHandlers(misspelt({ agent: () => agent, redirectUrl: "x" })),
      /did you mean redirectUri\?/,
    ],
    [
      "of these pages for Express",
      () => loginMiddlewares(misspelt({ agent: () => agent, server: [] })),
      /did you mean servers\?/,
    ],
    ["of instrument", () => instrument(misspelt({ meter: 1 })), /did you mean meterProvider\?/],
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
