import { describe, expect, it } from "vitest";
import { type RpcRequest, readMessage } from "../../src/mcp/json-rpc.js";
import { ParamHeaders } from "../../src/mcp/param-headers.js";

const request = (method: string, params: unknown): RpcRequest => {
  const read = readMessage(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }));
  if ("failure" in read) throw new Error(read.failure.error?.message);
  return read.message as RpcRequest;
};

function headersOf(name: string): ParamHeaders {
  const headers = new ParamHeaders();
  const inputSchema = { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } } };
  const result = { tools: [{ name, inputSchema }] };
  headers.update(request("tools/list", {}), { jsonrpc: "2.0", id: 1, result });
  return headers;
}

describe("the headers of a tool's arguments", () => {
  it("are those of the called tool", () => {
    const call = { name: "echo", arguments: { region: "eu" } };
    expect(headersOf("echo").of(request("tools/call", call))).toEqual({ "Mcp-Param-Region": "eu" });
    expect(headersOf("other").of(request("tools/call", call))).toEqual({});
  });

  it.each<[string, unknown, string]>([
    ["an object", {}, "[object Object]"],
    ["an object that makes no text", { toString: 1, valueOf: 1 }, "[object Object]"],
    ["a list", ["echo"], "echo"],
    ["a number", 5, "5"],
    ["null", null, "null"],
    ["missing", undefined, "undefined"],
  ])("are none if the name is %s: the server rejects the call", (_what, name, text) => {
    expect(headersOf(text).of(request("tools/call", { name, arguments: { region: "eu" } }))).toEqual({});
  });
});
