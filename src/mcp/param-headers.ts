import { isJsonObject } from "../http/strict-json.js";
import { param, type RpcRequest, type RpcResponse } from "./json-rpc.js";

/** An argument of a tool that the server wants to see in a header too: where it stands, and the header's name. */
interface Mirrored {
  readonly path: readonly string[];
  readonly name: string;
}

const TOKEN = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}$/;
const PLAIN = /^(?!=\?base64\?.*\?=$)[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?$/;
const MAX_DEPTH = 16;

/**
 * Mirrors arguments of tools in `Mcp-Param-*` headers, as streamable HTTP of the revision 2026-07-28 demands where a
 * tool's schema marks them with `x-mcp-header`. A host on a pipe knows nothing of headers; what the tools want is learnt
 * from the lists that pass.
 */
export class ParamHeaders {
  readonly #tools = new Map<string, Mirrored[]>();

  /** Learns from an answer to `tools/list`; its first page clears the rest. */
  learn(request: RpcRequest, response: RpcResponse): void {
    if (request.method !== "tools/list" || !isJsonObject(response.result)) return;
    if (param(request, "cursor") === undefined) this.#tools.clear();
    const { tools } = response.result;
    for (const tool of Array.isArray(tools) ? tools : []) {
      if (!isJsonObject(tool) || typeof tool["name"] !== "string") continue;
      const found = [...mirroredIn(tool["inputSchema"], [])];
      if (found.length > 0) this.#tools.set(tool["name"], found);
    }
  }

  /** The headers of a request. */
  of(request: RpcRequest): Record<string, string> {
    if (request.method !== "tools/call") return {};
    const [tool, given] = [param(request, "name"), param(request, "arguments")];
    // Of what is no name, no tool is known: to refuse such a call is the server's part.
    const wanted = (typeof tool === "string" && this.#tools.get(tool)) || [];
    const headers = wanted.flatMap(({ path, name }) => {
      const value = path.reduce<unknown>((node, key) => (isJsonObject(node) ? node[key] : undefined), given);
      const text = typeof value === "string" || typeof value === "boolean" ? String(value) : wholeNumber(value);
      return text === undefined ? [] : [[`Mcp-Param-${name}`, encoded(text)] as const];
    });
    return Object.fromEntries(headers);
  }
}

function* mirroredIn(schema: unknown, path: readonly string[]): Generator<Mirrored> {
  if (!isJsonObject(schema) || path.length > MAX_DEPTH) return;
  const name = schema["x-mcp-header"];
  if (typeof name === "string" && TOKEN.test(name) && path.length > 0) yield { path, name };
  const { properties } = schema;
  if (!isJsonObject(properties)) return;
  for (const [key, child] of Object.entries(properties)) yield* mirroredIn(child, [...path, key]);
}

function wholeNumber(value: unknown): string | undefined {
  return Number.isSafeInteger(value) ? String(value) : undefined;
}

/** What cannot stand in a header as it is goes in base64. */
function encoded(text: string): string {
  return PLAIN.test(text) ? text : `=?base64?${Buffer.from(text).toString("base64")}?=`;
}
