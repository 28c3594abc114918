import { describe, expect, it } from "vitest";
import { type RpcRequest, readMessage } from "../../src/mcp/json-rpc.js";
import { hasValidMarks, ParamHeaders } from "../../src/mcp/param-headers.js";

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

  it("are known of each tool in a list that has others without a name", () => {
    const headers = new ParamHeaders();
    const inputSchema = { properties: { region: { type: "string", "x-mcp-header": "Region" } } };
    const tools = [null, "echo", { inputSchema }, { name: 5, inputSchema }, { name: "echo", inputSchema }];
    headers.update(request("tools/list", {}), { jsonrpc: "2.0", id: 1, result: { tools } });
    const call = { name: "echo", arguments: { region: "eu" } };
    expect(headers.of(request("tools/call", call))).toEqual({ "Mcp-Param-Region": "eu" });
  });

  it("are not those of a schema in another response, and stay where a list is an error", () => {
    const headers = headersOf("echo");
    const call = request("tools/call", { name: "echo", arguments: { region: "eu" } });
    headers.update(request("tools/list", {}), { jsonrpc: "2.0", id: 1, error: { code: 1, message: "no" } });
    expect(headers.of(call)).toEqual({ "Mcp-Param-Region": "eu" });
    const inputSchema = { properties: { region: { type: "string", "x-mcp-header": "Other" } } };
    headers.update(call, { jsonrpc: "2.0", id: 1, result: { tools: [{ name: "echo", inputSchema }] } });
    expect(headers.of(call)).toEqual({ "Mcp-Param-Region": "eu" });
  });

  it.each([
    [1, true],
    [16, true],
    [17, false],
  ])("are read from schemas that are %i deep: %s", (depth, isRead) => {
    const nested = <T>(inner: T, wrap: (inner: T) => T) => Array.from({ length: depth }).reduce<T>(wrap, inner);
    const marked: object = { type: "string", "x-mcp-header": "Deep" };
    const inputSchema = nested(marked, (child) => ({ type: "object", properties: { odd: null, a: child } }));
    const headers = new ParamHeaders();
    headers.update(request("tools/list", {}), {
      jsonrpc: "2.0",
      id: 1,
      result: { tools: [{ name: "t", inputSchema }] },
    });
    const call = request("tools/call", { name: "t", arguments: nested<unknown>("x", (a) => ({ a })) });
    expect(headers.of(call)).toEqual(isRead ? { "Mcp-Param-Deep": "x" } : {});
    expect(hasValidMarks(inputSchema)).toBe(true);
  });

  it.each<[string, object, boolean]>([
    ["a text", { type: "string", "x-mcp-header": "Region" }, true],
    ["an object", { type: "object", "x-mcp-header": "Region" }, false],
    ["a name that is no text", { type: "string", "x-mcp-header": 5 }, false],
    ["a name with a blank", { type: "string", "x-mcp-header": "a b" }, false],
    ["a name of 129 characters", { type: "string", "x-mcp-header": "a".repeat(129) }, false],
  ])("may be marked at %s: %s", (_what, marked, isValid) => {
    expect(hasValidMarks({ properties: { a: marked } })).toBe(isValid);
    // The same name twice, whatever its case.
    const again = { type: "string", "x-mcp-header": "rEGION" };
    expect(hasValidMarks({ properties: { a: marked, b: again } })).toBe(false);
    expect(hasValidMarks({ ...marked, properties: {} })).toBe(false);
  });
});
