import { AgentAuthError } from "../../errors.js";
import { isLoopbackHost, parseUrl } from "../../http/address.js";
import { classifyHost } from "../../http/address-class.js";
import { systemClock } from "../../http/deadline.js";
import { quote } from "../../redact.js";
import type { Remedy } from "../../remedy.js";
import { clientSecretOf, type PreRegisteredClient } from "../client/client-auth.js";
import type { Prover } from "../http/http.js";
import { type ConnectionOptions, ConnectionPool } from "../http/server-connection.js";
import type { ClientRecord } from "../model/grant.js";
import type { TokenCall } from "./token.js";

/** The endpoint and the client of a token request. */
export interface TokenCallOptions extends ConnectionOptions {
  /** The issuer identifier: the audience of a client assertion. */
  issuer: string;
  /** An https address, or http on a loopback host. */
  tokenEndpoint: string;
  /** The client that requests the token. */
  client: PreRegisteredClient;
  /** Signs the DPoP proofs of the key that the tokens are bound to; without it they are bearer tokens. */
  prover?: Prover | undefined;
  /** Aborts the request. */
  signal?: AbortSignal | undefined;
}

/**
 * Prepares the functions that make one request to a token endpoint. An `AgentClient` does this itself; this function is
 * for programs that know the endpoint and store the tokens themselves.
 *
 * @example
 * const call = tokenCall({ issuer, tokenEndpoint, client: { clientId, clientSecret } });
 * const { accessToken } = await clientCredentialsTokens(call, { resource });
 * @throws `AgentAuthError` `usage`
 */
export function tokenCall(options: TokenCallOptions): TokenCall {
  const { issuer, tokenEndpoint, client, prover, signal, clock = systemClock } = options;
  checkEndpoint(issuer, "the issuer");
  checkEndpoint(tokenEndpoint, "the token endpoint");
  const { http } = new ConnectionPool(options).get(tokenEndpoint);
  const record = recordOf(client, issuer);
  const { privateKey } = client;
  return { http, clock, issuer, tokenEndpoint, client: record, privateKey, prover, signal };
}

/** The record of a client whose issuer lists no authentication methods. */
export function recordOf(client: PreRegisteredClient, issuer: string): ClientRecord {
  const clientSecret = clientSecretOf(client);
  const method = clientSecret === undefined ? "none" : "client_secret_basic";
  return {
    issuer,
    clientId: client.clientId,
    clientSecret,
    secretExpiresAt: undefined,
    authMethod: client.authMethod ?? (client.privateKey === undefined ? method : "private_key_jwt"),
    source: "pre-registered",
    redirectUri: undefined,
  };
}

/**
 * Checks an address from the user that secrets are sent to: https, or http on a loopback host.
 *
 * @throws `AgentAuthError` `usage`
 */
export function checkEndpoint(address: string, what: string, remedy?: Remedy): void {
  const url = parseUrl(address);
  const isPlain = url?.username === "" && url.password === "" && url.hash === "";
  const isSafe = isPlain && (url.protocol === "https:" || (url.protocol === "http:" && isLoopbackHost(url.hostname)));
  if (isSafe && classifyHost(url.hostname) !== "forbidden") return;
  const rule = isSafe
    ? "must not be link-local, of a metadata service or reserved"
    : "must be https, or http to this machine";
  throw new AgentAuthError("usage", `${what}, ${quote(address)}, ${rule}`, { class: "usage", remedy });
}
