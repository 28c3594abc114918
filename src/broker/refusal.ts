/** What a broker answers by itself. */
import { orUndefined } from "../errors.js";
import { HttpResponse } from "../http/http-message.js";
import { isJsonObject } from "../http/strict-json.js";
import { parseExactJson, type RpcResponse, readRpcId, rpcErrorResponse, writeExactJson } from "../mcp/json-rpc.js";
import type { AgentEvent } from "../telemetry/events.js";

/** Why a broker answers by itself: the policy, the form of the request, a login that is needed, or the server. */
export type BrokerRefusal = NonNullable<AgentEvent<"broker">["refused"]>;

/** An implementation-defined error of JSON-RPC: the broker did not get the response of the server. */
const LOCAL_FAILURE = -32_001;

/** What an answer has beside its reason. */
export interface RefusalContent {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
  /** The body of the request: the answer to requests of JSON-RPC has their `id`. */
  readonly sent?: string | Uint8Array | undefined;
}

/** The answer for a reason: an error of JSON-RPC to a request of that kind, and JSON to another one. */
export function refusalResponse(
  why: BrokerRefusal,
  status: number,
  { headers, body, sent }: RefusalContent = {},
): Response {
  const content = body ?? (sent === undefined ? undefined : buildFailures(sent, why)) ?? { error: { code: why } };
  const own = { "content-type": "application/json", "cache-control": "no-store" };
  return new HttpResponse(writeExactJson(content), { status, headers: { ...headers, ...own } });
}

/** An error for each request of JSON-RPC in a body; undefined for a body without one. */
function buildFailures(sent: string | Uint8Array, why: BrokerRefusal): RpcResponse | RpcResponse[] | undefined {
  const body = orUndefined(() => parseExactJson(typeof sent === "string" ? sent : new TextDecoder().decode(sent)));
  const error = { code: LOCAL_FAILURE, message: `the broker did not pass the request on: ${why}`, data: { code: why } };
  const responses = [body].flat().flatMap((message: unknown) => {
    const isRequest = isJsonObject(message) && message["jsonrpc"] === "2.0" && message["id"] !== undefined;
    return isRequest ? [rpcErrorResponse(readRpcId(message), error)] : [];
  });
  return Array.isArray(body) && responses.length > 0 ? responses : responses[0];
}
