import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { HttpHandler } from "msw";
import type { Interceptor } from "nock";
import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { nodeNetwork } from "../../../src/http/node/network.js";
import { AgentClient } from "../../../src/oauth/agent.js";
import {
  createAgentClient,
  createManagementClient,
  type ProfileManagementOptions,
} from "../../../src/profile/clients.js";
import { memoryStore } from "../../../src/store/memory.js";
import { temporaryFolder } from "../../helpers/folder.js";
import { labPackage, sayWithoutLab } from "../../helpers/lab.js";
import { sendJson, startServer } from "../../helpers/server.js";

const API = "https://agentauth.example";
const MCP = "https://mcp.example";
const ISSUER = "https://issuer.example";

/** What is used of undici. */
interface Undici {
  MockAgent: new () => {
    disableNetConnect(): void;
    get(origin: string): { intercept(options: { path: () => boolean; method: string }): MockedReply };
  };
  getGlobalDispatcher(): object;
  setGlobalDispatcher(dispatcher: object): void;
}
interface MockedReply {
  reply(callback: (request: { path: string; headers?: unknown }) => object): { persist(): void };
}

const undici = await labPackage<Undici>("undici");
sayWithoutLab("the tests with msw 3, nock 15 and the MockAgent of undici");

type Mocked = [status: number, body: object, headers?: Record<string, string>];

/** The answer of the service, of an MCP server and of its issuer. */
function answer(method: string, url: URL, authorization: string | null): Mocked {
  switch (`${method} ${url.origin}${url.pathname}`) {
    case `GET ${API}/api/v1/pool`:
      return [200, page(offsetOf(url))];
    case `POST ${MCP}/mcp`: {
      const metadata = `${MCP}/.well-known/oauth-protected-resource/mcp`;
      if (authorization === "Bearer access-1") return [200, { answered: true }];
      return [401, {}, { "www-authenticate": `Bearer resource_metadata="${metadata}"` }];
    }
    case `GET ${MCP}/.well-known/oauth-protected-resource/mcp`:
      return [200, { resource: `${MCP}/mcp`, authorization_servers: [ISSUER] }];
    case `GET ${ISSUER}/.well-known/oauth-authorization-server`:
      return [200, { issuer: ISSUER, token_endpoint: `${ISSUER}/token`, response_types_supported: ["code"] }];
    case `POST ${ISSUER}/token`:
      return [200, { access_token: "access-1", token_type: "Bearer", expires_in: 3600 }];
    default:
      return [404, {}];
  }
}

const offsetOf = ({ searchParams }: URL) => Number(searchParams.get("pagination[offset]"));

function page(offset: number): object {
  const pools = ["a", "b", "c"].map((id) => ({ id, title: id, type: "pool" }));
  const next_page_offset = offset + 2 < pools.length ? offset + 2 : null;
  const pagination = { item_count: 3, page_offset: offset, page_size: 2, next_page_offset };
  return { status: "success", summaries: pools.slice(offset, offset + 2), pagination };
}

const answerTo = ({ method, url, headers }: Request) => answer(method, new URL(url), headers.get("authorization"));
const NAMED = [API, MCP, ISSUER];

interface Msw3Node {
  setupServer(...handlers: HttpHandler[]): { listen(options: { onUnhandledFrame: string }): void; close(): void };
}

/** Each way to intercept requests answers for the three names, and lets other requests pass. @returns what ends that */
const INTERCEPTORS: Record<string, () => Promise<() => void>> = {
  async "msw 2"() {
    const [msw, { setupServer }] = await Promise.all([import("msw"), import("msw/node")]);
    const server = setupServer(...handlers(msw));
    server.listen({ onUnhandledRequest: "bypass" });
    return () => server.close();
  },
  async "msw 3"() {
    const msw = await labPackage<typeof import("msw")>("msw3");
    const node = await labPackage<Msw3Node>("msw3/node");
    if (msw === undefined || node === undefined) throw new Error("msw 3 is not installed");
    const server = node.setupServer(...handlers(msw));
    server.listen({ onUnhandledFrame: "bypass" });
    return () => server.close();
  },
  async "nock 14"() {
    const { default: nock } = await import("nock");
    return intercepted(nock, (scope) =>
      scope.reply(function (path) {
        const { method, headers } = this.req;
        return answer(method, new URL(path, `https://${headers["host"]}`), headers["authorization"] ?? null);
      }),
    );
  },
  async "nock 15"() {
    const module = await labPackage<{ default: typeof import("nock") }>("nock15");
    if (module === undefined) throw new Error("nock 15 is not installed");
    return intercepted(module.default, (scope) => scope.reply(answerTo as never));
  },
};

function handlers({ http, HttpResponse }: Pick<typeof import("msw"), "http" | "HttpResponse">): HttpHandler[] {
  return NAMED.map((origin) =>
    http.all(`${origin}/*`, ({ request }) => {
      const [status, body, headers = {}] = answerTo(request);
      return HttpResponse.json(body, { status, headers });
    }),
  );
}

