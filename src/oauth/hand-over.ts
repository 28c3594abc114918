// A login for a hosted agent: made like every other one, returned once and stored nowhere. A refresh token that rotates has one
// owner, so it must not be in the store as well.
import { AgentAuthError, usageError } from "../errors.js";
import { systemClock } from "../http/deadline.js";
import { quote } from "../redact.js";
import type { AgentClientOptions, DiscoveryReport } from "./agent-options.js";
import { newProofKey } from "./dpop/dpop.js";
import type { LoginOptions } from "./grant/grant-requirements.js";
import { AccessToken, type ClientRecord, type Grant } from "./model/grant.js";
import type { GrantStore } from "./model/grant-store.js";
import type { RemoteLogout } from "./token/revocation.js";

/** How a hosted agent authenticates at the token endpoint (RFC 7591 section 2). */
export type HandOverClientAuth =
  | {
      /** A public client: it has no secret. */
      type: "none";
    }
  | {
      /** Where the secret is: in the header or in the form. */
      type: "client_secret_basic" | "client_secret_post";
      /** The secret. */
      client_secret: string;
    };

/** A login in the form that the vaults of hosted agents take: with its secrets, as plain text. */
export interface McpOAuthCredential {
  /** The kind of credential. */
  type: "mcp_oauth";
  /** The MCP server. */
  mcp_server_url: string;
  /** The token that the server takes. */
  access_token: string;
  /** When it expires, in RFC 3339; absent if the issuer did not say. */
  expires_at?: string;
  /** How the next one is requested; absent if the issuer returned no refresh token. */
  refresh?: {
    /** The token endpoint. */
    token_endpoint: string;
    /** The client. */
    client_id: string;
    /** How it authenticates. */
    token_endpoint_auth: HandOverClientAuth;
    /** The refresh token. */
    refresh_token: string;
    /** The scopes granted, separated by blanks; absent if unknown. */
    scope?: string;
    /** The `resource` parameter; absent if none is sent. */
    resource?: string;
  };
}

/** What is sent to a vault, by the names of `--hand-over-format`. */
export interface HandOverFormats {
  /** The credential itself, in which the vaults agree. */
  "mcp-oauth": McpOAuthCredential;
  /** The body of Anthropic's `beta.vaults.credentials.create`. */
  anthropic: {
    /** The address of the server. */
    display_name: string;
    /** The credential. */
    auth: McpOAuthCredential;
  };
  /** The body of OpenAI's `beta.agents.vaults.credentials.create`. */
  openai: {
    /** The address of the server. */
    name: string;
    /** The credential. */
    auth: McpOAuthCredential;
  };
}

/** Vaults take names of at most 255 characters; those of a URL are ASCII. */
const MAX_NAME = 255;

interface HandOverClient {
  discover(mcpUrl: string, options: Pick<LoginOptions, "signal">): Promise<DiscoveryReport>;
  login(mcpUrl: string, options: LoginOptions): Promise<unknown>;
  disconnect(mcpUrl: string, options: { account: string | null }): Promise<RemoteLogout>;
}

/**
 * A login that is stored nowhere, for an agent that runs elsewhere: its access token, and {@link HandOver.reveal} for all of
 * its secrets. Printing it shows a mask.
 */
export class HandOver extends AccessToken {
  readonly #grant: Grant;
  readonly #revoke: () => Promise<RemoteLogout>;
  /** The client, which no other login has unless the option `client` names it. */
  readonly clientId: string;
  /** Whether it has a refresh token: if not, it ends with the access token. */
  readonly refreshable: boolean;

  /** @internal */
  constructor(grant: Grant, revoke: () => Promise<RemoteLogout>) {
    super(grant);
    this.#grant = grant;
    this.#revoke = revoke;
    this.clientId = grant.client.clientId;
    this.refreshable = grant.tokens.refreshToken !== undefined;
  }

