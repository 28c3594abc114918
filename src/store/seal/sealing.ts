import { fromBase64url, toBase64url } from "../../http/base64url.js";
import { Lru } from "../../http/lru.js";
import { isJsonObject, parseStrictJson } from "../../http/strict-json.js";
import { quote } from "../../redact.js";

const ENCODER = new TextEncoder();
const MAX_NAMES = 10_000;

/** Names by HMAC-SHA-256 (RFC 2104), so that an engine shows neither an address nor an account. */
export function keyedNames(bytes: Uint8Array<ArrayBuffer>): (text: string) => Promise<string> {
  const key = crypto.subtle.importKey("raw", bytes, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  key.catch(() => {});
  return cacheDigests(async (text) => crypto.subtle.sign("HMAC", await key, ENCODER.encode(text)));
}

/** A driver takes names of up to 1,024 bytes; a code unit has at most three. */
const MAX_PLAIN = 341;

/**
 * Names for records that are not sealed either: the text, or the SHA-256 of a long one. No text is like a hash: each is a
 * JSON array.
 */
function plainNames(): (text: string) => Promise<string> {
  const hashed = cacheDigests((text) => crypto.subtle.digest("SHA-256", ENCODER.encode(text)));
  return async (text) => (text.length <= MAX_PLAIN ? text : hashed(text));
}

function cacheDigests(digest: (text: string) => Promise<ArrayBuffer>): (text: string) => Promise<string> {
  const names = new Lru<Promise<string>>(MAX_NAMES);
  return (text) => {
    const known = names.get(text);
    if (known !== undefined) return known;
    const name = digest(text).then((bytes) => toBase64url(new Uint8Array(bytes)));
    names.set(text, name);
    name.catch(() => names.delete(text));
    return name;
  };
}

/** Turns the text of a record into what is stored, and back. */
export interface RecordCipher {
  /** What is stored. @param name the record's own name, bound into the result so that records cannot be swapped */
  seal(text: string, name: string): string | Promise<string>;
  /** The text. @throws an error named `CipherError` where the text cannot be opened */
  open(sealed: string, name: string): string | Promise<string>;
}

/** The records that share one cipher: those of one tenant. */
export interface RecordLocation {
  /** Their partition. */
  readonly partition: string;
  /** Reads the record of the kind `key` with this id, which is in their partition. */
  readKey(id: string): Promise<string | undefined>;
  /** Stores that record if there is none. @returns false if there is one; nothing has changed then */
  createKey(id: string, text: string): Promise<boolean>;
}

/** Protects what an engine holds: {@link keyRing} and {@link envelope} make one. */
export interface Sealing {
  /** A name that shows nothing about the text, and is the same in every process with the same name key. */
  nameOf(text: string): Promise<string>;
  /** The cipher for the records of one tenant. */
  cipherFor(location: RecordLocation): RecordCipher;
}

/** Why a sealed text cannot be opened. */
export class CipherError extends Error {
  override readonly name: string = "CipherError";
}

/** The key that a text was sealed with was deleted: what it protected is gone for good. */
export class KeyDeletedError extends CipherError {}

/** Stores texts as they are. */
export function noSealing(): Sealing {
  const plain = (text: string) => text;
  return { nameOf: plainNames(), cipherFor: () => ({ seal: plain, open: plain }) };
}

const SCHEMA = 1;
/** What the member `kind` says. */
export const KIND = "sealed";
const ALG = "A256GCM";
/** Of AES-GCM (NIST SP 800-38D section 5.2.1.1). */
export const NONCE_BYTES = 12;
/** Of the authentication tag, which ends the data. */
const TAG_BYTES = 16;

export interface SealedParts {
  readonly key: string;
  readonly nonce: Uint8Array<ArrayBuffer>;
  /** The ciphertext and the tag behind it. */
  readonly data: Uint8Array<ArrayBuffer>;
}

/** The text of sealed parts. */
export function formatSealed({ key, nonce, data }: SealedParts): string {
  const members = { schema: SCHEMA, kind: KIND, alg: ALG, key };
  return `${JSON.stringify({ ...members, nonce: toBase64url(nonce), data: toBase64url(data) })}\n`;
}

/** @throws CipherError where the text is not sealed, or not as this version seals */
export function parseSealed(text: string): SealedParts {
  const { schema, kind, alg, key, nonce, data } = parseMembers(text);
  if (kind !== KIND) throw new CipherError("it is not sealed");
  if (schema !== SCHEMA) throw new CipherError(`its schema is ${quote(schema)}, and this version opens ${SCHEMA}`);
  if (alg !== ALG) throw new CipherError(`its alg is ${quote(alg)}, and this version opens "${ALG}"`);
  if (typeof key !== "string") throw new CipherError("its key is not named");
  const parts = { key, nonce: readBytes(nonce, "nonce"), data: readBytes(data, "data") };
  if (parts.nonce.length !== NONCE_BYTES) throw new CipherError(`its nonce does not have ${NONCE_BYTES} bytes`);
  if (parts.data.length < TAG_BYTES) throw new CipherError("its data is cut");
  return parts;
}

function parseMembers(text: string): Record<string, unknown> {
  try {
    const value = parseStrictJson(text);
    if (isJsonObject(value)) return value;
  } catch (cause) {
    throw new CipherError("it is not valid JSON", { cause });
  }
  throw new CipherError("it is not a JSON object");
}

/** Only the one spelling that we write: a changed character must never go unnoticed. */
function readBytes(value: unknown, name: string): Uint8Array<ArrayBuffer> {
  const decoded = typeof value === "string" ? fromBase64url(value) : undefined;
  if (decoded === undefined) throw new CipherError(`its ${name} is not base64url`);
  return decoded;
}
