/** Which tools a client sees and calls, judged on what the server reads. */
import { orUndefined } from "../errors.js";
import { isJsonObject } from "../http/strict-json.js";
import {
  parseExactJson,
  parseServerJson,
  RPC_CODES,
  type RpcMessage,
  readParam,
  readRpcId,
  rpcErrorResponse,
  writeExactJson,
} from "../mcp/json-rpc.js";
import { methodHeaders, type ParamHeaders } from "../mcp/param-headers.js";
import { ToolPolicy } from "../mcp/tool-policy.js";
import type { BrokerGrant } from "./policy.js";

/** Implementation-defined errors of JSON-RPC 2.0 begin here. */
const POLICY_REFUSED = -32_003;

/** The tools of a grant; undefined where it leaves every tool. */
export function toolPolicy({ tools, hideTools }: Pick<BrokerGrant, "tools" | "hideTools">): ToolPolicy | undefined {
  const policy = new ToolPolicy({ allow: tools, hide: hideTools });
  return policy.isOpen ? undefined : policy;
}

/** What a body asks for, and how it is sent. */
export interface JudgedBody {
  readonly tools: readonly string[];
  /** The answer, if the policy refuses it. */
  readonly refusal?: unknown;
  /** The message as it was judged; undefined for a batch, and if it is refused. */
  readonly message?: RpcMessage;
  /** The body, written from what was judged; empty if it is refused. */
  readonly body: string;
}

/** Whether a body is read as it is judged: JSON in UTF-8 (RFC 8259 section 8.1). */
export function isJudged({ headers }: Request): boolean {
  return (
    !headers.has("content-encoding") &&
    /^application\/json(?:[ \t]*;[ \t]*charset="?utf-8"?)?$/i.test(headers.get("content-type") ?? "")
  );
}

/**
 * Judges the messages of a request. Parsers disagree about a text with a name twice, or in bytes that are no UTF-8: such a
 * text is refused.
 */
export function judgeBody(bytes: Uint8Array, policy: ToolPolicy): JudgedBody {
  let parsed: unknown;
  try {
    parsed = parseExactJson(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    const error = { code: RPC_CODES.parse, message: "the broker does not pass on what is no strict JSON" };
    return { tools: [], refusal: rpcErrorResponse(null, error), body: "" };
  }
  const messages: readonly unknown[] = Array.isArray(parsed) ? parsed : [parsed];
  const tools = messages.flatMap((message) => {
    const isCall = isJsonObject(message) && message["method"] === "tools/call";
    const name = isCall ? readParam(message as unknown as RpcMessage, "name") : "";
    return typeof name === "string" && name !== "" ? [name] : [];
  });
  const refusals = messages.flatMap((message) => {
    if (!isJsonObject(message))
      return [
        rpcErrorResponse(null, { code: RPC_CODES.invalid, message: "the broker does not pass on what is no message" }),
      ];
    const reason = policy.refuse(message as unknown as RpcMessage);
    const data = { reason: "policy" };
    return reason === undefined
      ? []
      : [rpcErrorResponse(readRpcId(message), { code: POLICY_REFUSED, message: reason, data })];
  });
  if (refusals.length > 0) return { tools, refusal: Array.isArray(parsed) ? refusals : refusals[0], body: "" };
  const body = writeExactJson(parsed);
  return { tools, body, ...(!Array.isArray(parsed) && { message: parsed as RpcMessage }) };
}

/**
 * The headers that repeat what a judged message says: a server, or a gateway before it, may read them in its place.
 *
 * @param marks what the lists of the server have said of the arguments of its tools
 */
export function judgedHeaders(message: RpcMessage | undefined, marks: ParamHeaders): Record<string, string> {
  if (typeof message?.method !== "string") return {};
  return { ...methodHeaders(message), ...marks.of(message) };
}

/** A text with messages of a server, without the tools that are hidden; the same text if it lists none of them. */
export function withoutHidden(text: string, policy: ToolPolicy, onResult?: (result: unknown) => void): string {
  if (!text.includes("tools")) return text;
  const body = orUndefined(() => parseServerJson(text));
  let isChanged = false;
  for (const message of Array.isArray(body) ? body : [body]) {
    if (!isJsonObject(message)) continue;
    onResult?.(message["result"]);
    const listed = policy.filterList(message["result"]);
    isChanged ||= listed !== message["result"];
    message["result"] = listed;
  }
  return isChanged ? writeExactJson(body) : text;
}

/** The lines of a stream of events, its messages without the tools that are hidden. */
export function filterEvents(
  body: ReadableStream<Uint8Array>,
  policy: ToolPolicy,
  onResult?: (result: unknown) => void,
): ReadableStream<Uint8Array> {
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let rest = "";
  return body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(part, controller) {
        rest += decoder.decode(part, { stream: true });
        const end = lastBreak(rest);
        controller.enqueue(encoder.encode(filterBlocks(rest.slice(0, end), policy, onResult)));
        rest = rest.slice(end);
        if (rest.length > MAX_EVENT) throw new Error("an event of the server is too long");
      },
      flush: (controller) =>
        controller.enqueue(encoder.encode(filterBlocks(rest + decoder.decode(), policy, onResult))),
    }),
  );
}

const MAX_EVENT = 16 * 1024 * 1024;

function lastBreak(text: string): number {
  let end = 0;
  // A carriage return at the end may be half of a line break.
  for (const { 0: mark, index } of text.matchAll(/(?:\r\n|\n|\r(?!\n|$)){2}/g)) end = index + mark.length;
  return end;
}

/** Whether a line of an event has data: a field that only begins so has another name. */
function isData(line: string): boolean {
  return /^data(?:$|:)/.test(line);
}

function filterBlocks(text: string, policy: ToolPolicy, onResult?: (result: unknown) => void): string {
  if (!text.includes("tools")) return text;
  return text
    .replace(/\r\n?/g, "\n")
    .split("\n\n")
    .map((block) => {
      const lines = block.split("\n");
      const data = lines.filter(isData).map((line) => line.replace(/^data:? ?/, ""));
      const whole = data.join("\n");
      const shown = withoutHidden(whole, policy, onResult);
      if (shown === whole) return block;
      return [...lines.filter((line) => !isData(line)), `data: ${shown}`].join("\n");
    })
    .join("\n\n");
}
