import { describe, expect, it } from "vitest";
import {
  CLIENT_CAPABILITIES,
  declareExtension,
  describeMessage,
  isTooDeep,
  type RpcMessage,
  readMessage,
  readServerMessage,
} from "../../src/mcp/json-rpc.js";

const message = (method: string, params?: unknown) => ({ jsonrpc: "2.0", id: 1, method, params }) as RpcMessage;

describe("a line of the host", () => {
  it.each<[string, string | number | null, number, string]>([
    ["{", null, -32_700, "the line is not strict JSON: a string was expected (line 1, column 2)"],
    [
      '{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}',
      null,
      -32_700,
      'the line is not strict JSON: the name "method" appears twice in one object (line 1, column 38)',
    ],
    ["[]", null, -32_600, "batches are not supported: send one message per line"],
    ["7", null, -32_600, "the message is not a JSON object"],
    ["null", null, -32_600, "the message is not a JSON object"],
    ['{"id":"a","method":"x"}', "a", -32_600, 'the message has no "jsonrpc": "2.0"'],
    ['{"jsonrpc":"2.0","id":{},"method":"x"}', null, -32_600, "the id is neither a string nor a number"],
    ['{"jsonrpc":"2.0","id":1,"method":5}', 1, -32_600, "the message is neither a request nor a response"],
    ['{"jsonrpc":"2.0","id":1}', 1, -32_600, "the message is neither a request nor a response"],
    ['{"jsonrpc":"2.0","id":0,"result":1,"error":{}}', 0, -32_600, "the message is neither a request nor a response"],
  ])("is refused: %s", (line, id, code, text) => {
    expect(readMessage(line)).toEqual({ failure: { jsonrpc: "2.0", id, error: { code, message: text } } });
  });

  it.each([
    '{"jsonrpc":"2.0","id":0,"method":"x"}',
    '{"jsonrpc":"2.0","id":"","method":"x"}',
    '{"jsonrpc":"2.0","method":"x"}',
    '{"jsonrpc":"2.0","id":1,"result":null}',
    '{"jsonrpc":"2.0","error":{}}',
    '{"jsonrpc":"2.0","id":null,"error":{}}',
  ])("is a message: %s", (line) => {
    expect(readMessage(line)).toEqual({ message: JSON.parse(line) });
    expect(readServerMessage(JSON.parse(line))).toEqual(JSON.parse(line));
  });
});

it("a message of a server is refused by what is wrong with it", () => {
  expect(() => readServerMessage([])).toThrow(
    new SyntaxError('a message of the server is invalid: "the message is not a JSON object"'),
  );
});

it.each([
  [
    '{"jsonrpc":"2.0","id":1,"result":{},"error":null,"method":null,"params":null}',
    '{"jsonrpc":"2.0","id":1,"result":{}}',
  ],
  ['{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1}}', '{"jsonrpc":"2.0","id":1,"error":{"code":1}}'],
  ['{"jsonrpc":"2.0","id":null,"method":"x","params":null,"result":null}', '{"jsonrpc":"2.0","method":"x"}'],
])("a message of a server may have null for what it lacks: %s", (given, read) => {
  expect(readServerMessage(JSON.parse(given))).toEqual(JSON.parse(read));
});

it("a message is described by its method, up to 80 characters", () => {
  expect(describeMessage(message("tools/list", { secret: 1 }))).toBe('"tools/list"');
  expect(describeMessage(message("x".repeat(100)))).toBe(`"${"x".repeat(80)}…"`);
  expect(describeMessage({ jsonrpc: "2.0", id: 1, result: {} })).toBe("response");
});

it("a message is too deep from 501 levels on", () => {
  const nested = (levels: number) => JSON.parse(`${"[".repeat(levels)}${"]".repeat(levels)}`);
  expect([499, 500].map((levels) => isTooDeep(message("x", nested(levels))))).toEqual([false, true]);
  expect(isTooDeep(message("x", [null, 1, "a", nested(500)]))).toBe(true);
});

describe("the extension of a connection", () => {
  const extend = (given: RpcMessage) => declareExtension("x/y", given);

  it.each<[string, unknown, unknown]>([
    ["no capabilities", {}, { capabilities: { extensions: { "x/y": {} } } }],
    [
      "capabilities that are no object",
      { capabilities: 1, a: 2 },
      { a: 2, capabilities: { extensions: { "x/y": {} } } },
    ],
    [
      "extensions that are no object",
      { capabilities: { extensions: 1 } },
      { capabilities: { extensions: { "x/y": {} } } },
    ],
    [
      "others",
      { capabilities: { roots: {}, extensions: { a: { b: 1 } } } },
      { capabilities: { roots: {}, extensions: { a: { b: 1 }, "x/y": {} } } },
    ],
  ])("is declared by an initialize with %s", (_what, params, expected) => {
    expect(extend(message("initialize", params))).toEqual(message("initialize", expected));
  });

  it("is declared by a request that describes its client", () => {
    const meta = { a: 1, [CLIENT_CAPABILITIES]: { roots: {} } };
    expect(extend(message("tools/list", { cursor: "1", _meta: meta }))).toEqual(
      message("tools/list", {
        cursor: "1",
        _meta: { a: 1, [CLIENT_CAPABILITIES]: { roots: {}, extensions: { "x/y": {} } } },
      }),
    );
  });

  it.each<[string, RpcMessage]>([
    ["without params", message("initialize")],
    ["that describes nothing", message("tools/list", { _meta: { a: 1 }, capabilities: {} })],
    ["whose _meta is a text", message("tools/list", { _meta: "x" })],
    ["that is a response", { jsonrpc: "2.0", id: 1, result: {} }],
  ])("changes no message %s", (_what, given) => {
    expect(extend(given)).toBe(given);
  });

  it("changes nothing where there is none", () => {
    const given = message("initialize", {});
    expect(declareExtension(undefined, given)).toBe(given);
  });
});
