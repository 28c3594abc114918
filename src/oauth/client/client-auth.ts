import * as oauth from "oauth4webapi";
import { AgentAuthError } from "../../errors.js";
import { formEncoded } from "../../http/oauth-syntax.js";
import { quote, Secret } from "../../redact.js";
import type { Remedy } from "../../remedy.js";
import type { AuthMethod, ClientRecord } from "../model/grant.js";
import type { IssuerMetadata } from "../model/metadata.js";

/** Signing algorithm of client assertions (RFC 7518 section 3.1, RFC 8037 section 3.1, RFC 9864 section 2.2). */
export type SigningAlgorithm = "RS256" | "PS256" | "ES256" | "ES384" | "EdDSA" | "Ed25519";

/**
 * A key of Web Cryptography, by the types of the program: it may have those of Node or of the DOM. The declaration that
 * users get names no package, since none is installed with this one.
 */
type PlatformKey = typeof globalThis extends {
  crypto: { subtle: { generateKey(...args: never[]): Promise<infer Made> } };
}
  ? Extract<Made, { type: string }>
  : never;

/** A private key that a client authenticates with (RFC 7523 section 2.2). It is never stored. */
export interface ClientKey {
  /** A private Web Cryptography key with the usage "sign". */
  key: PlatformKey;
  /** The algorithm of the key, as registered with the issuer. */
  algorithm: SigningAlgorithm;
  /** The key id, if several keys of the client are registered with the issuer. */
  keyId?: string | undefined;
}

/**
 * The client authentication of a request to an endpoint of its issuer.
 *
 * @throws `AgentAuthError` `usage` if it requires a credential that is not stored and not in the options
 * @internal
 */
export function clientAuth(client: ClientRecord, key: ClientKey | undefined): oauth.ClientAuth {
  const { authMethod, clientSecret } = client;
  // A workload without a client: its assertion is all that it sends (RFC 7523 section 2.1).
  if (client.clientId === "") return () => {};
  if (authMethod === "none") return oauth.None();
  if (authMethod === "private_key_jwt") return authenticateByKey(client, key);
  if (clientSecret === undefined) throw missingCredentialError(client, "a secret", "clientSecret");
  const secret = clientSecret.reveal();
  return authMethod === "client_secret_post"
    ? oauth.ClientSecretPost(secret)
    : authenticateBasic(secret, client.isRawBasic);
}

function authenticateByKey(client: ClientRecord, given: ClientKey | undefined): oauth.ClientAuth {
  if (given === undefined) throw missingCredentialError(client, "a private key", "privateKey");
  const { key, algorithm, keyId } = checkKey(given);
  return oauth.PrivateKeyJwt(
    { key, ...(keyId !== undefined && { kid: keyId }) },
    {
      [oauth.modifyAssertion](header, payload) {
        header["alg"] = algorithm;
        // It adds nothing to `iat`, and fails if the issuer's clock is slightly behind.
        delete payload["nbf"];
      },
    },
  );
}

function missingCredentialError({ clientId }: ClientRecord, what: string, option: "clientSecret" | "privateKey") {
  const message = `the client ${quote(clientId)} authenticates with ${what}, which is not stored and must be provided`;
  const remedy: Remedy = { action: "configure", option };
  const hint = `set client.clientId and client.${option}`;
  return new AgentAuthError("usage", message, { class: "usage", hint, remedy });
}

interface KeyAlgorithm {
  name: string;
  hash?: { name: string };
  namedCurve?: string;
}

const MATCHES_KEY: Readonly<Record<SigningAlgorithm, (key: KeyAlgorithm) => boolean>> = {
  RS256: ({ name, hash }) => name === "RSASSA-PKCS1-v1_5" && hash?.name === "SHA-256",
  PS256: ({ name, hash }) => name === "RSA-PSS" && hash?.name === "SHA-256",
  ES256: ({ name, namedCurve }) => name === "ECDSA" && namedCurve === "P-256",
  ES384: ({ name, namedCurve }) => name === "ECDSA" && namedCurve === "P-384",
  EdDSA: ({ name }) => name === "Ed25519",
  Ed25519: ({ name }) => name === "Ed25519",
};

