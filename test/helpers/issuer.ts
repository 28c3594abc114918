import type { ServerResponse } from "node:http";
import { AgentClient, type AgentClientOptions } from "../../src/oauth/agent.js";
import type { ServerMetadata } from "../../src/oauth/discovery/types.js";
import { memoryStore } from "../../src/store/memory.js";
import { FakeClock } from "./clock.js";
import { TestLogin } from "./login.js";
import { type SeenRequest, sendJson, startServer, type TestServer } from "./server.js";

/** What a route answers: JSON unless there is a text; `raw` writes the answer itself, or never does. */
export interface Reply {
  status?: number;
  headers?: Record<string, string | string[]>;
  json?: unknown;
  text?: string;
  raw?: (response: ServerResponse) => unknown;
}

/** Makes the answer to one request; `nth` counts the requests of this path from 1. */
export type Route = (request: SeenRequest, nth: number) => Reply | Promise<Reply>;

/** A loopback server whose every answer a test can replace; what has no route is 404. */
class Peer {
  readonly routes: Record<string, Reply | Route> = {};
  readonly name: string;
  /** Every request to any peer that shares it. */
  readonly log: string[];
  #server: TestServer | undefined;

  constructor(name: string, log: string[]) {
    this.name = name;
    this.log = log;
  }

  async start(): Promise<this> {
    this.#server = await startServer(async (response, request) => {
      const path = pathOf(request);
      this.log.push(`${this.name} ${request.method} ${path}`);
      const route = this.routes[path] ?? { status: 404, text: "nothing here" };
      write(response, typeof route === "function" ? await route(request, this.to(path).length) : route);
    });
    return this;
  }

  get origin(): string {
    return this.#started().origin;
  }

  get requests(): readonly SeenRequest[] {
    return this.#started().requests;
  }

  /** The requests that came for a path. */
  to(path: string): SeenRequest[] {
    return this.requests.filter((request) => pathOf(request) === path);
  }

  /** The form that the n-th request for a path brought, from 0. */
  form(path: string, nth = 0): URLSearchParams {
    return new URLSearchParams(this.to(path)[nth]?.body);
  }

  #started(): TestServer {
    if (!this.#server) throw new Error("not started");
    return this.#server;
  }
}

function pathOf({ url }: SeenRequest): string {
  return url.split("?")[0] ?? url;
}

function write(response: ServerResponse, { status = 200, headers = {}, json, text, raw }: Reply): void {
  if (raw) void raw(response);
  else if (text === undefined && json !== undefined) sendJson(response, json, status, headers);
  else response.writeHead(status, headers).end(text ?? "");
}

/** An authorization server that says yes to everything at once. */
export class TestIssuer extends Peer {
  /** The metadata document; a test changes it as it likes. */
  metadata: Record<string, unknown> = {};
  /** Members that replace those of every token answer. */
  tokenAnswer: Record<string, unknown> = {};
  /** Members that replace those of every registration answer. */
  registrationAnswer: Record<string, unknown> = {};

  /** The pool's path, such as `/pool`; "" for an issuer without one. */
  readonly path: string;

  constructor(name: string, log: string[], path: string) {
    super(name, log);
    this.path = path;
  }

  get issuer(): string {
    return `${this.origin}${this.path}`;
  }

  override async start(): Promise<this> {
    await super.start();
    const { issuer, path } = this;
    this.metadata = {
      issuer,
      authorization_endpoint: `${issuer}/authorize`,
      token_endpoint: `${issuer}/token`,
      registration_endpoint: `${issuer}/register`,
      introspection_endpoint: `${issuer}/introspect`,
      revocation_endpoint: `${issuer}/revoke`,
      end_session_endpoint: `${issuer}/end_session`,
      device_authorization_endpoint: `${issuer}/device`,
      jwks_uri: `${issuer}/jwks`,
      code_challenge_methods_supported: ["S256"],
      response_types_supported: ["code"],
      grant_types_supported: ["authorization_code", "refresh_token"],
      scopes_supported: [],
    };
    this.routes[`${path}/.well-known/oauth-authorization-server`] = () => ({ json: this.metadata });
    this.routes[`${path}/register`] = (request, nth) => this.#register(request, nth);
    this.routes[`${path}/authorize`] = (request, nth) => this.#authorize(request, nth);
    this.routes[`${path}/token`] = (_request, nth) => ({ json: this.tokens(nth) });
    this.routes[`${path}/introspect`] = { json: { active: true, scope: "tools" } };
    this.routes[`${path}/revoke`] = { status: 200, text: "" };
    this.routes[`${path}/end_session`] = { status: 200, text: "" };
    this.routes[`${path}/device`] = {
      json: {
        device_code: "device-1",
        user_code: "ABCD-EFGH",
        verification_uri: `${issuer}/go`,
        expires_in: 60,
        interval: 5,
      },
    };
    return this;
  }

  /** The answer that `/token` gives when nobody replaced it. */
  tokens(nth: number): Record<string, unknown> {
    return {
      access_token: `access-${this.name}-${nth}`,
      token_type: "Bearer",
      expires_in: 3600,
      refresh_token: `refresh-${this.name}-${nth}`,
      ...this.tokenAnswer,
    };
  }

