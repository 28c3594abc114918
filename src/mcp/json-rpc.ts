import { errorMessage } from "../errors.js";
import {
  deleteNulls,
  isJsonObject,
  type JsonObject,
  parseAnyJson,
  parseStrictJson,
  StrictJsonError,
} from "../http/strict-json.js";
import { quote } from "../redact.js";

/** JSON whose numbers keep their digits when it is written again: a double has about 16 of them. */

/** Parsers of some hosts fail at a thousand levels. */
const MAX_LEVELS = 500;
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

/** Parses strict JSON of up to 500 levels. A whole number beyond 2^53 is a `bigint`. @throws StrictJsonError */
export function parseExactJson(text: string): unknown {
  return parseStrictJson(text, { maxDepth: MAX_LEVELS, readNumber: MAY_LOSE.test(text) ? readExactNumber : undefined });
}

/**
 * Parses what a server writes, which may be less than strict.
 *
 * @param isAsWritten whether numbers keep their spelling, such as 1.0
 * @throws SyntaxError
 */
export function parseServerJson(text: string, isAsWritten = false): unknown {
  if (!isAsWritten && !MAY_LOSE.test(text)) return parseAnyJson(text);
  try {
    return isAsWritten
      ? parseStrictJson(text, { maxDepth: MAX_LEVELS, readNumber: readWritten })
      : parseExactJson(text);
  } catch (error) {
    if (error instanceof StrictJsonError) return parseAnyJson(text);
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
  return normalizeDigits(text) === normalizeDigits(String(value)) ? value : new ExactNumber(text);
}

/** A number as its digits and the power of ten behind them, the same for all its spellings. */
function normalizeDigits(text: string): string {
  const [, sign, whole = "", fraction = "", exponent = "0"] =
    /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]?\d+))?$/i.exec(text) ?? [];
  const digits = `${whole}${fraction}`.replace(/^0+/, "");
  const bare = digits.replace(/0+$/, "");
  return bare === "" ? "0" : `${sign}${bare}e${Number(exponent) - fraction.length + digits.length - bare.length}`;
}

/** Identifies a request and its response. */
export type RpcId = string | number | bigint;

/** An error object of JSON-RPC 2.0 (section 5.1). */
export interface RpcError {
  code: number;
  message: string;
  data?: unknown;
}

/** A request, which gets a response. */
export interface RpcRequest {
  jsonrpc: "2.0";
  id: RpcId;
  method: string;
  params?: unknown;
}

/** A message without a response. */
export interface RpcNotification {
  jsonrpc: "2.0";
  id?: never;
  method: string;
  params?: unknown;
}

export interface RpcResponse {
  jsonrpc: "2.0";
  /** Absent or null if the request could not be parsed. */
  id?: RpcId | null;
  method?: never;
  result?: unknown;
  error?: RpcError;
}

/** A message; the proxy interprets few methods. */
export type RpcMessage = RpcRequest | RpcNotification | RpcResponse;

/** Error codes of JSON-RPC 2.0 (section 5.1). */
export const RPC_CODES = {
  parse: -32_700,
  invalid: -32_600,
  method: -32_601,
  params: -32_602,
  internal: -32_603,
} as const;

/** The request that begins a session. */
export const INITIALIZE = "initialize";

/** The notification after it. */
export const INITIALIZED = "notifications/initialized";

/** The notification that ends a request. */
export const CANCELLED = "notifications/cancelled";

/** A request whose response arrives only when the subscription ends. */
export const SUBSCRIPTION = "subscriptions/listen";

export function isRpcRequest(message: RpcMessage): message is RpcRequest {
  return message.method !== undefined && message.id !== undefined;
}

export function isRpcResponse(message: RpcMessage): message is RpcResponse {
  return message.method === undefined;
}

/** A message in the log: its method, never its content. */
export function describeMessage(message: RpcMessage): string {
  return isRpcResponse(message) ? "response" : quote(message.method, 80);
}

/** The `id` that the response to a message has; null where the message has none that JSON-RPC allows. */
export function readRpcId({ id }: { readonly id?: unknown }): RpcId | null {
  return typeof id === "string" || typeof id === "number" || typeof id === "bigint" ? id : null;
}

