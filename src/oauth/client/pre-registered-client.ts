import { Secret } from "../../redact.js";
import type { IssuerMetadata } from "../discovery/types.js";
import type { AuthMethod, ClientRecord } from "../grant/grant.js";
import { type ClientKey, checkAuthMethod } from "./client-auth.js";

/** A client that somebody registered with the issuer beforehand. */
export interface PreRegisteredClient {
  /** Its `client_id`. */
  clientId: string;
  /** Its secret, for a confidential client. */
  clientSecret?: string | Secret | undefined;
  /** What it signs with where it proves itself by `private_key_jwt`. It is never stored. */
  privateKey?: ClientKey | undefined;
  /** Default: `private_key_jwt` with a key, the first of Basic and Post that the issuer lists with a secret, else `none`. */
  authMethod?: AuthMethod | undefined;
  /**
   * The issuer that it belongs to; used with no other. Without it the issuer that the client is bound to counts. A
   * client with a secret or a key that is bound to none is not used, unless the user confirms the issuer that the
   * server names.
   */
  issuer?: string | undefined;
}

/** The secret of a client, in the form that does not print. */
export function secretOf({ clientSecret }: Pick<PreRegisteredClient, "clientSecret">): Secret | undefined {
  return typeof clientSecret === "string" ? new Secret(clientSecret) : clientSecret;
}

/** What using a client depends on that was registered beforehand. */
export interface PreRegisteredClientContext {
  client: PreRegisteredClient;
  server: IssuerMetadata;
  /** Whether our requests to issuers show a client certificate. */
  mutualTls?: boolean | undefined;
  /** Whether it is a machine's, which is held against what the issuer lists in any case. */
  isMachine?: boolean;
}

/**
 * The record of a client that was registered beforehand, at the issuer that `holdToIssuer` has held it to.
 *
 * @throws `AgentAuthError` `client_auth_unsupported`
 */
export function preRegisteredClient(known: PreRegisteredClientContext): ClientRecord {
  const { client, server, mutualTls } = known;
  const { clientId, privateKey } = client;
  const authMethod = client.authMethod ?? defaultMethod(client, server);
  if (authMethod === "private_key_jwt" || known.isMachine) {
    const isGiven = client.authMethod !== undefined;
    checkAuthMethod(server, { method: authMethod, isConfigured: isGiven, algorithm: privateKey?.algorithm, mutualTls });
  }
  const base = { issuer: server.issuer, redirectUri: undefined, secretExpiresAt: undefined } as const;
  return { ...base, clientId, clientSecret: secretOf(client), authMethod, source: "pre-registered" };
}

function defaultMethod({ clientSecret, privateKey }: PreRegisteredClient, server: IssuerMetadata): AuthMethod {
  if (privateKey !== undefined) return "private_key_jwt";
  return clientSecret === undefined ? "none" : preferredMethod(server);
}

/** What a client can be that we register ourselves. */
export const SUPPORTED_METHODS: readonly AuthMethod[] = ["client_secret_basic", "client_secret_post", "none"];

/** The way to authenticate that the issuer lists; Basic where it lists nothing (RFC 8414 section 2). */
export function preferredMethod(server: IssuerMetadata): AuthMethod {
  const listed = server.tokenEndpointAuthMethods;
  if (!listed) return "client_secret_basic";
  return SUPPORTED_METHODS.find((method) => listed.includes(method)) ?? "client_secret_basic";
}

/** The client with its secret sent the other way, where the issuer lists that one too and nobody said which it is. */
export function alternateAuthMethod(
  client: ClientRecord,
  server: IssuerMetadata,
  given: PreRegisteredClient | undefined,
): ClientRecord | undefined {
  const { authMethod } = client;
  if (given?.authMethod !== undefined || client.clientSecret === undefined) return undefined;
  const other = authMethod === "client_secret_basic" ? "client_secret_post" : "client_secret_basic";
  return authMethod !== "private_key_jwt" && server.tokenEndpointAuthMethods?.includes(other)
    ? { ...client, authMethod: other }
    : undefined;
}
