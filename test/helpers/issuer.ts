import { onTestFinished } from "vitest";
import { AgentClient, type AgentClientOptions } from "../../src/oauth/agent.js";
import type { ServerMetadata } from "../../src/oauth/model/metadata.js";
import { memoryStore } from "../../src/store/memory.js";
import { FakeClock } from "./clock.js";
import { TestLogin } from "./login.js";
import { Peer, type PeerOptions, type Reply, type RequestLog, type Seen } from "./peer.js";

export { type Handler, type Reply, reset, silence } from "./peer.js";

/** The secrets and ids that an issuer issues; `nth` counts the requests to the endpoint from 1. */
export type IssuedValues = Record<
  "accessToken" | "refreshToken" | "code" | "clientId" | "clientSecret" | "deviceCode",
  (nth: number) => string
>;

/** Options of a {@link TestIssuer}. */
export interface IssuerOptions extends PeerOptions {
  /** The path of the issuer, "" for none. Default: `/pool`. */
  path?: string;
  /** Replace the default secrets and ids, which contain the name of the issuer and the number of the request. */
  issued?: Partial<IssuedValues>;
  /** Members of the metadata document beside the default ones. */
  metadata?: Record<string, unknown>;
  /** Seconds between the polls of a device login. Default: 5. */
  interval?: number;
}

/** An authorization server that grants everything at once. */
export class TestIssuer extends Peer {
  /** The metadata document, which tests change. */
  metadata: Record<string, unknown> = {};
  /** Members that replace those of every token answer. */
  tokenAnswer: Record<string, unknown> = {};
  /** Members that replace those of every registration answer. */
  registrationAnswer: Record<string, unknown> = {};
  /** Parameters that replace those of the callback; null omits one. */
  callback: Record<string, string | null> = {};

  /** The path of the issuer, such as `/pool`. */
  readonly path: string;
  readonly #issued: IssuedValues;
  readonly #options: IssuerOptions;

  constructor(name: string, log: RequestLog, options: IssuerOptions = {}) {
    super(name, log, options);
    this.path = options.path ?? "/pool";
    this.#options = options;
    this.#issued = {
      accessToken: (nth) => `access-${name}-${nth}`,
      refreshToken: (nth) => `refresh-${name}-${nth}`,
      code: (nth) => `code-${name}-${nth}`,
      clientId: (nth) => `client-${name}-${nth}`,
      clientSecret: (nth) => `secret-${name}-${nth}`,
      deviceCode: (nth) => `device-${nth}`,
      ...options.issued,
    };
  }

  get issuer(): string {
    return `${this.origin}${this.path}`;
  }

  /** Installs the routes of an authorization server. */
  serve(): this {
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
      ...this.#options.metadata,
    };
    this.routes[`${path}/.well-known/oauth-authorization-server`] = () => ({ json: this.metadata });
    this.routes[`${path}/register`] = (request, nth) => this.#register(request, nth);
    this.routes[`${path}/authorize`] = (request, nth) => ({
      status: 302,
      headers: { location: this.callbackTo(request, nth) },
    });
    this.routes[`${path}/token`] = (_request, nth) => ({ json: this.tokens(nth) });
    this.routes[`${path}/introspect`] = { json: { active: true, scope: "tools" } };
    this.routes[`${path}/revoke`] = { status: 200 };
    this.routes[`${path}/end_session`] = { status: 200 };
    this.routes[`${path}/device`] = (_request, nth) => ({ json: this.device(nth) });
    return this;
  }

  /** The default response of `/token`. */
  tokens(nth = 1): Record<string, unknown> {
    return {
      access_token: this.#issued.accessToken(nth),
      token_type: "Bearer",
      expires_in: 3600,
      refresh_token: this.#issued.refreshToken(nth),
      ...this.tokenAnswer,
    };
  }

  /** The default response of `/device`. */
  device(nth = 1): Record<string, unknown> {
    return {
      device_code: this.#issued.deviceCode(nth),
      user_code: "ABCD-EFGH",
      verification_uri: `${this.issuer}/go`,
      expires_in: 60,
      interval: this.#options.interval ?? 5,
    };
  }

  /** The redirect to the client after consent. */
  callbackTo(request: Pick<Seen, "url">, nth = 1): string {
    const requested = new URL(request.url, this.origin).searchParams;
    const location = new URL(requested.get("redirect_uri") ?? "");
    const parameters = {
      code: this.#issued.code(nth),
      state: requested.get("state"),
      iss: this.metadata["authorization_response_iss_parameter_supported"] ? this.issuer : null,
      ...this.callback,
    };
    for (const [name, value] of Object.entries(parameters)) if (value !== null) location.searchParams.set(name, value);
    return location.href;
  }

  #register(request: Seen, nth: number): Reply {
    const requested = JSON.parse(request.body) as Record<string, unknown>;
    const hasSecret = requested["token_endpoint_auth_method"] !== "none";
    const secret = hasSecret ? { client_secret: this.#issued.clientSecret(nth), client_secret_expires_at: 0 } : {};
    return {
      status: 201,
      json: { ...requested, client_id: this.#issued.clientId(nth), ...secret, ...this.registrationAnswer },
    };
  }
}

