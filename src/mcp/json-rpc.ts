import { isJsonObject } from "../http/strict-json.js";

/** What names a request, and the answer to it. */
export type RpcId = string | number;

/** An error object of JSON-RPC 2.0 (section 5.1). */
export interface RpcError {
  code: number;
  message: string;
  data?: unknown;
}

/** A request; it is owed an answer. */
export interface RpcRequest {
  jsonrpc: "2.0";
  id: RpcId;
  method: string;
  params?: unknown;
}

/** A message without an answer. */
export interface RpcNotification {
  jsonrpc: "2.0";
  id?: never;
  method: string;
  params?: unknown;
}

/** The answer to a request. */
export interface RpcResponse {
  jsonrpc: "2.0";
  /** Absent or null where the request could not be read. */
  id?: RpcId | null;
  method?: never;
  result?: unknown;
  error?: RpcError;
}

/** A message, distinguished by its frame alone: what its method means is between host and server. */
export type RpcMessage = RpcRequest | RpcNotification | RpcResponse;

/** JSON-RPC's own codes for what is wrong with a message, and for what went wrong on the way (section 5.1). */
export const RPC_CODES = { parse: -32_700, invalid: -32_600, internal: -32_603 } as const;

/** Whether a message is owed an answer. */
export function isRequest(message: RpcMessage): message is RpcRequest {
  return message.method !== undefined && message.id !== undefined;
}

/** Whether a message is the answer to a request. */
export function isResponse(message: RpcMessage): message is RpcResponse {
  return message.method === undefined;
}

/** An answer that says what went wrong. */
export function failure(id: RpcId | null, error: RpcError): RpcResponse {
  return { jsonrpc: "2.0", id, error };
}

/** The member `name` of a message's `params`; undefined where there is none. */
export function param(message: RpcMessage, name: string): unknown {
  const { params } = message as RpcRequest;
  return isJsonObject(params) ? params[name] : undefined;
}

/** Reads a line of a host; what is no message comes back as the failure to answer it with. */
export function readMessage(line: string): { message: RpcMessage } | { failure: RpcResponse } {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return { failure: failure(null, { code: RPC_CODES.parse, message: "the line is not JSON" }) };
  }
  if (Array.isArray(value)) return invalid(null, "batches are not passed on: send each message on a line of its own");
  if (!isJsonObject(value)) return invalid(null, "the message is not a JSON object");
  const { id } = value;
  const named = typeof id === "string" || typeof id === "number" ? id : null;
  if (value["jsonrpc"] !== "2.0") return invalid(named, 'the message does not say "jsonrpc": "2.0"');
  if (typeof value["method"] === "string") {
    if ("id" in value && named === null) return invalid(null, "the id is neither a string nor a number");
    return { message: value as unknown as RpcRequest };
  }
  const isAnswer = "result" in value !== "error" in value;
  if (!isAnswer) return invalid(named, "the message is neither a request nor an answer to one");
  return { message: value as unknown as RpcResponse };
}

function invalid(id: RpcId | null, message: string): { failure: RpcResponse } {
  return { failure: failure(id, { code: RPC_CODES.invalid, message }) };
}
