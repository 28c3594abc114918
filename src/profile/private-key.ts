import { createPrivateKey, type JsonWebKey, type KeyObject } from "node:crypto";
import { usageError } from "../errors.js";
import { isJsonObject, parseStrictJson } from "../http/strict-json.js";
import type { ClientKey, SigningAlgorithm } from "../oauth/client/client-auth.js";
import { writePrivatelyCommand } from "../platform.js";
import { quote } from "../redact.js";

const MIN_RSA_BITS = 2048;
const KINDS = "an RSA key of 2048 bits or more, an EC key on P-256 or P-384, or an Ed25519 key";
const FORMS = "PEM (PKCS #8, PKCS #1 or SEC 1) or a JWK";

/** How a private key is identified to the issuer, and named in messages. */
export interface PrivateKeyOptions {
  /** Default: the `kid` of a JWK. */
  keyId?: string | undefined;
  /** Where the key comes from, for messages. Default "the private key". */
  from?: string | undefined;
}

/**
 * Reads the private key that a client authenticates with, for `client.privateKey` of an `AgentClient`: PEM (PKCS #8,
 * PKCS #1, SEC 1) or a JWK. The algorithm is that of the key: RS256, ES256, ES384 or EdDSA, or what `alg` of a JWK says.
 *
 * @throws `AgentAuthError` `usage` for a text that is no private key, or an encrypted one; the text is never quoted
 */
export async function readPrivateKey(text: string, options: PrivateKeyOptions = {}): Promise<ClientKey> {
  const { from = "the private key" } = options;
  const jwk = text.trimStart().startsWith("{") ? readJwk(text, from) : undefined;
  const key = parseKey(jwk ?? text, from);
  const algorithm = chooseAlgorithm(key, jwk, from);
  const keyId = options.keyId ?? (typeof jwk?.["kid"] === "string" ? jwk["kid"] : undefined);
  const { subtle } = globalThis.crypto;
  const members = key.export({ format: "jwk" });
  const imported = await subtle.importKey("jwk", members, PARAMETERS[algorithm], false, ["sign"]);
  return { key: imported, algorithm, ...(keyId !== undefined && { keyId }) };
}

const PARAMETERS: Readonly<Record<SigningAlgorithm, { name: string; hash?: string; namedCurve?: string }>> = {
  RS256: { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" },
  PS256: { name: "RSA-PSS", hash: "SHA-256" },
  ES256: { name: "ECDSA", namedCurve: "P-256" },
  ES384: { name: "ECDSA", namedCurve: "P-384" },
  EdDSA: { name: "Ed25519" },
  Ed25519: { name: "Ed25519" },
};

function readJwk(text: string, from: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = parseStrictJson(text);
  } catch {
    throw usageError(`${from} is not JSON, although it starts like a JWK`, `use ${FORMS}`);
  }
  if (!isJsonObject(value) || typeof value["kty"] !== "string" || value["kty"] === "oct")
    throw usageError(`${from} is not the JWK of a private key (RFC 7517)`, `use one key, as ${FORMS}`);
  if (value["d"] === undefined)
    throw usageError(`${from} is a public key`, "use the private one, whose JWK has a member d");
  return value;
}

function parseKey(given: Record<string, unknown> | string, from: string): KeyObject {
  if (typeof given === "string") checkPem(given, from);
  try {
    return typeof given === "string"
      ? createPrivateKey(given)
      : createPrivateKey({ key: { ...given } as JsonWebKey, format: "jwk" });
  } catch {
    // Without its cause, which may quote a part of the key.
    throw usageError(`${from} cannot be read as a private key`, `use ${KINDS}, as ${FORMS}`);
  }
}

function checkPem(text: string, from: string): void {
  if (/-----BEGIN ENCRYPTED PRIVATE KEY-----|Proc-Type: 4,ENCRYPTED/.test(text))
    throw usageError(
      `${from} is encrypted, and agentauth does not ask for passphrases`,
      `${writePrivatelyCommand("openssl pkey -in <file> -out <new file>")} writes it without one`,
    );
  if (/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(text)) return;
  const isPublic = /-----BEGIN ([A-Z ]*PUBLIC KEY|CERTIFICATE)-----/.test(text);
  if (isPublic) throw usageError(`${from} is a public key or a certificate`, "use the private key that belongs to it");
  throw usageError(`${from} is not a private key`, `use ${KINDS}, as ${FORMS}`);
}

function chooseAlgorithm(key: KeyObject, jwk: Record<string, unknown> | undefined, from: string): SigningAlgorithm {
  const possible = possibleFor(key);
  if (possible.length === 0) throw usageError(`${from} is of a kind that is not supported`, `use ${KINDS}`);
  const wanted = jwk?.["alg"];
  const chosen = wanted === undefined ? possible[0] : possible.find((one) => one === wanted);
  if (chosen !== undefined) return chosen;
  throw usageError(`${from}: alg ${quote(wanted, 40)} is not one of ${possible.join(", ")}`, "correct or remove alg");
}

function possibleFor({ asymmetricKeyType: type, asymmetricKeyDetails: details = {} }: KeyObject): SigningAlgorithm[] {
  if (type === "ed25519") return ["EdDSA", "Ed25519"];
  if (type === "rsa") return (details.modulusLength ?? 0) >= MIN_RSA_BITS ? ["RS256", "PS256"] : [];
  if (details.namedCurve === "prime256v1") return ["ES256"];
  return details.namedCurve === "secp384r1" ? ["ES384"] : [];
}
