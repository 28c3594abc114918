import type { Reply, Seen } from "../../helpers/peer.js";
import { type HostileCase, unless } from "../case.js";
import type { Kit } from "../kit/kit.js";

/** What is between a client and an MCP server that works: mounts, balancers, firewalls, and gateways that log users in. */
const MCP = "/mcp";
const TOKEN = "/pool/token";

/** The result of a request of MCP, from a server without sessions that speaks no newer revision. */
function resultOf({ body }: Seen, headers: Record<string, string | string[]> = {}): Reply {
  const { id, method, params } = JSON.parse(body || "{}");
  const tools = [{ name: "echo", description: "d", inputSchema: { type: "object" } }];
  const results: Record<string, unknown> = {
    initialize: {
      protocolVersion: params?.protocolVersion,
      capabilities: { tools: {} },
      serverInfo: { name: "s", version: "1" },
    },
    "tools/list": { tools },
  };
  if (id === undefined) return { status: 202, headers, text: "" };
  const result = results[method];
  const error = { code: -32_601, message: "Method not found" };
  return { headers, json: { jsonrpc: "2.0", id, ...(result ? { result } : { error }) } };
}

/** Makes the MCP server one that works, with a token. */
function serve({ mcp }: Kit, answer: (request: Seen) => Reply = resultOf, path = MCP): void {
  mcp.routes[path] = (request) => (request.headers.authorization ? answer(request) : mcp.refusal());
}

const listTools = ({ mcp }: Kit) => ["mcp", "tools", mcp.url, "-o", "id"];
const login = (kit: Kit) => kit.run(["login", kit.mcp.url, "--browser", "none"]);
const wasToldTools = (run: { stdout: string } | undefined) => ({ "the tools are listed": run?.stdout === "echo\n" });
/** Logs in, then lists the tools. */
const loginAndList = async (kit: Kit) => {
  const first = await login(kit);
  return first.code === 0 ? kit.run(listTools(kit)) : first;
};

/** A mount: `/mcp` redirects to `/mcp/`. */
function mount(kit: Kit, status = 307): void {
  serve(kit, resultOf, `${MCP}/`);
  kit.mcp.routes[MCP] = { status, headers: { location: `${MCP}/` }, text: "" };
}

const redirects: HostileCase[] = [
  {
    id: "V1a",
    input: "307 to every request to /mcp, to /mcp/ on the same origin",
    result: "followed with the token, by the first request too; the address that the user gave stays the resource",
    outcome: "ok",
    arrange: (kit) => mount(kit),
    drive: loginAndList,
    check: ({ mcp, as }, run) =>
      unless({
        ...wasToldTools(run),
        "the first request follows it": mcp.to(`${MCP}/`)[0]?.headers.authorization === undefined,
        "the resource is what the user gave": as.form(TOKEN).get("resource") === mcp.url,
      }),
  },
  {
    id: "V1b",
    input: "302 to every request with a body, to /mcp/ on the same origin",
    result: "a refusal that says where to",
    outcome: "refused",
    cliOnly: true,
    async arrange(kit) {
      await kit.saveLogin();
      mount(kit, 302);
    },
    command: listTools,
    says: ({ mcp }) => [`redirects a POST request to "${mcp.url}/"`],
    times: { "mcp POST /mcp/": 0 },
  },
  {
    id: "V1c",
    input: "307 to another host, to a request without a token",
    result: "a refusal that says where to; nothing is sent there",
    outcome: "refused",
    code: "no_resource_metadata",
    arrange({ mcp, elsewhere }) {
      delete mcp.routes[mcp.wellKnown];
      mcp.routes[MCP] = { status: 307, headers: { location: `${elsewhere.origin}/mcp` }, text: "" };
    },
    says: ({ elsewhere }) => [`to "${elsewhere.origin}"`],
  },
  {
    id: "V1d",
    input: "302 to a login page of another host, from a server of 2025-03-26 that is its own issuer",
    result: "a refusal that says where to and names --legacy-discovery, with which the login works",
    outcome: "ok",
    cliOnly: true,
    arrange({ mcp, as, elsewhere }) {
      delete mcp.routes[mcp.wellKnown];
      mcp.routes["/.well-known/oauth-authorization-server"] = () => ({ json: { ...as.metadata, issuer: mcp.origin } });
      as.callback["iss"] = mcp.origin;
      const page = { status: 302, headers: { location: `${elsewhere.origin}/sso` }, text: "" };
      mcp.routes[MCP] = (request) => (request.headers.authorization ? resultOf(request) : page);
    },
    async drive(kit) {
      const { stderr } = await login(kit);
      const isNamed = stderr.includes(`to "${kit.elsewhere.origin}"`) && stderr.includes("--legacy-discovery");
      return isNamed ? kit.run(["login", kit.mcp.url, "--browser", "none", "--legacy-discovery"]) : login(kit);
    },
  },
];

/** Two nodes behind a balancer with a cookie: a session is known to one of them alone. */
function balance(kit: Kit): void {
  let turn = 0;
  let home: string | undefined;
  serve(kit, (request) => {
    const node = /AWSALB=(\d)/.exec(request.headers.cookie ?? "")?.[1] ?? String(turn++ % 2);
    const headers = { "set-cookie": [`AWSALB=${node}; Path=/`, "seen=canary; Max-Age=0"] };
    if (request.body.includes('"initialize"')) home = node;
    if (!request.headers["mcp-session-id"] && !request.body.includes('"initialize"')) return resultOf(request, headers);
    if (home === node) return resultOf(request, { ...headers, "mcp-session-id": "session-1" });
    const error = { code: -32_001, message: "Session not found" };
    return { status: 404, headers, json: { jsonrpc: "2.0", id: null, error } };
  });
}

