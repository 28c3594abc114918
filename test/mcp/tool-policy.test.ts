import { describe, expect, it } from "vitest";
import type { RpcMessage } from "../../src/mcp/json-rpc.js";
import { refusedRpcError, ToolPolicy, type ToolPolicyOptions } from "../../src/mcp/tool-policy.js";
import { quote } from "../../src/redact.js";

const call = (name: unknown, more: object = {}) =>
  ({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, ...more } }) as RpcMessage;
const judge = (options: ToolPolicyOptions, message: RpcMessage) => new ToolPolicy(options).refuse(message);
const visible = (options: ToolPolicyOptions, ...names: unknown[]) => {
  const { tools } = new ToolPolicy(options).filterList({ tools: names.map((name) => ({ name })) }) as {
    tools: { name: unknown }[];
  };
  return tools.map(({ name }) => name);
};

describe("a policy of tools", () => {
  it("refuses what a glob hides, and what none allows, in the list too", () => {
    expect(judge({ hide: ["delete_*"] }, call("delete_all"))).toBe('the tool "delete_all" is hidden by "delete_*"');
    expect(judge({ allow: ["read_?"] }, call("read_all"))).toBe(
      'the tool "read_all" is none of those that are allowed',
    );
    expect(judge({ allow: ["*"], hide: ["x"] }, call("x"))).toContain("is hidden by");
    expect(judge({ allow: ["read_?"] }, call("read_1"))).toBeUndefined();
    expect(judge({ allow: [] }, call("x"))).toContain("none of those that are allowed");
    expect(visible({ hide: ["d*"], allow: ["*e*"] }, "delete", "see", "sat", 7, "s\u0000e")).toEqual(["see"]);
  });

  it("takes every character but * and ? as it is, and finds an end with many stars", () => {
    expect(judge({ hide: ["a.c", "(b", "x+$"] }, call("abc"))).toBeUndefined();
    expect(judge({ hide: ["a.c"] }, call("a.c"))).toBeDefined();
    expect(judge({ hide: ["*a**a*a*a*a*b"] }, call("a".repeat(256)))).toBeUndefined();
  });

  it.each([
    ["a*b", ["ab", "a-b", "a--b"], ["a", "b", "abc", "xab"]],
    ["a*", ["a", "ab"], ["ba", ""]],
    ["*a", ["a", "ba"], ["ab"]],
    ["*a*", ["a", "bab"], ["b"]],
    ["a?c", ["abc"], ["ac", "abbc", "abc_"]],
    ["a", ["a"], ["ab", ""]],
    ["*", ["a", ""], []],
    ["a\uff0ab", ["a\uff0ab", "a-b"], ["ab", "a--b"]],
    ["cafe\u0301*", ["caf\u00e9", "CAFE\u0301_x"], ["cafe"]],
  ])("hides by %s the names that it matches as a whole", (glob, hidden, visible) => {
    for (const name of hidden)
      expect(judge({ hide: [glob] }, call(name))).toBe(`the tool ${quote(name)} is hidden by ${quote(glob)}`);
    for (const name of visible) expect([name, judge({ hide: [glob] }, call(name))]).toEqual([name, undefined]);
  });

  it.each(["\u0000", "\u200b", "\u034f", "\u2028", "\u2029", "\ud800"])("allows no name with %j", (character) => {
    expect(judge({ allow: ["*"] }, call(`a${character}b`))).toMatch(
      /^the tool ".*" has a control character or an invisible one in its name$/,
    );
  });

  it("allows names of up to 256 characters", () => {
    expect(judge({ hide: ["x"] }, call("a".repeat(256)))).toBeUndefined();
    expect(judge({ hide: ["x"] }, call("a".repeat(257)))).toMatch(
      /^the tool ".*" has a name of more than 256 characters$/,
    );
    expect(judge({ hide: ["x"] }, call(5))).toBe("the name of the tool is not a string");
  });

  it("is open without a glob, and reads nothing then", () => {
    expect(new ToolPolicy().refuse(call(7))).toBeUndefined();
    expect(new ToolPolicy().refuseTool(7)).toBeUndefined();
    expect(new ToolPolicy().refuse({ jsonrpc: "2.0", id: 1, method: "x", Method: "y" } as RpcMessage)).toBeUndefined();
    const list = { tools: [7] };
    expect([new ToolPolicy().filterList("x"), new ToolPolicy().filterList(list)]).toEqual(["x", list]);
    for (const result of ["x", null, undefined, {}])
      expect(new ToolPolicy({ hide: ["x"] }).filterList(result)).toEqual(result);
    expect(new ToolPolicy({ hide: ["x"] }).filterList({ tools: "x" })).toEqual({ tools: "x" });
  });

  it.each([
    ["another case", "Delete_All"],
    ["full-width letters", "ｄｅｌｅｔｅ_all"],
    ["the Kelvin sign and a long s", "ma\u212Ae_\u017Fet"],
    ["a sharp s", "stra\u00dfe"],
    ["spaces around it", " delete_all "],
    ["an ideographic space", "\u3000delete_all"],
    ["a zero-width space", "dele\u200Bte_all"],
    ["a soft hyphen", "delete\u00AD_all"],
    ["a combining joiner", "delete\u034F_all"],
    ["a filler without a glyph", "\u3164delete_all"],
    ["a line break", "delete_all\n"],
    ["NUL", "delete_all\0"],
    ["a terminal sequence", "\u001b[2Jdelete_all"],
    ["half a character", "delete_all\ud800"],
    ["a direction mark", "\u202Edelete_all"],
    ["a name of 257 characters", `delete_${"x".repeat(257)}`],
    ["a list", ["delete_all"]],
    ["an object", { toString: "delete_all" }],
    ["no name", undefined],
  ])("is not evaded by %s", (_what, name) => {
    expect(judge({ hide: ["delete_*", "make_set", "strasse"] }, call(name))).toMatch(/^the (?:name of the )?tool /);
    expect(judge({ allow: ["read_*"] }, call(name))).toMatch(/^the (?:name of the )?tool /);
  });

  it("allows only the very name", () => {
    for (const name of ["READ_x", "ｒead_x", "read_\u200Bx", " read_x"])
      expect(judge({ allow: ["read_*"] }, call(name))).toBeDefined();
  });

  it.each<[string, object]>([
    ["the method in another case", { method: "Tools/Call", params: { name: "delete_all" } }],
    ["the method with a space", { method: "tools/call ", params: { name: "delete_all" } }],
    ["a second method", { method: "ping", Method: "tools/call", params: { name: "delete_all" } }],
    ["second params", { method: "tools/call", params: { name: "ok" }, PARAMS: { name: "delete_all" } }],
    ["a second name", { method: "tools/call", params: { name: "ok", Name: "delete_all" } }],
    ["a second name in another form", { method: "tools/call", params: { name: "ok", "nam\uFF45": "delete_all" } }],
    ["no id", { id: undefined, method: "tools/call", params: { name: "delete_all" } }],
  ])("is not evaded by %s", (_what, message) => {
    const reason = judge({ hide: ["delete_*"] }, { jsonrpc: "2.0", id: 1, ...message } as RpcMessage);
    expect(reason).toMatch(/a server may read|is hidden by/);
  });

  it.each(["jsonRPC", "ID", "Method", "PARAMS", "Result", "ERROR"])("takes no message with the member %s", (member) => {
    const message = { jsonrpc: "2.0", id: 1, method: "tools/list", [member]: 1 } as RpcMessage;
    const reason = `the message has the member "${member}", which a server may read as another`;
    expect(judge({ hide: ["x"] }, message)).toBe(reason);
  });

  it("says how a server may read a message", () => {
    const of = (message: object) => judge({ hide: ["x"] }, { jsonrpc: "2.0", id: 1, ...message } as RpcMessage);
    expect(of({ method: "Tools/Call" })).toBe('a server may read "Tools/Call" as tools/call');
    expect(of({ method: "Tools/List" })).toBe('a server may read "Tools/List" as tools/list');
    expect(of({ method: "tools/call", params: { Name: "a" } })).toBe(
      'the call has the member "Name", which a server may read as "name"',
    );
    expect(of({ method: "tools/list" })).toBeUndefined();
    expect(of({ method: "tools/call", params: "x" })).toBe("the name of the tool is not a string");
  });

  it("judges the last of two equal keys, which alone is sent", () => {
    const twice = JSON.parse(
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"delete_all","name":"ok"}}',
    );
    expect(judge({ hide: ["delete_*"] }, twice)).toBeUndefined();
    expect(JSON.stringify(twice)).not.toContain("delete_all");
  });

  it("leaves other messages alone", () => {
    const options = { allow: ["none"] };
    expect(
      judge(options, { jsonrpc: "2.0", id: 1, method: "prompts/get", params: { name: "delete_all" } }),
    ).toBeUndefined();
    expect(judge(options, { jsonrpc: "2.0", id: 1, result: { Method: "tools/call" } })).toBeUndefined();
    expect(judge(options, call("none", { arguments: { Name: "x" } }))).toBeUndefined();
  });
});

it("a refusal is an error of JSON-RPC with a code of its own", () => {
  expect(refusedRpcError("why")).toEqual({
    code: -32_602,
    message: "refused by the tool policy: why",
    data: { code: "tool_refused" },
  });
});