function checkKey(given: ClientKey): ClientKey {
  const { key, algorithm } = given;
  if (!Object.hasOwn(MATCHES_KEY, algorithm))
    throw new TypeError(`privateKey.algorithm ${quote(algorithm)} is not known`);
  if (key.type !== "private" || !MATCHES_KEY[algorithm](key.algorithm))
    throw new TypeError(`privateKey.key must be a private key for ${algorithm}`);
  return given;
}

/**
 * HTTP Basic with both parts form-encoded (RFC 6749 section 2.3.1), and no other characters encoded: servers that do
 * not decode still accept an identifier with a hyphen. Nothing of the client is in the form: a request has one method
 * (section 2.3), and Cloudflare's provider counts `client_id` there as a second one.
 */
function authenticateBasic(secret: string, isRaw = false): oauth.ClientAuth {
  const write = isRaw ? (part: string) => part : formEncoded;
  return (_as, { client_id: id }, body, headers) => {
    // oauth4webapi sets it for every device authorization.
    body.delete("client_id");
    headers.set("authorization", `Basic ${btoa(`${write(id)}:${write(secret)}`)}`);
  };
}

/** The default if an issuer lists no methods (RFC 8414 section 2). */
const DEFAULT_METHODS: readonly string[] = ["client_secret_basic"];
/** Authentication by the TLS connection (RFC 8705 section 2): the request has only the client id. */
const CERTIFICATE_METHODS = ["tls_client_auth", "self_signed_tls_client_auth"];

/** What an issuer says about clients; one that lists nothing publishes no metadata, or not these. */
type ClientIssuer = Pick<IssuerMetadata, "issuer" | "tokenEndpointAuthMethods" | "tokenEndpointSigningAlgorithms">;

/**
 * Checks a client's authentication method against those that its issuer lists: a secret or an assertion is not sent to
 * an issuer that does not support it.
 *
 * @throws `AgentAuthError` `client_auth_unsupported`, which names the list
 */
function checkAuthMethod(method: AuthMethod, { client, server, mutualTls }: PreRegisteredClientContext): void {
  const { tokenEndpointAuthMethods: listed, tokenEndpointSigningAlgorithms: algorithms } = server;
  // Without a list, a configured method counts; and "none" needs no support.
  const isFree = listed === undefined && (client.authMethod !== undefined || method === "none");
  const isMutual = mutualTls === true && method === "none" && listed?.some((one) => CERTIFICATE_METHODS.includes(one));
  if (!isFree && !isMutual && !(listed ?? DEFAULT_METHODS).includes(method)) {
    const list = listed === undefined ? `nothing, which means ${DEFAULT_METHODS.join(", ")}` : quote(listed.join(", "));
    const rule = "token_endpoint_auth_methods_supported (RFC 8414 section 2)";
    const whose = `of a client with the authentication method ${method}`;
    throw unsupportedMethodError(server, whose, `${rule} lists ${list}`);
  }
  const algorithm = client.privateKey?.algorithm;
  if (method !== "private_key_jwt" || algorithm === undefined || algorithms === undefined) return;
  if (!algorithms.includes(algorithm)) {
    const list = `token_endpoint_auth_signing_alg_values_supported lists ${quote(algorithms.join(", "))}`;
    throw unsupportedMethodError(server, `of a client whose key signs with ${algorithm}`, list);
  }
}

function unsupportedMethodError({ issuer }: ClientIssuer, whose: string, list: string): AgentAuthError {
  const message = `the authorization server ${quote(issuer)} takes no request ${whose}: ${list}`;
  const hint = "use a client that proves itself in one of these ways, or have it registered again";
  return new AgentAuthError("client_auth_unsupported", message, { class: "auth", hint });
}

