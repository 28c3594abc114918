import { describe, expect, it } from "vitest";
import { judgeBody, withoutHidden } from "../../src/broker/tools.js";
import { ToolPolicy } from "../../src/mcp/tool-policy.js";

const POLICY = new ToolPolicy({ allow: ["read_*"] });
const bytesOf = (text: string) => new TextEncoder().encode(text);
const call = (name: unknown) => ({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name } });

describe("the body of a request", () => {
  it.each<[string, Uint8Array]>([
    ["is no UTF-8", Buffer.from('{"method":"tools/call","params":{"name":"read_\xff"}}', "latin1")],
    ["begins with a byte order mark", bytesOf('\ufeff{"method":"ping"}')],
    ["has a name twice", bytesOf('{"method":"ping","method":"tools/call"}')],
    ["is cut", bytesOf('{"method":"ping"')],
  ])("is refused where it %s, since two parsers may read it in two ways", (_what, bytes) => {
    const error = { code: -32_700, message: "the broker does not pass on what is no strict JSON" };
    expect(judgeBody(bytes, POLICY)).toEqual({ tools: [], refusal: { jsonrpc: "2.0", id: null, error } });
  });

  it.each<[string, unknown, string[]]>([
    ["a call", call("read_a"), ["read_a"]],
    ["several calls", [call("read_a"), { method: "ping" }, call("drop")], ["read_a", "drop"]],
    ["a call without a name", call(undefined), []],
    ["a call with an empty name", call(""), []],
    ["a call whose name is no text", call(7), []],
    ["another message with a name", { ...call("read_a"), method: "prompts/get" }, []],
  ])("names the tools of %s", (_what, body, tools) => {
    expect(judgeBody(bytesOf(JSON.stringify(body)), POLICY).tools).toEqual(tools);
  });
});

describe("an answer of the server", () => {
  it.each([
    ["is no list of tools", '{ "id": 12345678901234567890, "result": "tools" }'],
    ["is no JSON", "tools"],
  ])("stays as it is, byte for byte, where it %s", (_what, text) => {
    expect(withoutHidden(text, POLICY)).toBe(text);
  });

  it("loses the tools that are hidden", () => {
    const text = JSON.stringify([{ id: 1, result: { tools: [{ name: "read_a" }, { name: "drop" }] } }, "tools"]);
    expect(JSON.parse(withoutHidden(text, POLICY))).toEqual([
      { id: 1, result: { tools: [{ name: "read_a" }] } },
      "tools",
    ]);
  });
});
