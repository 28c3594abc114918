import * as oauth from "oauth4webapi";
import { AgentAuthError } from "../../errors.js";
import { quote } from "../../redact.js";
import type { IssuerMetadata } from "../discovery/types.js";
import type { AuthMethod, ClientRecord } from "../grant/grant.js";

/** What a client signs its assertions with (RFC 7518 section 3.1, RFC 8037 section 3.1, RFC 9864 section 2.2). */
export type SigningAlgorithm = "RS256" | "PS256" | "ES256" | "ES384" | "EdDSA" | "Ed25519";

/** A private key that a client proves itself by (RFC 7523 section 2.2). It is never stored. */
export interface ClientKey {
  /** A private key of Web Cryptography that may be used to sign. */
  key: oauth.CryptoKey;
  /** The algorithm that the key is for, as the issuer knows it. */
  algorithm: SigningAlgorithm;
  /** The key's id, where the issuer knows several keys of the client. */
  keyId?: string | undefined;
}

/**
 * How a client proves itself in a request to an endpoint of its issuer.
 *
 * @throws `AgentAuthError` `usage` where it does so by something that is not kept and was not given
 */
export function clientAuth(client: ClientRecord, key: ClientKey | undefined): oauth.ClientAuth {
  const { authMethod, clientSecret } = client;
  if (authMethod === "none") return oauth.None();
  if (authMethod === "private_key_jwt") return byKey(client, key);
  if (clientSecret === undefined) throw missing(client, "a secret", SECRET_WAYS);
  const secret = clientSecret.reveal();
  return authMethod === "client_secret_post" ? oauth.ClientSecretPost(secret) : basic(secret);
}

const SECRET_WAYS = "give it in AGENTAUTH_CLIENT_SECRET or with --client-secret-file <file>";

function byKey(client: ClientRecord, given: ClientKey | undefined): oauth.ClientAuth {
  if (given === undefined) throw missing(client, "a private key", "give it with --private-key <file>");
  const { key, algorithm, keyId } = checkKey(given);
  return oauth.PrivateKeyJwt(
    { key, ...(keyId !== undefined && { kid: keyId }) },
    {
      [oauth.modifyAssertion](header, payload) {
        header["alg"] = algorithm;
        // It says nothing that `iat` does not, and fails where the issuer's clock is a moment behind.
        delete payload["nbf"];
      },
    },
  );
}

function missing({ clientId }: ClientRecord, what: string, hint: string): AgentAuthError {
  const message = `the client ${quote(clientId)} proves itself by ${what}, which is not kept and has to be given`;
  return new AgentAuthError("usage", message, { class: "usage", hint: `--client-id, and ${hint}` });
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
  if (key.type !== "private" || !MATCHES_KEY[algorithm](key.algorithm)) {
    throw new TypeError(`privateKey.key must be a private key for ${algorithm}`);
  }
  return given;
}

/**
 * HTTP Basic with both parts form-encoded (RFC 6749 section 2.3.1), but nothing encoded that form encoding leaves alone:
 * servers that forget to decode still understand an identifier with a hyphen in it.
 */
function basic(secret: string): oauth.ClientAuth {
  const encode = (part: string) => new URLSearchParams([["", part]]).toString().slice(1);
  return (_as, client, _body, headers) => {
    headers.set("authorization", `Basic ${btoa(`${encode(client.client_id)}:${encode(secret)}`)}`);
  };
}

/** What an issuer takes that lists nothing (RFC 8414 section 2). */
const DEFAULT_METHODS: readonly string[] = ["client_secret_basic"];
/** Proof by the connection itself (RFC 8705 section 2): to the endpoint the client then says no more than its name. */
const CERTIFICATE_METHODS = ["tls_client_auth", "self_signed_tls_client_auth"];

/** The way in which a client proves itself, and what it is held against. */
export interface MethodCheck {
  method: AuthMethod;
  /** Whether whoever registered the client said so, and not we. */
  isConfigured: boolean;
  algorithm?: SigningAlgorithm | undefined;
  mutualTls?: boolean | undefined;
}

/**
 * Holds the way in which a client proves itself against what its issuer lists: a secret or an assertion is not sent to
 * one that does not take it.
 *
 * @throws `AgentAuthError` `client_auth_unsupported`, which names the list
 */
export function checkAuthMethod(
  server: IssuerMetadata,
  { method, isConfigured: isGiven, algorithm, mutualTls }: MethodCheck,
): void {
  const { tokenEndpointAuthMethods: listed, tokenEndpointSigningAlgorithms: algorithms } = server;
  // Where nothing is listed, whoever registered the client knows better; and without proof there is nothing to list.
  const isFree = listed === undefined && (isGiven || method === "none");
  const isMutual = mutualTls === true && method === "none" && listed?.some((one) => CERTIFICATE_METHODS.includes(one));
  if (!isFree && !isMutual && !(listed ?? DEFAULT_METHODS).includes(method)) {
    const list = listed === undefined ? `nothing, which means ${DEFAULT_METHODS.join(", ")}` : quote(listed.join(", "));
    const rule = "token_endpoint_auth_methods_supported (RFC 8414 section 2)";
    throw unsupported(server, `of a client that proves itself by ${method}`, `${rule} lists ${list}`);
  }
  if (method !== "private_key_jwt" || algorithm === undefined || algorithms === undefined) return;
  if (!algorithms.includes(algorithm)) {
    const list = `token_endpoint_auth_signing_alg_values_supported lists ${quote(algorithms.join(", "))}`;
    throw unsupported(server, `of a client whose key signs with ${algorithm}`, list);
  }
}

function unsupported({ issuer }: IssuerMetadata, whose: string, list: string): AgentAuthError {
  return new AgentAuthError(
    "client_auth_unsupported",
    `the authorization server ${quote(issuer)} takes no request ${whose}: ${list}`,
    { class: "auth", hint: "use a client that proves itself in one of these ways, or have it registered again" },
  );
}
