import { nodeNetwork } from "../../../src/http/node/network.js";
import { ALL_METADATA, type HostileCase, UP_TO_CHALLENGE, UP_TO_RESOURCE, WHOLE_LOGIN } from "../case.js";
import { readPage } from "../kit/user.js";

const RULE = "(RFC 9728 section 7.7)";

/** A public server that names an issuer at a less public address. */
function lessPublicIssuer(id: string, host: string, over: Partial<HostileCase> = {}): HostileCase {
  return {
    id,
    input: `a public MCP server that names an issuer at ${host}`,
    result: "refused before a connection; the error names the flag that allows it",
    outcome: "refused",
    code: "bad_address",
    world: "public",
    arrange({ mcp }) {
      mcp.metadata["authorization_servers"] = [`https://${host}/pool`];
    },
    says: ["authorization_servers", `"https://${host}/pool"`, RULE, "--allow-private-network"],
    requests: UP_TO_RESOURCE,
    ...over,
  };
}

const PRIVATE = [
  "10.0.0.1",
  "172.16.0.1",
  "192.168.1.1",
  "127.0.0.1",
  "127.1",
  "2130706433",
  "0x7f000001",
  "0177.0.0.1",
  "localhost",
  "LOCALHOST.",
  "a.localhost",
  "[::1]",
  "[fc00::1]",
  "100.64.0.1",
  "198.18.0.1",
  "[::ffff:10.0.0.1]",
  "[::ffff:7f00:1]",
  "[64:ff9b::a00:1]",
  "[2002:a00:1::]",
  "%31%30.0.0.1",
];

const METADATA = [
  "169.254.169.254",
  "0xA9FEA9FE",
  "2852039166",
  "0251.0376.0251.0376",
  "169.254.43518",
  "[::ffff:a9fe:a9fe]",
  "[fd00:ec2::254]",
  "[fe80::1]",
  "metadata.google.internal",
  "metadata.google.internal.",
  "100.100.100.200",
  "168.63.129.16",
  "0.0.0.0",
  "[::]",
  "255.255.255.255",
  "224.0.0.1",
];

const literals: HostileCase[] = [
  ...PRIVATE.map((host, nth) => lessPublicIssuer(`D5-${nth + 1}`, host)),
  ...METADATA.map((host, nth) =>
    lessPublicIssuer(`D6-${nth + 1}`, host, {
      input: `a public MCP server that names an issuer at ${host}, with --allow-private-network`,
      result: "refused even so, before a connection",
      flags: ["--allow-private-network"],
      says: ["authorization_servers", RULE],
    }),
  ),
  lessPublicIssuer("D5-allowed", "10.0.0.1", {
    input: "a public MCP server that names an issuer at 10.0.0.1, with --allow-private-network",
    result: "requested, as the flag allows",
    flags: ["--allow-private-network"],
    outcome: "unavailable",
    code: undefined,
    retries: false,
    says: [],
    requests: [...UP_TO_RESOURCE, "proxy CONNECT 10.0.0.1:443"],
  }),
];

const ENDPOINTS = [
  "authorization",
  "token",
  "registration",
  "introspection",
  "revocation",
  "end_session",
  "device_authorization",
];

/** Attacks that need a public server. */
const open: HostileCase[] = [
  ...[...ENDPOINTS.map((name) => `${name}_endpoint`), "jwks_uri"].map(
    (name): HostileCase => ({
      id: `D5-${name}`,
      input: `a public issuer whose ${name} is at 192.168.0.1`,
      result: "refused before a registration",
      outcome: "refused",
      code: "bad_address",
      world: "public",
      arrange({ as }) {
        as.metadata[name] = "https://192.168.0.1/x";
      },
      says: [name, '"https://192.168.0.1/x"', RULE, "--allow-private-network"],
      requests: ALL_METADATA,
    }),
  ),
  {
    id: "D10",
    input: "a public MCP server with a public issuer, through a proxy and a private certificate authority",
    result: "logged in",
    outcome: "ok",
    world: "public",
    user: async (url, kit) => {
      kit.pages.push(await readPage(kit.as.callbackTo({ url: url.pathname + url.search })));
    },
    requests: WHOLE_LOGIN.filter((one) => one !== "as GET /pool/authorize"),
  },
  {
    id: "D8e",
    input: "resource metadata that redirects from https: to http: on the same host",
    result: "not followed",
    outcome: "refused",
    code: "redirect_refused",
    world: "public",
    arrange({ mcp }) {
      mcp.routes["/.well-known/oauth-protected-resource/mcp"] = {
        status: 302,
        headers: { location: "http://mcp.test/x" },
      };
    },
    requests: UP_TO_RESOURCE,
  },
  {
    id: "D8f",
    input: "resource metadata that redirects to a metadata address",
    result: "not followed",
    outcome: "refused",
    code: "redirect_refused",
    world: "public",
    arrange({ mcp }) {
      mcp.routes["/.well-known/oauth-protected-resource/mcp"] = {
        status: 302,
        headers: { location: "https://169.254.169.254/latest" },
      };
    },
    requests: UP_TO_RESOURCE,
  },
  {
    id: "D3c",
    input: "resource_metadata at 10.0.0.1, with --allow-cross-origin-metadata",
    result: "refused: the flag does not disable the other check",
    outcome: "refused",
    code: "bad_address",
    world: "public",
    flags: ["--allow-cross-origin-metadata"],
    arrange({ mcp }) {
      mcp.challenge = 'Bearer resource_metadata="https://10.0.0.1/x"';
    },
    says: ["resource_metadata", RULE, "--allow-private-network"],
    requests: UP_TO_CHALLENGE,
  },
  {
    id: "D16a",
    input: "a certificate of an untrusted authority",
    result: "refused before a request",
    outcome: "unavailable",
    code: "tls_failed",
    world: "public",
    retries: false,
    arrange: (kit) => void kit.flags.splice(kit.flags.indexOf("--ca-file"), 2),
    requests: [],
  },
  {
    id: "D16b",
    input: "the same with NODE_TLS_REJECT_UNAUTHORIZED=0",
    result: "refused even so",
    outcome: "refused",
    world: "public",
    retries: false,
    environment: { NODE_TLS_REJECT_UNAUTHORIZED: "0" },
    arrange: (kit) => void kit.flags.splice(kit.flags.indexOf("--ca-file"), 2),
    says: ["NODE_TLS_REJECT_UNAUTHORIZED"],
    requests: [],
  },
  {
    id: "D16c",
    input: "an issuer with the certificate of another host",
    result: "refused before a request to it",
    outcome: "unavailable",
    code: "tls_failed",
    world: "public",
    retries: false,
    arrange({ mcp }) {
      mcp.metadata["authorization_servers"] = ["https://wrong.test/pool"];
    },
    requests: UP_TO_RESOURCE,
  },
  {
    id: "E3c",
    input: "a proxy that answers 407",
    result: "an error that names the status; no request reaches a server",
    outcome: "unavailable",
    world: "public",
    retries: false,
    arrange: (kit) => {
      kit.elsewhere.tunnels = "407 Proxy Authentication Required";
      kit.flags.splice(0, 2, "--proxy", kit.elsewhere.origin);
    },
    says: ["407"],
    requests: ["elsewhere CONNECTION", "elsewhere CONNECT mcp.test:443"],
  },
  {
    id: "D6-typed",
    input: "a user who types a metadata address",
    result: "refused before a request",
    outcome: "refused",
    command: () => ["login", "https://169.254.169.254/mcp"],
    cliOnly: true,
    requests: [],
  },
];

