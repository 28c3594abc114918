import type { Canaries } from "./canaries.js";
import { Peer, type PeerOptions, type Reply, type Seen } from "./peer.js";

/** An authorization server that grants everything at once, with canary secrets. */
export class Issuer extends Peer {
  /** The metadata document, which cases change. */
  metadata: Record<string, unknown> = {};
  /** Members that replace those of every token answer. */
  tokenAnswer: Record<string, unknown> = {};
  /** Members that replace those of every registration answer. */
  registrationAnswer: Record<string, unknown> = {};
  /** Parameters that replace those of the callback; null omits one. */
  callback: Record<string, string | null> = {};

  readonly #canaries: Canaries;

  constructor(name: string, log: Seen[], canaries: Canaries, options: PeerOptions = {}) {
    super(name, log, options);
    this.#canaries = canaries;
  }

  get issuer(): string {
    return `${this.origin}/pool`;
  }

  /** Installs the routes of an authorization server. */
  serve(): this {
    const { issuer } = this;
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
      grant_types_supported: ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
      authorization_response_iss_parameter_supported: true,
    };
    this.routes["/pool/.well-known/oauth-authorization-server"] = () => ({ json: this.metadata });
    this.routes["/pool/register"] = (request) => this.#register(request);
    this.routes["/pool/authorize"] = (request) => ({ status: 302, headers: { location: this.callbackTo(request) } });
    this.routes["/pool/token"] = () => ({ json: this.tokens() });
    this.routes["/pool/introspect"] = { json: { active: true, scope: "tools" } };
    this.routes["/pool/revoke"] = { status: 200 };
    this.routes["/pool/end_session"] = { status: 200 };
    this.routes["/pool/device"] = () => ({ json: this.device() });
    return this;
  }

  /** The default response of `/token`. */
  tokens(): Record<string, unknown> {
    return {
      access_token: this.#canaries.get("access-token"),
      token_type: "Bearer",
      expires_in: 3600,
      refresh_token: this.#canaries.get("refresh-token"),
      ...this.tokenAnswer,
    };
  }

  /** The response of `/device`. */
  device(): Record<string, unknown> {
    return {
      device_code: this.#canaries.get("device-code"),
      user_code: "ABCD-EFGH",
      verification_uri: `${this.issuer}/go`,
      expires_in: 60,
      interval: 1,
    };
  }

  /** The redirect to the client after consent. */
  callbackTo(request: Pick<Seen, "url">): string {
    const asked = new URL(request.url, this.origin).searchParams;
    const location = new URL(asked.get("redirect_uri") ?? "");
    const parameters = {
      code: this.#canaries.get("code"),
      state: asked.get("state"),
      iss: this.metadata["authorization_response_iss_parameter_supported"] ? this.issuer : null,
      ...this.callback,
    };
    for (const [name, value] of Object.entries(parameters)) if (value !== null) location.searchParams.set(name, value);
    return location.href;
  }

  #register(request: Seen): Reply {
    const asked = JSON.parse(request.body) as Record<string, unknown>;
    return {
      status: 201,
      json: {
        ...asked,
        client_id: "client-1",
        client_secret: this.#canaries.get("registered-secret"),
        client_secret_expires_at: 0,
        ...this.registrationAnswer,
      },
    };
  }
}

/** An MCP server that requires a token. */
export class McpServer extends Peer {
  /** The resource metadata document. */
  metadata: Record<string, unknown> = {};
  /** The challenge of a 401; undefined omits it. */
  challenge: string | string[] | undefined;

  get url(): string {
    return `${this.origin}/mcp`;
  }

  /** Installs the routes of an MCP server that names an issuer. */
  serveFor(issuer: Issuer): this {
    const wellKnown = "/.well-known/oauth-protected-resource/mcp";
    this.metadata = { resource: this.url, authorization_servers: [issuer.issuer] };
    this.challenge = `Bearer resource_metadata="${this.origin}${wellKnown}"`;
    this.routes[wellKnown] = () => ({ json: this.metadata });
    this.routes["/mcp"] = ({ headers }) => (headers.authorization ? { json: { ok: true } } : this.refusal());
    return this;
  }

  /** The response to a request without a token. */
  refusal(): Reply {
    return {
      status: 401,
      headers: this.challenge === undefined ? {} : { "www-authenticate": this.challenge },
      text: "",
    };
  }
}