const balancers: HostileCase[] = [
  {
    id: "V2",
    input: "a cookie of a balancer, whose nodes share no sessions",
    result: "sent to that origin, in memory alone",
    outcome: "ok",
    cliOnly: true,
    async arrange(kit) {
      await kit.saveLogin();
      balance(kit);
    },
    command: listTools,
    store: "same",
    check: ({ mcp }, run) =>
      unless({
        ...wasToldTools(run),
        "a cookie that has ended is not sent": mcp.to(MCP).every(({ headers }) => !headers.cookie?.includes("seen")),
        "it is not reported": !run?.stderr.includes("AWSALB"),
      }),
    flags: ["--debug"],
  },
];

const firewalls: HostileCase[] = [
  {
    id: "V4",
    input: "403 to each request without a User-Agent",
    result: "every request has one",
    outcome: "ok",
    arrange: (kit) => {
      serve(kit);
      for (const { routes } of [kit.mcp, kit.as]) {
        for (const [path, route] of Object.entries(routes)) {
          if (path.endsWith("/authorize")) continue;
          routes[path] = (request, nth) => {
            if (!request.headers["user-agent"])
              return { status: 403, headers: { "content-type": "text/html" }, text: "no" };
            return typeof route === "function" ? route(request, nth) : route;
          };
        }
      }
    },
    drive: loginAndList,
    check: (_kit, run) => unless(wasToldTools(run)),
  },
];

const gateways: HostileCase[] = [
  {
    id: "V5",
    input: "a redirect to a login page, whose challenge of another scheme names the resource metadata",
    result: "the metadata are read, and the login works",
    outcome: "ok",
    arrange({ mcp, elsewhere }) {
      const named = "/.well-known/access/mcp";
      delete mcp.routes[mcp.wellKnown];
      mcp.routes[named] = () => ({ json: mcp.metadata });
      const headers = {
        location: `${elsewhere.origin}/login`,
        "www-authenticate": `Cloudflare-Access resource_metadata="${mcp.origin}${named}"`,
      };
      mcp.routes[MCP] = (request) =>
        request.headers.authorization ? resultOf(request) : { status: 302, headers, text: "" };
    },
    drive: loginAndList,
    check: (_kit, run) => unless(wasToldTools(run)),
  },
  {
    id: "V9",
    input: "JSON that is no metadata where the server would publish its own, which no challenge names",
    result: "the next place is tried",
    outcome: "ok",
    arrange({ mcp }) {
      mcp.challenge = "Bearer";
      mcp.routes[mcp.wellKnown] = { json: { status: "healthy" } };
      mcp.routes["/.well-known/oauth-protected-resource"] = () => ({ json: { ...mcp.metadata, resource: mcp.origin } });
    },
  },
];

const WORDS = "Bad credentials";
/** Errors that are not of OAuth, from the endpoints of an issuer: the sentence is shown, and is no code of ours. */
const otherErrors: HostileCase[] = (
  [
    ["a list with a message", 401, [{ message: WORDS }]],
    ["a detail that is a list, as of FastAPI", 422, { detail: [{ loc: ["body"], msg: WORDS, type: "missing" }] }],
    ["a list of errors", 503, { errors: [{ message: WORDS }] }],
    ["an error that is an object", 400, { error: { code: 7, message: WORDS } }],
    ["a sentence in place of the code", 400, { error: WORDS }],
    ["plain text", 500, WORDS],
  ] as const
).flatMap(([what, status, body], nth) =>
  ["token", "register"].map((endpoint, at) => ({
    id: `V8${"abcdef"[nth]}${at}`,
    input: `HTTP ${status} with ${what}, from the ${endpoint} endpoint`,
    result: "an error with the sentence of the server",
    outcome: status >= 500 ? ("unavailable" as const) : ("remote" as const),
    inLibrary: ["unavailable", "remote", "auth"] as const,
    store: "any" as const,
    retries: false,
    arrange({ as }: Kit) {
      const text = typeof body === "string";
      const route = text ? { headers: { "content-type": "text/plain" }, text: body } : { json: body };
      as.routes[`/pool/${endpoint}`] = { status, ...route };
    },
    says: [WORDS],
  })),
);

const sessions: HostileCase[] = [
  {
    id: "V6",
    input: "a session that the server holds to the token that it began with, refused with 403 after a refresh",
    result: "a new session, once",
    outcome: "ok",
    cliOnly: true,
    store: "any",
    async arrange(kit) {
      await kit.saveLogin();
      kit.as.routes[TOKEN] = { json: { access_token: "refreshed-token", token_type: "Bearer", expires_in: 3600 } };
      let expired: string | undefined;
      let owner: string | undefined;
      serve(kit, (request) => {
        const { authorization } = request.headers;
        if (request.body.includes('"initialize"')) {
          owner = authorization;
          return resultOf(request, { "mcp-session-id": "session-1" });
        }
        if (request.body.includes("tools/list")) expired ??= authorization;
        if (authorization === expired) return kit.mcp.refusal();
        const isOwn = request.headers["mcp-session-id"] === undefined || authorization === owner;
        return isOwn ? resultOf(request) : { status: 403, text: "not of this session" };
      });
    },
    command: listTools,
    times: { [`as POST ${TOKEN}`]: 1 },
    check: ({ mcp }, run) =>
      unless({
        ...wasToldTools(run),
        "two sessions began": mcp.to(MCP).filter(({ body }) => body.includes('"initialize"')).length === 2,
      }),
  },
];

export const road: readonly HostileCase[] = [
  ...redirects,
  ...balancers,
  ...firewalls,
  ...gateways,
  ...sessions,
  ...otherErrors,
];