/** Names with a simulated DNS answer: library only, since a command uses the resolver of the machine. */
const names: HostileCase[] = [
  {
    id: "D7a",
    input: "a name with a public address and one of this machine",
    result: "refused before a connection",
    outcome: "refused",
    code: "bad_address",
    call: ({ elsewhere }) => {
      const lookup = async () => [
        { address: "93.184.216.34", family: 4 },
        { address: "127.0.0.1", family: 4 },
      ];
      return nodeNetwork({ lookup })
        .connectTo(new URL("https://mcp.test"), new Set())
        .fetch(`https://mcp.test:${elsewhere.port}/mcp`);
    },
    says: ['"mcp.test"', '"127.0.0.1"', RULE],
    requests: [],
  },
  {
    id: "D7b",
    input: "a name that is public when it is checked, and this machine when it is connected to (DNS rebinding)",
    result: "refused before a connection",
    outcome: "refused",
    code: "bad_address",
    async call({ elsewhere }) {
      let requested = 0;
      const lookup = async () => [{ address: requested++ === 0 ? "93.184.216.34" : "127.0.0.1", family: 4 }];
      const connection = nodeNetwork({ lookup }).connectTo(new URL("https://mcp.test"), new Set());
      await connection.addressClass();
      return connection.fetch(`https://mcp.test:${elsewhere.port}/mcp`);
    },
    says: ['"mcp.test"', '"127.0.0.1"'],
    requests: [],
  },
  {
    id: "D7c",
    input: "the name of an issuer that resolves to a metadata address",
    result: "refused before a connection",
    outcome: "refused",
    code: "bad_address",
    async call() {
      const lookup = async () => [{ address: "169.254.169.254", family: 4 }];
      return nodeNetwork({ lookup }).connectTo(new URL("http://127.0.0.1"), "all").fetch("https://as.test/x");
    },
    says: ['"as.test"', '"169.254.169.254"', RULE],
    requests: [],
  },
  {
    id: "D7d",
    input: "localhost that resolves to a public address",
    result: "refused: the name is reserved for this machine",
    outcome: "refused",
    code: "bad_address",
    async call() {
      const lookup = async () => [{ address: "93.184.216.34", family: 4 }];
      return nodeNetwork({ lookup }).connectTo(new URL("http://localhost"), new Set()).fetch("http://localhost/x");
    },
    says: ['"localhost"', '"93.184.216.34"'],
    requests: [],
  },
  {
    id: "F2",
    input: "100 callers in one process that request a new token at the same time",
    result: "one token request; all callers get the same token",
    outcome: "ok",
    async call(kit) {
      const { AgentClient } = await import("../../../src/oauth/agent.js");
      const { fileStore } = await import("../../../src/store/file/file.js");
      await kit.saveLogin({}, { expiresAt: Date.now() - 1000, obtainedAt: Date.now() - 3_600_000 });
      const agent = new AgentClient({ store: fileStore(kit.home) });
      const tokens = await Promise.all(Array.from({ length: 100 }, () => agent.token(kit.mcp.url)));
      if (new Set(tokens.map(({ value }) => value)).size !== 1) throw new Error("the tokens differ");
    },
    requests: ["as POST /pool/token"],
    times: { "as POST /pool/token": 1 },
  },
];

/** Addresses that a server names, by IP address and by host name. */
export const addresses: readonly HostileCase[] = [...literals, ...open, ...names];
