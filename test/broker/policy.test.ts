import { describe, expect, it } from "vitest";
import { checkPolicy, listenAddress } from "../../src/broker/policy.js";

const mcp = { server: "https://mcp.example/mcp" };
const job = { listen: "unix:/run/a.sock" };
const grants = { mcp };
const clients = { job };
const ofGrant = (more: object) => ({ grants: { mcp: { ...mcp, ...more } }, clients });
const ofClient = (more: object) => ({ grants, clients: { job: { ...job, ...more } } });

describe("a policy", () => {
  it.each<[string, object]>([
    ["the least that one has", { grants, clients }],
    ["the address of a schema", { $schema: "https://a.example/schema.json", grants, clients }],
    [
      "every field of a grant",
      ofGrant({
        account: "alice",
        scope: "read write",
        methods: ["GET", "POST"],
        paths: ["/", "/files"],
        headers: ["X-Api-Version", "tracestate"],
        tools: ["read_*"],
        hideTools: ["read_secret"],
        requestsPerMinute: 1,
        until: "2030-12-31T23:59:59.5+01:00",
      }),
    ],
    ["every field of a client", ofClient({ grants: ["mcp"] })],
    ["a server on this machine", ofGrant({ server: "http://127.0.0.1:8080/mcp" })],
    ["a port of this machine", ofClient({ listen: "127.0.0.1:0" })],
    ["a port of IPv6", ofClient({ listen: "[::1]:65535" })],
    ["a socket of the parent", ofClient({ listen: "systemd:agent" })],
    ["a pipe of Windows", ofClient({ listen: "pipe:agent" })],
    ["a name of 64 characters", { grants: { [`0${"_-a".repeat(21)}`]: mcp }, clients }],
  ])("may have %s", (_what, policy) => {
    const { $schema: _, ...read }: { $schema?: string } = policy;
    expect(checkPolicy(policy, "x")).toEqual(read);
  });

  it.each<[unknown, string]>([
    [[], "the policy is not an object"],
    [{ clients }, "grants is not an object"],
    [{ grants }, "clients is not an object"],
    [{ grants: {}, clients }, "grants is empty"],
    [{ grants, clients: {} }, "clients is empty"],
    [
      { grants, clients, grant: {} },
      'the policy has the unknown field "grant"; its fields are $schema, grants, clients',
    ],
    [{ $schema: 1, grants, clients }, "the policy.$schema 1 is not a text"],
    [{ grants: { mcp: [] }, clients }, "grants.mcp is not an object"],
    [{ grants: { mcp: {} }, clients }, "grants.mcp has no server"],
    [ofGrant({ constructor: 1 }), 'grants.mcp has the unknown field "constructor"; its fields are server, account'],
    [ofGrant({ server: 1 }), "grants.mcp.server 1 is not a URL"],
    [ofGrant({ server: "mcp.example" }), 'grants.mcp.server "mcp.example" is not a URL'],
    [ofGrant({ server: "http://mcp.example/" }), 'server "http://mcp.example/" does not begin with https://'],
    [ofGrant({ server: "ftp://127.0.0.1/" }), 'server "ftp://127.0.0.1/" does not begin with https://'],
    [ofGrant({ server: "https://a@mcp.example/" }), "has credentials"],
    [ofGrant({ server: "https://:b@mcp.example/" }), "has credentials"],
    [ofGrant({ server: "https://mcp.example/#a" }), "has a fragment"],
    [ofGrant({ account: "" }), 'grants.mcp.account "" is not a text'],
    [ofGrant({ scope: ["read"] }), 'grants.mcp.scope ["read"] is not a text'],
    [ofGrant({ methods: "GET" }), 'methods "GET" is not a list of HTTP methods such as "POST"'],
    [ofGrant({ methods: [] }), "methods [] is not a list"],
    [ofGrant({ methods: ["GET", "CONNECT"] }), 'methods ["GET","CONNECT"] is not a list'],
    [ofGrant({ methods: ["get"] }), 'methods ["get"] is not a list'],
    [ofGrant({ methods: [7] }), "methods [7] is not a list"],
    [ofGrant({ paths: ["files"] }), 'paths ["files"] is not a list of paths that begin with "/"'],
    [ofGrant({ paths: ["/a?b"] }), 'paths ["/a?b"] is not a list'],
    ...[
      "",
      "a b",
      "Authorization",
      "dpop",
      "Host",
      "transfer-encoding",
      "range",
      "If-Range",
      "mcp-name",
      "Mcp-Param-X",
    ].map((header): [unknown, string] => [
      ofGrant({ headers: [header] }),
      `headers ["${header}"] is not a list of headers that`,
    ]),
    [ofGrant({ tools: [""] }), 'tools [""] is not a list of globs such as "read_*"'],
    [ofGrant({ hideTools: [""] }), 'hideTools [""] is not a list of globs such as "delete_*"'],
    [ofGrant({ requestsPerMinute: 0 }), "requestsPerMinute 0 is not a whole number of at least 1"],
    [ofGrant({ requestsPerMinute: 1.5 }), "requestsPerMinute 1.5 is not a whole number"],
    [ofGrant({ until: "tomorrow" }), 'until "tomorrow" is not a time such as 2026-12-31T23:59:59Z'],
    [ofGrant({ until: "2030-13-31T23:59:59Z" }), 'until "2030-13-31T23:59:59Z" is not a time'],
    [ofGrant({ until: "x 2030-12-31T23:59:59Z" }), "is not a time"],
    [ofGrant({ until: 2030 }), "until 2030 is not a time"],
    [{ grants, clients: { job: {} } }, "clients.job has no listen"],
    [ofClient({ listen: 80 }), "clients.job.listen 80 is not a text"],
    [
      ofClient({ listen: "localhost:80" }),
      'listen "localhost:80" is none of unix:<path>, systemd:<name> and 127.0.0.1:<port>',
    ],
    [ofClient({ listen: "127.0.0.1:65536" }), "is none of unix:<path>"],
    [ofClient({ listen: "x127.0.0.1:80" }), "is none of unix:<path>"],
    [ofClient({ listen: "0.0.0.0:80" }), 'listen "0.0.0.0:80" is not an address of this machine alone'],
    [ofClient({ listen: "[::]:80" }), "is not an address of this machine alone"],
    [ofClient({ grants: [""] }), 'grants [""] is not a list of names'],
    [ofClient({ grants: ["x"] }), 'clients.job.grants names "x", which is not in grants'],
    [ofClient({ grants: ["toString"] }), 'clients.job.grants names "toString", which is not in grants'],
    ...["../x", "A", "_a", "a".repeat(65), ""].flatMap((name): [unknown, string][] => [
      [{ grants: { [name]: mcp }, clients }, `grants has the name "${name.slice(0, 9)}`],
      [{ grants, clients: { [name]: job } }, `clients has the name "${name.slice(0, 9)}`],
    ]),
  ])("%j is wrong: %s", (policy, message) => {
    expect(() => checkPolicy(policy, "broker.json")).toThrow(
      expect.objectContaining({ code: "usage", class: "usage", message: expect.stringContaining(message) }),
    );
    expect(() => checkPolicy(policy, "broker.json")).toThrow(/^broker\.json: /);
  });
});

it.each([
  ["unix:/run/a.sock", { path: "/run/a.sock" }],
  ["pipe:agent", { path: "\\\\.\\pipe\\agent" }],
  ["127.0.0.1:80", { host: "127.0.0.1", port: 80 }],
  ["[::1]:80", { host: "::1", port: 80 }],
  ["systemd:agent", { inherited: "agent" }],
  ["systemd:", undefined],
  ["systemd:a/b", undefined],
  ["unix:", undefined],
])("the address %s is read", (text, address) => {
  expect(listenAddress(text)).toEqual(address);
});