  #register(request: SeenRequest, nth: number): Reply {
    const asked = JSON.parse(request.body) as Record<string, unknown>;
    const hasSecret = asked["token_endpoint_auth_method"] !== "none";
    const secret = hasSecret ? { client_secret: `secret-${this.name}-${nth}`, client_secret_expires_at: 0 } : {};
    return {
      status: 201,
      json: { ...asked, client_id: `client-${this.name}-${nth}`, ...secret, ...this.registrationAnswer },
    };
  }

  #authorize(request: SeenRequest, nth: number): Reply {
    const asked = new URL(request.url, this.origin).searchParams;
    const location = new URL(asked.get("redirect_uri") ?? "");
    location.searchParams.set("code", `code-${this.name}-${nth}`);
    location.searchParams.set("state", asked.get("state") ?? "");
    if (this.metadata["authorization_response_iss_parameter_supported"]) location.searchParams.set("iss", this.issuer);
    return { status: 302, headers: { location: location.href }, text: "" };
  }
}

/** An MCP server that takes the tokens a test lets it take. */
export class TestMcp extends Peer {
  /** The resource metadata document. */
  metadata: Record<string, unknown> = {};
  /** The challenge of a refusal; undefined leaves it out. */
  challenge: string | undefined;
  /** Which tokens it takes. */
  accepts: (token: string) => boolean = (token) => token.startsWith("access-");

  readonly path: string;

  constructor(name: string, log: string[], path: string) {
    super(name, log);
    this.path = path;
  }

  get url(): string {
    return `${this.origin}${this.path}`;
  }

  /** Where its resource metadata lies. */
  get wellKnown(): string {
    return `/.well-known/oauth-protected-resource${this.path}`;
  }

  async startFor(issuer: TestIssuer): Promise<this> {
    await this.start();
    this.metadata = { resource: this.url, authorization_servers: [issuer.issuer] };
    this.challenge = `Bearer resource_metadata="${this.origin}${this.wellKnown}"`;
    this.routes[this.wellKnown] = () => ({ json: this.metadata });
    this.routes[this.path || "/"] = (request) => {
      const token = request.headers.authorization?.replace(/^Bearer /, "");
      return token !== undefined && this.accepts(token) ? { json: { ok: true } } : this.refusal();
    };
    return this;
  }

  /** The answer to a request without a token that it takes. */
  refusal(): Reply {
    return {
      status: 401,
      headers: this.challenge === undefined ? {} : { "www-authenticate": this.challenge },
      text: "",
    };
  }

  /** The tokens of the requests that brought one, in order. */
  tokens(): string[] {
    return this.to(this.path || "/").flatMap(({ headers }) => headers.authorization ?? []);
  }
}

/** An MCP server, its authorization server, a store, a clock and a person who signs in at once. */
export interface Scene {
  mcp: TestMcp;
  issuer: TestIssuer;
  login: TestLogin;
  clock: FakeClock;
  store: ReturnType<typeof memoryStore>;
  /** Every request to any server, in order, such as `mcp POST /mcp`. */
  log: string[];
  agent(options?: Partial<AgentClientOptions>): AgentClient;
  /** Starts another authorization server whose requests go into the same log. */
  another(name: string, path?: string): Promise<TestIssuer>;
}

/** Builds a {@link Scene} for the length of one test. */
export async function startScene({ mcpPath = "/mcp", issuerPath = "/pool" } = {}): Promise<Scene> {
  const log: string[] = [];
  const issuer = await new TestIssuer("as", log, issuerPath).start();
  const mcp = await new TestMcp("mcp", log, mcpPath).startFor(issuer);
  const login = new TestLogin(log);
  const clock = new FakeClock();
  const store = memoryStore();
  return {
    mcp,
    issuer,
    login,
    clock,
    store,
    log,
    // Most tests are about what comes after the issuer of a client is decided.
    agent: (options = {}) =>
      new AgentClient({ store, login, clock, random: () => 0, trustNamedIssuer: true, ...options }),
    another: (name, path = "/pool") => new TestIssuer(name, log, path).start(),
  };
}

/** Answers with an abrupt end of the connection. */
export const reset: Reply = { raw: (response) => response.socket?.destroy() };

/** Never answers. */
export const silence: Reply = { raw: () => undefined };

/** Checked server metadata as discovery gives it, for tests of the steps after it. */
export function serverMetadata(over: Partial<ServerMetadata> = {}): ServerMetadata {
  const issuer = over.issuer ?? "https://as.example/pool";
  return {
    issuer,
    authorizationEndpoint: `${issuer}/authorize`,
    tokenEndpoint: `${issuer}/token`,
    registrationEndpoint: `${issuer}/register`,
    introspectionEndpoint: undefined,
    revocationEndpoint: undefined,
    endSessionEndpoint: undefined,
    deviceAuthorizationEndpoint: undefined,
    jwksUri: undefined,
    scopesSupported: undefined,
    grantTypesSupported: undefined,
    tokenEndpointAuthMethods: undefined,
    promisesIss: false,
    takesClientIdDocuments: false,
    url: `${issuer}/.well-known/oauth-authorization-server`,
    ...over,
  };
}