function intercepted(nock: typeof import("nock"), reply: (scope: Interceptor) => void): () => void {
  if (!nock.isActive()) nock.activate();
  for (const origin of NAMED) {
    for (const method of ["GET", "POST"]) reply(nock(origin).persist().intercept(/./, method).query(true));
  }
  return () => {
    nock.cleanAll();
    nock.restore();
  };
}

/** The newest ones need a newer Node than this package, and are installed with the lab. */
const [major = 0, minor = 0] = process.versions.node.split(".").map(Number);
const isRecent = major > 22 || (major === 22 && minor >= 20);
const hasNewest = isRecent && undici !== undefined;
const usable = Object.entries(INTERCEPTORS).filter(([name]) => hasNewest || !/ 3$| 15$/.test(name));
if (!isRecent) process.stderr.write("SKIPPED: the tests with msw 3 and nock 15 need Node 22.20\n");

const CLIENT = {
  client: { clientId: "c", clientSecret: "s", issuer: ISSUER },
  grant: { type: "client_credentials" },
} as const;

async function expectList(options: ProfileManagementOptions): Promise<void> {
  const service = createManagementClient({ token: "api-token", maxRetries: 0, ...options });
  const pools = await service.pools.list({ domain_id: "d" }).toArray();
  expect(pools.map(({ id }) => id)).toEqual(["a", "b", "c"]);
}

async function expectToken(agent: AgentClient): Promise<void> {
  expect((await agent.token(`${MCP}/mcp`)).value).toBe("access-1");
  const response = await agent.fetch(`${MCP}/mcp`, { method: "POST", body: "{}" });
  expect([response.status, await response.json()]).toEqual([200, { answered: true }]);
}

beforeEach(() => {
  vi.stubEnv("AGENTAUTH_HOME", temporaryFolder());
  return () => void vi.unstubAllEnvs();
});

describe.each(usable)("requests that %s answers", (_name, intercept) => {
  it("are those of every client of agentauth/node, without a lookup of a name; all others are sent", async () => {
    const server = await startServer((response, { url }) => sendJson(response, page(offsetOf(new URL(url, API)))));
    onTestFinished(await intercept());
    await expectList({ baseUrl: API });
    expect(server.requests).toHaveLength(0);
    await expectList({ baseUrl: server.origin });
    expect(server.requests).toHaveLength(2);
    const lookups: string[] = [];
    const lookup = async (name: string) => {
      lookups.push(name);
      return [];
    };
    await expectToken(new AgentClient({ store: memoryStore(), ...CLIENT, network: nodeNetwork({ lookup }) }));
    expect(lookups).toEqual([]);
  });
});

describe("every request of a client of agentauth/node", () => {
  it("is sent with the fetch that it was given", async () => {
    const sent: string[] = [];
    const record = () => void sent.push("by another way");
    subscribe("agentauth:request:create", record);
    onTestFinished(() => void unsubscribe("agentauth:request:create", record));
    const fetch: typeof globalThis.fetch = async (input, init) => {
      const request = new Request(input, init);
      sent.push(`${request.method} ${new URL(request.url).host}`);
      const [status, body, headers = {}] = answerTo(request);
      return Response.json(body, { status, headers });
    };
    await expectList({ baseUrl: API, fetch });
    await expectToken(createAgentClient({ store: memoryStore(), ...CLIENT, fetch }));
    expect(sent).toEqual([
      ...Array(2).fill("GET agentauth.example"),
      "POST mcp.example",
      "GET mcp.example",
      "GET issuer.example",
      "GET issuer.example",
      "POST issuer.example",
      "POST mcp.example",
    ]);
  });

  it.runIf(undici)("is answered by the MockAgent of undici where that fetch is the global one", async () => {
    if (undici === undefined) throw new Error("undici is not installed");
    const [before, agent] = [undici.getGlobalDispatcher(), new undici.MockAgent()];
    agent.disableNetConnect();
    for (const origin of NAMED) {
      for (const method of ["GET", "POST"]) {
        const reply = ({ path, headers }: { path: string; headers?: unknown }) => {
          const authorization = new Headers(headers as Record<string, string>).get("authorization");
          const [statusCode, data, sent = {}] = answer(method, new URL(path, origin), authorization);
          return { statusCode, data, responseOptions: { headers: { "content-type": "application/json", ...sent } } };
        };
        agent
          .get(origin)
          .intercept({ path: () => true, method })
          .reply(reply)
          .persist();
      }
    }
    undici.setGlobalDispatcher(agent);
    onTestFinished(() => undici.setGlobalDispatcher(before));
    const { fetch } = globalThis;
    await expectList({ baseUrl: API, fetch });
    await expectToken(createAgentClient({ store: memoryStore(), ...CLIENT, fetch }));
  });
});
