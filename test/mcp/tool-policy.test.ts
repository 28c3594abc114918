import { describe, expect, it } from "vitest";
import type { RpcMessage } from "../../src/mcp/json-rpc.js";
import { ToolPolicy, type ToolPolicyOptions } from "../../src/mcp/tool-policy.js";

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

  it("is open without a glob, and reads nothing then", () => {
    expect(new ToolPolicy().refuse(call(7))).toBeUndefined();
    expect(new ToolPolicy().filterList("x")).toBe("x");
    expect(new ToolPolicy({ hide: ["x"] }).filterList({ tools: "x" })).toEqual({ tools: "x" });
  });

  it.each([
    ["another case", "Delete_All"],
    ["full-width letters", "ｄｅｌｅｔｅ_all"],
    ["the Kelvin sign and a long s", "ma\u212Ae_\u017Fet"],
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
    expect(judge({ hide: ["delete_*", "make_set"] }, call(name))).toMatch(/^the (?:name of the )?tool /);
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

  it("matches a tool of one of several servers with its prefix and without", () => {
    for (const glob of ["delete_*", "docs__*"])
      expect(judge({ hide: [glob], prefix: "docs__" }, call("delete_x"))).toBeDefined();
    expect(judge({ allow: ["docs__delete_x"], prefix: "docs__" }, call("delete_x"))).toBeUndefined();
    expect(judge({ allow: ["other__*"], prefix: "docs__" }, call("delete_x"))).toBeDefined();
  });
});