  /** The login with its secrets, in the form of a vault. */
  reveal<Format extends keyof HandOverFormats = "mcp-oauth">(format?: Format): HandOverFormats[Format];
  reveal(format: keyof HandOverFormats = "mcp-oauth"): HandOverFormats[keyof HandOverFormats] {
    const auth = toCredential(this.#grant);
    const name = this.server.slice(0, MAX_NAME);
    if (format === "anthropic") return { display_name: name, auth };
    return format === "openai" ? { name, auth } : auth;
  }

  /** Revokes its tokens at the issuer, such as when the vault did not take them. Never throws. */
  revoke(): Promise<RemoteLogout> {
    return this.#revoke();
  }
}

function toCredential({ server, resource, client, endpoints, tokens }: Grant): McpOAuthCredential {
  const { accessToken, refreshToken, expiresAt, scope } = tokens;
  const type = client.clientSecret === undefined ? "none" : client.authMethod;
  const secret = client.clientSecret?.reveal();
  return {
    type: "mcp_oauth",
    mcp_server_url: server,
    access_token: accessToken.reveal(),
    ...(expiresAt !== undefined && { expires_at: new Date(expiresAt).toISOString() }),
    ...(refreshToken !== undefined && {
      refresh: {
        token_endpoint: endpoints.token,
        client_id: client.clientId,
        token_endpoint_auth: { type, ...(secret !== undefined && { client_secret: secret }) } as HandOverClientAuth,
        refresh_token: refreshToken.reveal(),
        ...(scope !== undefined && { scope }),
        ...(resource !== "none" && { resource }),
      },
    }),
  };
}

/**
 * The options of a client whose login is handed over: it has a store of its own, in memory.
 *
 * @throws `AgentAuthError` `usage` for a key or a certificate, which a hosted agent does not have
 */
export function handOverOptions(options: AgentClientOptions): AgentClientOptions {
  const { client, mutualTls, dpop } = options;
  const kept =
    (client?.privateKey && "the private key of a client") ||
    (mutualTls && "a client certificate") ||
    (dpop === "required" && 'tokens that are bound to a key (dpop "required")');
  if (kept)
    throw usageError(
      `a login with ${kept} cannot be handed over: the key stays on this machine`,
      "leave it out for this login",
    );
  return { ...options, store: transientStore(options), dpop: "off", idp: undefined, storedGrants: undefined };
}

/** Logs the user in with a client that has {@link handOverOptions}. */
export async function handOver(
  agent: HandOverClient,
  store: GrantStore,
  mcpUrl: string,
  options: LoginOptions,
): Promise<HandOver> {
  await checkHandOver(agent, mcpUrl, options.signal);
  await agent.login(mcpUrl, options);
  return takeHandOver(agent, store);
}

/** Refuses a server whose tokens are bound to a key, before the user logs in. @throws also what discovery fails with */
export async function checkHandOver(
  agent: Pick<HandOverClient, "discover">,
  mcpUrl: string,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { found, error } = await agent.discover(mcpUrl, { signal });
  if (found === undefined) throw error;
  if ((await newProofKey("auto", found)) === undefined) return;
  const message = `${quote(found.server)} accepts only tokens that are bound to a key (DPoP, RFC 9449), which a hosted agent does not have`;
  const hint = "no login there can be handed over";
  throw new AgentAuthError("dpop_unsupported", message, { class: "refused", hint });
}

/** The login that a client with {@link handOverOptions} has just made. */
export async function takeHandOver(agent: Pick<HandOverClient, "disconnect">, store: GrantStore): Promise<HandOver> {
  const [grant] = await store.list();
  if (grant === undefined) throw new TypeError("the login is not in its store");
  return new HandOver(grant, () => agent.disconnect(grant.server, { account: grant.account ?? null }));
}

/**
 * A store for one login. It reads to which issuer a client of the user is bound, and changes nothing in the user's store.
 *
 * @param grant the login that it has already
 */
export function transientStore(
  { store, clientMetadataUrl, clock = systemClock }: AgentClientOptions,
  grant?: Grant,
): GrantStore {
  let client: ClientRecord | undefined;
  const save = async (next: Grant) => {
    grant = next;
    return true;
  };
  // The document is the client of other logins too, which an issuer may end with this one: it counts as refused.
  const document = { isRefused: true, registeredAt: [clock.epoch()] } as Partial<ClientRecord> as ClientRecord;
  return {
    location: "memory",
    read: async () => grant,
    save,
    reserve: async () => ({ save, release: async () => {} }),
    remove: async () => {
      grant = undefined;
    },
    list: async () => (grant ? [grant] : []),
    async *connections() {},
    readClient: async (_issuer, form) => (form === clientMetadataUrl ? document : client),
    saveClient: async (made) => {
      client = made;
    },
    readBinding: (key) => store.readBinding(key),
    saveBinding: async (binding) => binding,
    removeBinding: async () => false,
    listBindings: async () => [],
    lease: (_name, work, { durationMs }) =>
      work({ left: () => durationMs, commit: async () => {}, rollback() {}, previous: undefined, waited: false }),
  };
}