/** Options of a {@link TestMcp}. */
export interface McpOptions extends PeerOptions {
  /** The path of the MCP server, "" for none. Default: `/mcp`. */
  path?: string;
}

/** An MCP server that requires a token. */
export class TestMcp extends Peer {
  /** The resource metadata document. */
  metadata: Record<string, unknown> = {};
  /** The challenge of a 401; undefined omits it. */
  challenge: string | undefined;
  /** Which tokens it accepts. Default: all. */
  accepts: (token: string) => boolean = () => true;

  readonly path: string;

  constructor(name: string, log: RequestLog, options: McpOptions = {}) {
    super(name, log, options);
    this.path = options.path ?? "/mcp";
  }

  get url(): string {
    return `${this.origin}${this.path}`;
  }

  /** The path of its resource metadata. */
  get wellKnown(): string {
    return `/.well-known/oauth-protected-resource${this.path}`;
  }

  /** Installs the routes of an MCP server that names an issuer. */
  serveFor(issuer: TestIssuer): this {
    this.metadata = { resource: this.url, authorization_servers: [issuer.issuer] };
    this.challenge = `Bearer resource_metadata="${this.origin}${this.wellKnown}"`;
    this.routes[this.wellKnown] = () => ({ json: this.metadata });
    this.routes[this.path || "/"] = (request) => {
      const token = request.headers.authorization?.replace(/^Bearer /, "");
      return token && this.accepts(token) ? { json: { ok: true } } : this.refusal();
    };
    return this;
  }

  /** The response to a request without a token that it accepts. */
  refusal(): Reply {
    return {
      status: 401,
      headers: this.challenge === undefined ? {} : { "www-authenticate": this.challenge },
      text: "",
    };
  }

  /** The Authorization headers of the requests that had one, in order. */
  tokens(): string[] {
    return this.to(this.path || "/").flatMap(({ headers }) => headers.authorization ?? []);
  }
}

/** A log of requests that also writes each one as a line, such as `mcp POST /mcp`. */
function withLines(lines: string[]): RequestLog {
  const seen: Seen[] = [];
  return {
    push(...requests) {
      for (const { peer, method, path } of requests) lines.push(`${peer} ${method} ${path}`);
      return seen.push(...requests);
    },
    filter: seen.filter.bind(seen),
  };
}

/** Starts an authorization server for the length of one test; each request is a line of the log. */
export async function startIssuer(name: string, log: string[] = [], path = "/pool"): Promise<TestIssuer> {
  const metadata = { scopes_supported: [] };
  const issuer = await new TestIssuer(name, withLines(log), { path, metadata }).start();
  onTestFinished(() => issuer.close());
  return issuer.serve();
}

/** Starts an MCP server for the length of one test, which accepts the tokens of every {@link TestIssuer}. */
export async function startMcp(name: string, log: string[], issuer: TestIssuer, path = "/mcp"): Promise<TestMcp> {
  const mcp = await new TestMcp(name, withLines(log), { path }).start();
  onTestFinished(() => mcp.close());
  mcp.accepts = (token) => token.startsWith("access-");
  return mcp.serveFor(issuer);
}

/** An MCP server, its authorization server, a store, a clock and a user who logs in at once. */
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
  const issuer = await startIssuer("as", log, issuerPath);
  const mcp = await startMcp("mcp", log, issuer, mcpPath);
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
    another: (name, path) => startIssuer(name, log, path),
  };
}

/** Checked server metadata as discovery returns it, for tests of the steps after it. */
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
