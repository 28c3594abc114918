import { plainNames } from "./record-names.js";

/** Turns the text of a record into what is stored, and back. */
export interface RecordCipher {
  /**
   * What is stored.
   *
   * @param name the record's own name, bound into the result so that records cannot be swapped
   */
  seal(text: string, name: string): string | Promise<string>;
  /**
   * The text.
   *
   * @throws an error named `CipherError` where the text cannot be opened
   */
  open(sealed: string, name: string): string | Promise<string>;
}

/** The records that share one cipher: those of one tenant. */
export interface SealPlace {
  /** Their partition. */
  readonly partition: string;
  /** Reads the record of the kind `key` with this id, which is in their partition. */
  readKey(id: string): Promise<string | undefined>;
  /**
   * Stores that record if there is none.
   *
   * @returns false if there is one; nothing has changed then
   */
  createKey(id: string, text: string): Promise<boolean>;
}

/** Protects what an engine holds: {@link keyRing} and {@link envelope} make one. */
export interface Sealing {
  /** A name that shows nothing about the text, and is the same in every process with the same name key. */
  nameOf(text: string): Promise<string>;
  /** The cipher for the records of one tenant. */
  cipherFor(place: SealPlace): RecordCipher;
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
