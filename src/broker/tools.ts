/** Which tools a client sees and calls, judged on what the server reads. */
import { isJsonObject, type JsonObject, parseStrictJson } from "../http/strict-json.js";
import { quote } from "../redact.js";
import type { BrokerGrant } from "./policy.js";

/** The members of a message that decide what is called. */
const DECISIVE = new Set(["jsonrpc", "id", "method", "params", "name"]);
/** Implementation-defined errors of JSON-RPC 2.0 begin here. */
export const POLICY_REFUSED = -32_003;

/** Whether a tool is listed and may be called. */
export type ToolCheck = (name: string) => boolean;

/** The check of a grant; undefined where it leaves every tool. */
export function toolCheck({ tools, hideTools }: Pick<BrokerGrant, "tools" | "hideTools">): ToolCheck | undefined {
  if (tools === undefined && hideTools === undefined) return undefined;
  const allowed = (tools ?? ["*"]).map(globPattern);
  const hidden = (hideTools ?? []).map(globPattern);
  return (name) =>
    !/\p{C}/u.test(name) &&
    allowed.some((pattern) => pattern.test(name)) &&
    // A server may fold names: what is hidden in one form is hidden in all.
    !hidden.some((pattern) => pattern.test(name) || pattern.test(fold(name)));
}

function globPattern(glob: string): RegExp {
  const parts = glob.split("*").map((part) => part.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`, "su");
}

function fold(text: string): string {
  return text.normalize("NFKC").toUpperCase().toLowerCase();
}

/** What a body asks for. */
export interface JudgedBody {
  /** The tools that it calls. */
  readonly tools: readonly string[];
  /** The answer, if the policy refuses it. */
  readonly refusal?: unknown;
}

/**
 * Judges the messages of a request. Parsers disagree about a text with a name twice, in two cases of its letters, or in
 * bytes that are no UTF-8: such a text is refused.
 */
export function judgeBody(bytes: Uint8Array, isAllowed: ToolCheck): JudgedBody {
  let body: unknown;
  try {
    body = parseStrictJson(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes));
  } catch {
    return { tools: [], refusal: failure(null, -32_700, "the broker does not pass on a body that is not strict JSON") };
  }
  const messages = Array.isArray(body) ? body : [body];
  const tools: string[] = [];
  const refusals = messages.flatMap((message: unknown) => {
    const refusal = refusalOf(message, isAllowed, tools);
    return refusal === undefined ? [] : [refusal];
  });
  if (refusals.length === 0) return { tools };
  return { tools, refusal: Array.isArray(body) ? refusals : refusals[0] };
}

function refusalOf(message: unknown, isAllowed: ToolCheck, tools: string[]): JsonObject | undefined {
  if (!isJsonObject(message) || hasLookalike(message))
    return failure(null, -32_600, "the broker does not pass on what is no plain JSON-RPC message");
  if (message["method"] !== "tools/call") return undefined;
  const { params } = message;
  const name = isJsonObject(params) && !hasLookalike(params) ? params["name"] : undefined;
  if (typeof name === "string") tools.push(name);
  if (typeof name === "string" && isAllowed(name)) return undefined;
  const text =
    typeof name === "string"
      ? `the policy of the broker does not allow the tool ${quote(name, 80)}`
      : "the call names no tool";
  return failure(message["id"], POLICY_REFUSED, text, { reason: "policy" });
}

/** Some parsers take `Method` for `method`. */
function hasLookalike(object: JsonObject): boolean {
  return Object.keys(object).some((key) => !DECISIVE.has(key) && DECISIVE.has(fold(key)));
}

/** An error response of JSON-RPC. */
export function failure(id: unknown, code: number, message: string, data?: JsonObject): JsonObject {
  const isId = typeof id === "string" || typeof id === "number";
  return { jsonrpc: "2.0", id: isId ? id : null, error: { code, message, ...(data && { data }) } };
}

/** A text with messages of a server, without the tools that are hidden; the same text if it lists none of them. */
export function withoutHidden(text: string, isAllowed: ToolCheck): string {
  if (!text.includes("tools")) return text;
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return text;
  }
  let isChanged = false;
  for (const message of Array.isArray(body) ? body : [body]) {
    const result: unknown = isJsonObject(message) ? message["result"] : undefined;
    if (!isJsonObject(result) || !Array.isArray(result["tools"])) continue;
    const listed = result["tools"].filter((tool) => isJsonObject(tool) && isAllowed(String(tool["name"])));
    isChanged ||= listed.length < result["tools"].length;
    result["tools"] = listed;
  }
  return isChanged ? JSON.stringify(body) : text;
}

/** The lines of a stream of events, its messages without the tools that are hidden. */
export function filterEvents(body: ReadableStream<Uint8Array>, isAllowed: ToolCheck): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const encoder = new TextEncoder();
  let rest = "";
  return new ReadableStream({
    async pull(controller) {
      for (;;) {
        const { done, value } = await reader.read();
        rest += decoder.decode(value, { stream: !done });
        const end = done ? rest.length : lastBreak(rest);
        if (end > 0) controller.enqueue(encoder.encode(filterBlocks(rest.slice(0, end), isAllowed)));
        rest = rest.slice(end);
        if (done) return controller.close();
        if (end > 0) return;
        if (rest.length > MAX_EVENT) throw new Error("an event of the server is too long");
      }
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

const MAX_EVENT = 16 * 1024 * 1024;

/** Where the last whole event ends. */
function lastBreak(text: string): number {
  let end = 0;
  // A carriage return at the end may be half of a line break.
  for (const { 0: mark, index } of text.matchAll(/(?:\r\n|\n|\r(?!\n|$)){2}/g)) end = index + mark.length;
  return end;
}

function filterBlocks(text: string, isAllowed: ToolCheck): string {
  if (!text.includes("tools")) return text;
  return text
    .replace(/\r\n?/g, "\n")
    .split("\n\n")
    .map((block) => {
      const lines = block.split("\n");
      const data = lines.filter((line) => line.startsWith("data")).map((line) => line.replace(/^data:? ?/, ""));
      const whole = data.join("\n");
      const shown = withoutHidden(whole, isAllowed);
      if (shown === whole) return block;
      return [...lines.filter((line) => !line.startsWith("data")), `data: ${shown}`].join("\n");
    })
    .join("\n\n");
}
