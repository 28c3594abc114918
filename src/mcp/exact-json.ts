/** JSON whose numbers keep their digits when it is written again: a double has about 16 of them. */
import { parseStrictJson, StrictJsonError } from "../http/strict-json.js";

/** Parsers of some hosts fail at a thousand levels. */
export const MAX_LEVELS = 500;
/** What a text has whose numbers may lose digits. */
const MAY_LOSE = /[\d.]{16}|\d[eE]/;
const LONGEST_NUMBER = 1000;

/** A number with a fraction or an exponent that no double has. */
class ExactNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** `JSON.stringify` throws, as it does for a `bigint`. */
  toJSON(): bigint {
    return 0n;
  }
}

/**
 * Parses strict JSON of up to 500 levels. A whole number beyond 2^53 is a `bigint`.
 *
 * @throws StrictJsonError
 */
export function parseExactJson(text: string): unknown {
  return parseStrictJson(text, {
    maxDepth: MAX_LEVELS,
    readNumber: MAY_LOSE.test(text) ? readExactNumber : undefined,
  });
}

/**
 * Parses what a server writes, which may be less than strict.
 *
 * @param isAsWritten whether numbers keep their spelling, such as 1.0
 * @throws SyntaxError
 */
export function parseServerJson(text: string, isAsWritten = false): unknown {
  if (!isAsWritten && !MAY_LOSE.test(text)) return JSON.parse(text);
  try {
    return isAsWritten
      ? parseStrictJson(text, { maxDepth: MAX_LEVELS, readNumber: readWritten })
      : parseExactJson(text);
  } catch (error) {
    if (error instanceof StrictJsonError) return JSON.parse(text);
    throw error;
  }
}

/** The JSON of a value that {@link parseExactJson} has parsed, or of another one. @param indent spaces a level */
export function writeExactJson(value: unknown, indent?: number): string {
  try {
    return JSON.stringify(value, null, indent);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
  }
  // It is before the digits of a number until they are written. No text of a peer has it.
  const mark = `${globalThis.crypto.randomUUID()} `;
  const written = JSON.stringify(
    value,
    function (this: Record<string, unknown>, key, member: unknown) {
      const held = this[key];
      if (held instanceof ExactNumber) return `${mark}${held.text}`;
      return typeof member === "bigint" ? `${mark}${member}` : member;
    },
    indent,
  );
  return written.replaceAll(new RegExp(`"${mark}([^"]*)"`, "g"), "$1");
}

/** Whether a value is a number, in whatever form it was parsed. */
export function isNumber(value: unknown): boolean {
  return ["number", "bigint"].includes(typeof value) || value instanceof ExactNumber;
}

function readWritten(text: string): unknown {
  return String(Number(text)) === text ? Number(text) : new ExactNumber(text);
}

function readExactNumber(text: string): unknown {
  const value = Number(text);
  if (text.length > LONGEST_NUMBER || !Number.isFinite(value)) return undefined;
  if (/^-?\d+$/.test(text)) return Number.isSafeInteger(value) ? value : BigInt(text);
  return digitsOf(text) === digitsOf(String(value)) ? value : new ExactNumber(text);
}

/** A number as its digits and the power of ten behind them, the same for all its spellings. */
function digitsOf(text: string): string {
  const [, sign, whole = "", fraction = "", exponent = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(text) ?? [];
  const digits = `${whole}${fraction}`.replace(/^0+/, "");
  const bare = digits.replace(/0+$/, "");
  return bare === "" ? "0" : `${sign}${bare}e${Number(exponent) - fraction.length + digits.length - bare.length}`;
}
