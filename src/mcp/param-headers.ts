import { isJsonObject } from "../http/strict-json.js";
import { type RpcRequest, type RpcResponse, readParam } from "./json-rpc.js";

/** A mark in the schema of a tool, which may be wrong: an argument is repeated in the header of this name. */
interface Mark {
  readonly path: readonly string[];
  readonly name: unknown;
  readonly type: unknown;
}

type UsableMark = Mark & { readonly name: string };

type RequestContent = Pick<RpcRequest, "method" | "params">;

const HEADER_NAME = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/;
const HEADER_VALUE = /^(?!=\?base64\?.*\?=$)[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/;
const MAX_DEPTH = 16;

/**
 * Repeats arguments of tools in `Mcp-Param-*` headers. Streamable HTTP requires it since revision 2026-07-28 for arguments
 * that the tool's schema marks with `x-mcp-header`. A host on stdio sends no headers, so the proxy reads the schemas from
 * the responses to `tools/list`.
 */
export class ParamHeaders {
  readonly #tools = new Map<string, UsableMark[]>();

  /** Reads the schemas in a response to `tools/list`; the first page replaces all earlier ones. */
  update(request: RequestContent, response: Pick<RpcResponse, "result">): void {
    if (request.method !== "tools/list" || !isJsonObject(response.result)) return;
    if (readParam(request, "cursor") === undefined) this.#tools.clear();
    const { tools } = response.result;
    for (const tool of Array.isArray(tools) ? tools : []) {
      if (!isJsonObject(tool) || typeof tool["name"] !== "string") continue;
      const found = [...marksIn(tool["inputSchema"], [])].filter(isUsable);
      if (found.length > 0) this.#tools.set(tool["name"], found);
    }
  }

  /** The headers of a request of a revision without sessions, which says of itself what a session would know. */
  ofSessionless(request: RpcRequest, revision: string): Record<string, string> {
    return { ...this.of(request), ...sessionlessHeaders(request, revision) };
  }

  of(request: RequestContent): Record<string, string> {
    if (request.method !== "tools/call") return {};
    const [tool, args] = [readParam(request, "name"), readParam(request, "arguments")];
    // A call with an invalid name is forwarded: the server rejects it.
    const mirrored = (typeof tool === "string" && this.#tools.get(tool)) || [];
    const headers = mirrored.flatMap(({ path, name }) => {
      const value = path.reduce<unknown>((node, key) => (isJsonObject(node) ? node[key] : undefined), args);
      const text = typeof value === "string" || typeof value === "boolean" ? String(value) : wholeNumber(value);
      return text === undefined ? [] : [[`Mcp-Param-${name}`, headerValue(text)] as const];
    });
    return Object.fromEntries(headers);
  }
}

/** The parameter that `Mcp-Name` repeats, by method. */
const NAMED_BY = new Map([
  ["tools/call", "name"],
  ["prompts/get", "name"],
  ["resources/read", "uri"],
]);

/** The headers that repeat what a request without a session says of itself. */
export function sessionlessHeaders(request: RpcRequest, revision: string): Record<string, string> {
  return { "mcp-protocol-version": revision, ...methodHeaders(request) };
}

/** The headers that repeat the method of a message, and the name that it is for. */
export function methodHeaders(message: { readonly method: string; readonly params?: unknown }): Record<string, string> {
  const field = NAMED_BY.get(message.method);
  const name = field && readParam(message, field);
  return {
    "mcp-method": headerValue(message.method),
    ...(typeof name === "string" && { "mcp-name": headerValue(name) }),
  };
}

const PRIMITIVES: readonly unknown[] = ["string", "integer", "number", "boolean"];

/** Whether a tool marks its arguments as the protocol allows: a client over HTTP must leave out any other. */
export function hasValidMarks(inputSchema: unknown): boolean {
  const marks = [...marksIn(inputSchema, [])];
  const names = new Set(marks.map(({ name }) => String(name).toLowerCase()));
  return names.size === marks.length && marks.every((mark) => isUsable(mark) && PRIMITIVES.includes(mark.type));
}

function* marksIn(schema: unknown, path: readonly string[]): Generator<Mark> {
  if (!isJsonObject(schema) || path.length > MAX_DEPTH) return;
  const { "x-mcp-header": name, type, properties } = schema;
  if (name !== undefined) yield { path, name, type };
  if (!isJsonObject(properties)) return;
  for (const [key, child] of Object.entries(properties)) yield* marksIn(child, [...path, key]);
}

function isUsable(mark: Mark): mark is UsableMark {
  return typeof mark.name === "string" && HEADER_NAME.test(mark.name) && mark.path.length > 0;
}

function wholeNumber(value: unknown): string | undefined {
  return Number.isSafeInteger(value) ? String(value) : undefined;
}

/** Text as a header's value; base64 for text that a header cannot contain. */
function headerValue(text: string): string {
  return HEADER_VALUE.test(text) ? text : `=?base64?${Buffer.from(text).toString("base64")}?=`;
}
