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
  headers.update(request("tools/list", {}), { result });
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
    headers.update(request("tools/list", {}), { result: { tools } });
    const call = { name: "echo", arguments: { region: "eu" } };
    expect(headers.of(request("tools/call", call))).toEqual({ "Mcp-Param-Region": "eu" });
  });

  it("are not those of a schema in another response, and stay where a list is an error", () => {
    const headers = headersOf("echo");
    const call = request("tools/call", { name: "echo", arguments: { region: "eu" } });
    headers.update(request("tools/list", {}), { result: undefined });
    expect(headers.of(call)).toEqual({ "Mcp-Param-Region": "eu" });
    const inputSchema = { properties: { region: { type: "string", "x-mcp-header": "Other" } } };
    headers.update(call, { result: { tools: [{ name: "echo", inputSchema }] } });
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
    headers.update(request("tools/list", {}), { result: { tools: [{ name: "t", inputSchema }] } });
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

  it.each([
    ["a", true],
    ["a".repeat(128), true],
    ["!#$%&'*+-.^_`|~09AZaz", true],
    ["", false],
    ["a:b", false],
    [" a", false],
    ["a\n", false],
  ])("may have the name %j: %s", (name, isValid) => {
    expect(hasValidMarks({ properties: { a: { type: "string", "x-mcp-header": name } } })).toBe(isValid);
  });

  it.each([
    ["string", true],
    ["integer", true],
    ["number", true],
    ["boolean", true],
    ["array", false],
    [undefined, false],
  ])("may be those of the type %s: %s", (type, isValid) => {
    expect(hasValidMarks({ properties: { a: { type, "x-mcp-header": "A" } } })).toBe(isValid);
  });

  const base64 = (text: string) => `=?base64?${Buffer.from(text).toString("base64")}?=`;

  it.each<[unknown, string | undefined]>([
    ["eu", "eu"],
    ["e", "e"],
    ["a\tb c", "a\tb c"],
    ["", base64("")],
    [" a", base64(" a")],
    ["a ", base64("a ")],
    ["a\u007f", base64("a\u007f")],
    ["a\nb", base64("a\nb")],
    ["zürich", base64("zürich")],
    ["=?base64?YQ==?=", base64("=?base64?YQ==?=")],
    ["x=?base64?YQ==?=", "x=?base64?YQ==?="],
    ["=?base64?YQ==", "=?base64?YQ=="],
    ["=?base64?YQ==?= ", base64("=?base64?YQ==?= ")],
    ["=?base64?YQ==?=x", "=?base64?YQ==?=x"],
    [true, "true"],
    [false, "false"],
    [7, "7"],
    [1.5, undefined],
    [2 ** 53, undefined],
    [null, undefined],
    [["eu"], undefined],
  ])("have for the value %j the text %j", (region, text) => {
    const call = request("tools/call", { name: "echo", arguments: { region } });
    expect(headersOf("echo").of(call)).toEqual(text === undefined ? {} : { "Mcp-Param-Region": text });
  });

  it("are those of a call alone", () => {
    const params = { name: "echo", arguments: { region: "eu" } };
    expect(headersOf("echo").of(request("prompts/get", params))).toEqual({});
  });

  it("are replaced by the first page of a list, and extended by the others", () => {
    const headers = headersOf("echo");
    const call = request("tools/call", { name: "echo", arguments: { region: "eu" } });
    const page = (params: object, tools: unknown) =>
      headers.update(request("tools/list", params), { result: { tools } });
    page({ cursor: "2" }, []);
    expect(headers.of(call)).toEqual({ "Mcp-Param-Region": "eu" });
    page({}, "none");
    expect(headers.of(call)).toEqual({});
  });

  it.each<[string, object, string | undefined]>([
    ["tools/call", { name: "a", uri: "b" }, "a"],
    ["prompts/get", { name: "a", uri: "b" }, "a"],
    ["resources/read", { name: "a", uri: "b:c d é" }, base64("b:c d é")],
    ["tools/call", { name: 5 }, undefined],
    ["tools/list", { name: "a", "": "b", undefined: "c" }, undefined],
  ])("of a request without a session repeat what it names: %s %j", (method, params, name) => {
    expect(headersOf("echo").ofSessionless(request(method, params), "2026-07-28")).toEqual({
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      ...(name !== undefined && { "mcp-name": name }),
    });
  });
});