/** A client that is registered with the issuer beforehand. */
export interface PreRegisteredClient {
  /** Its `client_id`. */
  clientId: string;
  /** Its secret, for a confidential client. */
  clientSecret?: string | Secret | undefined;
  /** Its key for `private_key_jwt`. It is never stored. */
  privateKey?: ClientKey | undefined;
  /**
   * Default: `private_key_jwt` with a key; with a secret `client_secret_post` if the issuer lists it, else
   * `client_secret_basic`, and once more with the other one if the issuer rejects that; else `none`.
   */
  authMethod?: AuthMethod | undefined;
  /**
   * The only issuer to use it with. Default: the issuer that the client is bound to. A client with a secret or a key
   * that is bound to none is used only if the user confirms the issuer that the server names.
   */
  issuer?: string | undefined;
}

/** The secret of a client as a {@link Secret}, which does not print. */
export function readClientSecret({ clientSecret }: Pick<PreRegisteredClient, "clientSecret">): Secret | undefined {
  return typeof clientSecret === "string" ? new Secret(clientSecret) : clientSecret;
}

export interface PreRegisteredClientContext {
  client: PreRegisteredClient;
  server: ClientIssuer;
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
  const { client, server, isMachine } = context;
  const { clientId, authMethod } = client;
  const method = authMethod === undefined ? chosenMethod(defaultMethod(client, server), server) : { authMethod };
  const isChecked = clientId !== "" && (method.authMethod === "private_key_jwt" || isMachine);
  if (isChecked) checkAuthMethod(method.authMethod, context);
  const base = { issuer: server.issuer, redirectUri: undefined, secretExpiresAt: undefined } as const;
  return { ...base, clientId, clientSecret: readClientSecret(client), ...method, source: "pre-registered" };
}

function defaultMethod({ clientSecret, privateKey }: PreRegisteredClient, server: ClientIssuer): AuthMethod {
  if (privateKey !== undefined) return "private_key_jwt";
  return clientSecret === undefined ? "none" : preferredMethod(server);
}

/** The authentication methods of clients that we register, the preferred one first: servers that list Basic may not take it. */
export const SUPPORTED_METHODS: readonly AuthMethod[] = ["client_secret_post", "client_secret_basic", "none"];

/** The first supported method that the issuer lists; Basic if it lists none (RFC 8414 section 2). */
export function preferredMethod(server: ClientIssuer): AuthMethod {
  const listed = server.tokenEndpointAuthMethods ?? DEFAULT_METHODS;
  return SUPPORTED_METHODS.find((method) => listed.includes(method)) ?? "client_secret_basic";
}

/**
 * The method of a client that the user did not configure, with the one to try if an endpoint rejects it: the form after
 * HTTP Basic, which many servers list alone, or by listing nothing, and do not take; Basic after the form if it is listed.
 */
export function chosenMethod(
  authMethod: AuthMethod,
  { tokenEndpointAuthMethods: listed = DEFAULT_METHODS }: Pick<IssuerMetadata, "tokenEndpointAuthMethods">,
): Pick<ClientRecord, "authMethod" | "alternateMethod"> {
  if (authMethod === "client_secret_basic") return { authMethod, alternateMethod: "client_secret_post" };
  const isBasicListed = authMethod === "client_secret_post" && listed.includes("client_secret_basic");
  return { authMethod, ...(isBasicListed && { alternateMethod: "client_secret_basic" }) };
}

/** The client with each other form of its secret to try: by the other method, and by Basic for servers that do not decode. */
export function withOtherForms({ alternateMethod, ...client }: ClientRecord): ClientRecord[] {
  const { clientId, clientSecret, authMethod, isRawBasic } = client;
  if (clientSecret === undefined) return [];
  const plain = `${clientId}${clientSecret.reveal()}`;
  const isBasic = [authMethod, alternateMethod].includes("client_secret_basic") && !isRawBasic;
  const isOther = isBasic && /^[\x20-\x7e]*$/.test(plain) && formEncoded(plain) !== plain;
  return [
    ...(alternateMethod === undefined ? [] : [{ ...client, authMethod: alternateMethod }]),
    ...(isOther ? [{ ...client, authMethod: "client_secret_basic", isRawBasic: true } as const] : []),
  ];
}
