import { fromBase64url, toBase64url } from "../../http/base64url.js";
import { isJsonObject, parseStrictJson } from "../../http/strict-json.js";
import { quote } from "../../redact.js";
import { CipherError } from "./sealing.js";

const SCHEMA = 1;
/** What the member `kind` says. */
export const KIND = "sealed";
const ALG = "A256GCM";
/** Of AES-GCM (NIST SP 800-38D section 5.2.1.1). */
export const NONCE_BYTES = 12;
/** Of the authentication tag, which ends the data. */
export const TAG_BYTES = 16;

/** The parts of a sealed text. */
export interface SealedParts<Bytes extends Uint8Array = Uint8Array<ArrayBuffer>> {
  /** The id of the key. */
  readonly key: string;
  readonly nonce: Bytes;
  /** The ciphertext and the tag behind it. */
  readonly data: Bytes;
}

/** The text of sealed parts; the stores in files write the same. */
export function formatSealed({ key, nonce, data }: SealedParts<Uint8Array>): string {
  const members = { schema: SCHEMA, kind: KIND, alg: ALG, key };
  return `${JSON.stringify({ ...members, nonce: toBase64url(nonce), data: toBase64url(data) })}\n`;
}

/** @throws CipherError where the text is not sealed, or not as this version seals */
export function parseSealed(text: string): SealedParts {
  const { schema, kind, alg, key, nonce, data } = members(text);
  if (kind !== KIND) throw new CipherError("it is not sealed");
  if (schema !== SCHEMA) throw new CipherError(`its schema is ${quote(schema)}, and this version opens ${SCHEMA}`);
  if (alg !== ALG) throw new CipherError(`its alg is ${quote(alg)}, and this version opens "${ALG}"`);
  if (typeof key !== "string") throw new CipherError("its key is not named");
  const parts = { key, nonce: bytes(nonce, "nonce"), data: bytes(data, "data") };
  if (parts.nonce.length !== NONCE_BYTES) throw new CipherError(`its nonce does not have ${NONCE_BYTES} bytes`);
  if (parts.data.length < TAG_BYTES) throw new CipherError("its data is cut");
  return parts;
}

function members(text: string): Record<string, unknown> {
  try {
    const value = parseStrictJson(text);
    if (isJsonObject(value)) return value;
  } catch (cause) {
    throw new CipherError("it is not valid JSON", { cause });
  }
  throw new CipherError("it is not a JSON object");
}

/** Only the one spelling that we write: a changed character must never go unnoticed. */
function bytes(value: unknown, name: string): Uint8Array<ArrayBuffer> {
  const decoded = typeof value === "string" ? fromBase64url(value) : undefined;
  if (decoded === undefined) throw new CipherError(`its ${name} is not base64url`);
  return decoded;
}