export function rpcErrorResponse(id: RpcId | null, error: RpcError): RpcResponse {
  return { jsonrpc: "2.0", id, error };
}

/** The notification that a request is not waited for any more. */
export function cancelledMessage(requestId: RpcId, reason: string): RpcMessage {
  return { jsonrpc: "2.0", method: CANCELLED, params: { requestId, reason } };
}

/** Whether a message is nested deeper than every host can be expected to read. */
export function isTooDeep(message: RpcMessage): boolean {
  return hasMoreLevels(message, MAX_LEVELS);
}

function hasMoreLevels(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => hasMoreLevels(member, levels - 1));
}

/** The member `name` of a message's `params`; undefined if absent. */
export function readParam(message: RpcMessage | Pick<RpcRequest, "params">, name: string): unknown {
  const { params } = message as RpcRequest;
  return isJsonObject(params) ? params[name] : undefined;
}

/** The member of `_meta` with which a request of a revision without sessions says what its client can do. */
export const CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities";

/** The message; where it declares what its client can do, with the extension that its connection uses. */
export function declareExtension(extension: string | undefined, message: RpcMessage): RpcMessage {
  const { method, params } = message as RpcRequest;
  if (extension === undefined || !isJsonObject(params)) return message;
  const declare = (name: string, { [name]: given, ...rest }: Record<string, unknown>) => {
    const capabilities = isJsonObject(given) ? given : {};
    const { extensions } = capabilities;
    const declared = { ...(isJsonObject(extensions) && extensions), [extension]: {} };
    return { ...rest, [name]: { ...capabilities, extensions: declared } };
  };
  if (method === INITIALIZE) return { ...message, params: declare("capabilities", params) } as RpcMessage;
  const { _meta: meta } = params;
  if (!isJsonObject(meta) || meta[CLIENT_CAPABILITIES] === undefined) return message;
  return { ...message, params: { ...params, _meta: declare(CLIENT_CAPABILITIES, meta) } } as RpcMessage;
}

/** Parses a line of the host. For an invalid message it returns the response to send. */
export function readMessage(line: string): { message: RpcMessage } | { failure: RpcResponse } {
  let value: unknown;
  try {
    value = parseExactJson(line);
  } catch (error) {
    const message = `the line is not strict JSON: ${errorMessage(error)}`;
    return { failure: rpcErrorResponse(null, { code: RPC_CODES.parse, message }) };
  }
  if (Array.isArray(value)) return rejectMessage(null, "batches are not supported: send one message per line");
  return checkMessage(value);
}

/** A parsed message. For an invalid one it returns the response to send. */
function checkMessage(value: unknown): { message: RpcMessage } | { failure: RpcResponse } {
  if (!isJsonObject(value)) return rejectMessage(null, "the message is not a JSON object");
  const validId = readRpcId(value);
  if (value["jsonrpc"] !== "2.0") return rejectMessage(validId, 'the message has no "jsonrpc": "2.0"');
  if (typeof value["method"] === "string") {
    if ("id" in value && validId === null) return rejectMessage(null, "the id is neither a string nor a number");
    return { message: value as unknown as RpcRequest };
  }
  const hasOutcome = "result" in value !== "error" in value;
  if (!hasOutcome) return rejectMessage(validId, "the message is neither a request nor a response");
  return { message: value as unknown as RpcResponse };
}

/** A parsed message of a server. @throws `SyntaxError` for an invalid one */
export function readServerMessage(value: unknown): RpcMessage {
  const read = checkMessage(isJsonObject(value) ? withoutNulls(value) : value);
  if ("message" in read) return read.message;
  throw new SyntaxError(`a message of the server is invalid: ${quote(read.failure.error?.message ?? "", 200)}`);
}

/** Some servers write null for each member that a message cannot have beside the others. */
function withoutNulls(message: JsonObject): JsonObject {
  const isRequest = typeof message["method"] === "string";
  const isFailure = isJsonObject(message["error"]);
  const unset = isRequest ? ["id", "params", "result", "error"] : ["method", "params", isFailure ? "result" : "error"];
  return deleteNulls(message, unset);
}

function rejectMessage(id: RpcId | null, message: string): { failure: RpcResponse } {
  return { failure: rpcErrorResponse(id, { code: RPC_CODES.invalid, message }) };
}
