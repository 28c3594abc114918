import { Secret } from "../../redact.js";
import type { AuthMethod, ClientRecord } from "../model/grant.js";
import type { IssuerMetadata } from "../model/metadata.js";
import { type ClientKey, checkAuthMethod } from "./client-auth.js";

/** A client that is registered with the issuer beforehand. */
export interface PreRegisteredClient {
  /** Its `client_id`. */
  clientId: string;
  /** Its secret, for a confidential client. */
  clientSecret?: string | Secret | undefined;
  /** Its key for `private_key_jwt`. It is never stored. */
  privateKey?: ClientKey | undefined;
  /** Default: `private_key_jwt` with a key, the first of Basic and Post that the issuer lists with a secret, else `none`. */
  authMethod?: AuthMethod | undefined;
  /**
   * The only issuer to use it with. Default: the issuer that the client is bound to. A client with a secret or a key
   * that is bound to none is used only if the user confirms the issuer that the server names.
   */
  issuer?: string | undefined;
}

/** The secret of a client as a {@link Secret}, which does not print. */
export function clientSecretOf({ clientSecret }: Pick<PreRegisteredClient, "clientSecret">): Secret | undefined {
  return typeof clientSecret === "string" ? new Secret(clientSecret) : clientSecret;
}

/** Input of {@link preRegisteredClient}. */
export interface PreRegisteredClientContext {
  client: PreRegisteredClient;
  server: IssuerMetadata;
  /** Whether requests to issuers present a client certificate. */
  mutualTls?: boolean | undefined;
  /** Whether it is for a machine grant, whose method is always checked against the issuer's list. */
  isMachine?: boolean;
}

/**
 * The record of a pre-registered client, after `holdToIssuer` has checked its issuer.
 *
 * @throws `AgentAuthError` `client_auth_unsupported`
 */
export function preRegisteredClient(context: PreRegisteredClientContext): ClientRecord {
  const { client, server, mutualTls } = context;
  const { clientId, privateKey } = client;
  const authMethod = client.authMethod ?? defaultMethod(client, server);
  if (clientId !== "" && (authMethod === "private_key_jwt" || context.isMachine)) {
    const isConfigured = client.authMethod !== undefined;
    checkAuthMethod(server, { method: authMethod, isConfigured, algorithm: privateKey?.algorithm, mutualTls });
  }
  const base = { issuer: server.issuer, redirectUri: undefined, secretExpiresAt: undefined } as const;
  return { ...base, clientId, clientSecret: clientSecretOf(client), authMethod, source: "pre-registered" };
}

function defaultMethod({ clientSecret, privateKey }: PreRegisteredClient, server: IssuerMetadata): AuthMethod {
  if (privateKey !== undefined) return "private_key_jwt";
  return clientSecret === undefined ? "none" : preferredMethod(server);
}

/** The authentication methods of clients that we register. */
export const SUPPORTED_METHODS: readonly AuthMethod[] = ["client_secret_basic", "client_secret_post", "none"];

/** The first supported method that the issuer lists; Basic if it lists none (RFC 8414 section 2). */
export function preferredMethod(server: IssuerMetadata): AuthMethod {
  const listed = server.tokenEndpointAuthMethods;
  if (!listed) return "client_secret_basic";
  return SUPPORTED_METHODS.find((method) => listed.includes(method)) ?? "client_secret_basic";
}

/** The client with the other method for secrets, if the issuer lists that one too and no method is configured. */
export function alternateAuthMethod(
  client: ClientRecord,
  server: IssuerMetadata,
  configured: PreRegisteredClient | undefined,
): ClientRecord | undefined {
  const { authMethod } = client;
  if (configured?.authMethod !== undefined || client.clientSecret === undefined) return undefined;
  const other = authMethod === "client_secret_basic" ? "client_secret_post" : "client_secret_basic";
  return authMethod !== "private_key_jwt" && server.tokenEndpointAuthMethods?.includes(other)
    ? { ...client, authMethod: other }
    : undefined;
}
