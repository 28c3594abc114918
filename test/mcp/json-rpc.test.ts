import { describe, expect, it, vi } from "vitest";
import {
  CLIENT_CAPABILITIES,
  declareExtension,
  describeMessage,
  isTooDeep,
  parseExactJson,
  parseServerJson,
  type RpcMessage,
  type RpcRequest,
  readMessage,
  readServerMessage,
  writeExactJson,
} from "../../src/mcp/json-rpc.js";
import { hasValidMarks, ParamHeaders } from "../../src/mcp/param-headers.js";
import { Handshake, PendingRequests } from "../../src/mcp/proxy.js";
import { fc } from "../helpers/properties.js";

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
    ['{"jsonrpc":"2.0","id":null,"method":"x"}', null, -32_600, "the id is neither a string nor a number"],
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

describe("JSON with every digit", () => {
  it.each([
    "12345678901234567890",
    "-9007199254740993",
    "0.12345678901234567891",
    "9007199254740991.5",
    '[1,{"a":18446744073709551615,"__proto__":1.00000000000000000001},"18446744073709551615"]',
    "1.2345678901234567890e-7",
    '{"text":"\\"18446744073709551615\\\\","n":18446744073709551615}',
    '{"h":1,"\\"":2}',
    '{"h":1,"\\n":2}',
  ])("is written as it was read: %s", (text) => {
    // After this, JSON.parse of Node.js 24 and 26 would read other names (nodejs/node#63785).
    JSON.parse('{"h":[],"\\\\":0}');
    expect(writeExactJson(parseExactJson(text))).toBe(text);
    expect(writeExactJson(parseServerJson(text))).toBe(text);
  });

  it.each([
    ["1e3", "1000"],
    ["0.10", "0.1"],
    ["-0.0", "0"],
    ["0.30000000000000004", "0.30000000000000004"],
    ["1.7976931348623157e308", "1.7976931348623157e+308"],
    ["9007199254740991", "9007199254740991"],
    ["1000000000000000000000", "1000000000000000000000"],
  ])("has a number that a double holds: %s", (text, written) => {
    expect(writeExactJson(parseExactJson(text))).toBe(written);
  });

  it("is the same as that of JSON.stringify for whatever that writes", () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 4 }), (value) => {
        const text = JSON.stringify(value);
        expect(writeExactJson(parseExactJson(text))).toBe(text);
      }),
    );
  });

  it.each([
    "1e400",
    `1${"0".repeat(1000)}`,
    '{"a":12345678901234567890,"a":1}',
    `${"[".repeat(502)}1${"]".repeat(502)}`,
  ])("is refused where parsers disagree: %.20s", (text) =>
    expect(() => parseExactJson(text)).toThrow(expect.objectContaining({ name: "StrictJsonError" })),
  );

  it("of a server need not be strict", () => {
    expect(parseServerJson('{"a":12345678901234567890,"a":1}')).toEqual({ a: 1 });
    expect(() => parseServerJson("{12345678901234567890}")).toThrow(SyntaxError);
  });

  it("cannot be made of what is no JSON", () => {
    const loop: unknown[] = [];
    loop.push(loop);
    expect(() => writeExactJson(loop)).toThrow(TypeError);
  });

  // A time that grows with the square of the length would be minutes, and the limit of a test ends it.
  it("is read and written where it has megabytes", () => {
    const text = JSON.stringify(['\\\\\\"'.repeat(300_000), Array(100_000).fill("0.12345678901234567890\n")]);
    const long = `[${text},${"12345678901234567890,".repeat(100_000)}1${"0".repeat(300)}]`;
    expect(writeExactJson(parseExactJson(long))).toBe(long);
  });
});

const request = (id: number | string, params?: object): RpcRequest => ({ jsonrpc: "2.0", id, method: "ping", params });
const note = (method: string): RpcMessage => ({ jsonrpc: "2.0", method });

describe("pending requests", () => {
  it.each<[string, object | undefined, string | undefined]>([
    ["its _meta names", { _meta: { "io.modelcontextprotocol/protocolVersion": "2026-07-28" } }, "2026-07-28"],
    ["its _meta names as no text", { _meta: { "io.modelcontextprotocol/protocolVersion": 5 } }, undefined],
    ["no object names", { _meta: "2026-07-28" }, undefined],
    ["no params name", undefined, undefined],
  ])("have the revision that %s", (_what, params, revision) => {
    const pending = new PendingRequests().add(request(1, params), () => undefined);
    expect(pending).toMatchObject({ request: request(1, params), revision, state: "sent" });
    expect(pending.abort.signal.aborted).toBe(false);
  });

  it("end once each, also by another with the same id", () => {
    const requests = new PendingRequests();
    const onEnd = vi.fn();
    const first = requests.add(request(1), onEnd);
    const second = requests.add(request(1), () => onEnd("second"));
    expect(onEnd.mock.calls).toEqual([[]]);
    expect([requests.has(first), requests.has(second), requests.get(1), requests.all()]).toEqual([
      false,
      true,
      second,
      [second],
    ]);
    expect([requests.remove(1), requests.remove(1), requests.get(1), requests.all()]).toEqual([
      second,
      undefined,
      undefined,
      [],
    ]);
    expect(onEnd.mock.calls).toEqual([[], ["second"]]);
  });
});

describe("a handshake", () => {
  const start = () => {
    const forwarded: RpcMessage[] = [];
    const handshake = new Handshake((message) => void forwarded.push(message));
    return { handshake, forwarded };
  };

  it("delays what comes while a step is open, but responses", () => {
    const { handshake, forwarded } = start();
    handshake.pass(request(1));
    const [endFirst, endSecond] = [handshake.begin(), handshake.begin()];
    for (const message of [request(2), note("a"), { jsonrpc: "2.0", id: 3, result: {} } as RpcMessage])
      handshake.pass(message);
    expect(forwarded).toEqual([request(1), { jsonrpc: "2.0", id: 3, result: {} }]);
    endFirst();
    endFirst();
    expect(forwarded).toHaveLength(2);
    endSecond();
    expect(forwarded.slice(2)).toEqual([request(2), note("a")]);
    handshake.pass(request(4));
    expect(forwarded.at(-1)).toEqual(request(4));
  });

  it("stops again at a message that begins a step", () => {
    const forwarded: RpcMessage[] = [];
    const handshake: Handshake = new Handshake((message) => {
      forwarded.push(message);
      if (message.method === "a") handshake.begin();
    });
    const end = handshake.begin();
    for (const method of ["a", "b"]) handshake.pass(note(method));
    end();
    expect(forwarded).toEqual([note("a")]);
  });

  it("drops a delayed request, and gives all that is delayed", () => {
    const { handshake, forwarded } = start();
    const end = handshake.begin();
    for (const message of [note("a"), request(1), request(2)]) handshake.pass(message);
    expect([handshake.drop(1), handshake.drop(1), handshake.drop(undefined)]).toEqual([
      request(1),
      undefined,
      undefined,
    ]);
    expect(handshake.clear()).toEqual([note("a"), request(2)]);
    end();
    expect([forwarded, handshake.clear()]).toEqual([[], []]);
  });
});

const requestFor = (method: string, params: unknown): RpcRequest => {
  const read = readMessage(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }));
  if ("failure" in read) throw new Error(read.failure.error?.message);
  return read.message as RpcRequest;
};

function headersOf(name: string): ParamHeaders {
  const headers = new ParamHeaders();
  const inputSchema = { type: "object", properties: { region: { type: "string", "x-mcp-header": "Region" } } };
  const result = { tools: [{ name, inputSchema }] };
  headers.update(requestFor("tools/list", {}), { result });
  return headers;
}

describe("the headers of a tool's arguments", () => {
  it("are those of the called tool", () => {
    const call = { name: "echo", arguments: { region: "eu" } };
    expect(headersOf("echo").of(requestFor("tools/call", call))).toEqual({ "Mcp-Param-Region": "eu" });
    expect(headersOf("other").of(requestFor("tools/call", call))).toEqual({});
  });

  it.each<[string, unknown, string]>([
    ["an object", {}, "[object Object]"],
    ["an object that makes no text", { toString: 1, valueOf: 1 }, "[object Object]"],
    ["a list", ["echo"], "echo"],
    ["a number", 5, "5"],
    ["null", null, "null"],
    ["missing", undefined, "undefined"],
  ])("are none if the name is %s: the server rejects the call", (_what, name, text) => {
    expect(headersOf(text).of(requestFor("tools/call", { name, arguments: { region: "eu" } }))).toEqual({});
  });

  it("are known of each tool in a list that has others without a name", () => {
    const headers = new ParamHeaders();
    const inputSchema = { properties: { region: { type: "string", "x-mcp-header": "Region" } } };
    const tools = [null, "echo", { inputSchema }, { name: 5, inputSchema }, { name: "echo", inputSchema }];
    headers.update(requestFor("tools/list", {}), { result: { tools } });
    const call = { name: "echo", arguments: { region: "eu" } };
    expect(headers.of(requestFor("tools/call", call))).toEqual({ "Mcp-Param-Region": "eu" });
  });

  it("are not those of a schema in another response, and stay where a list is an error", () => {
    const headers = headersOf("echo");
    const call = requestFor("tools/call", { name: "echo", arguments: { region: "eu" } });
    headers.update(requestFor("tools/list", {}), { result: undefined });
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
    headers.update(requestFor("tools/list", {}), { result: { tools: [{ name: "t", inputSchema }] } });
    const call = requestFor("tools/call", { name: "t", arguments: nested<unknown>("x", (a) => ({ a })) });
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
    const call = requestFor("tools/call", { name: "echo", arguments: { region } });
    expect(headersOf("echo").of(call)).toEqual(text === undefined ? {} : { "Mcp-Param-Region": text });
  });

  it("are those of a call alone", () => {
    const params = { name: "echo", arguments: { region: "eu" } };
    expect(headersOf("echo").of(requestFor("prompts/get", params))).toEqual({});
  });

  it("are replaced by the first page of a list, and extended by the others", () => {
    const headers = headersOf("echo");
    const call = requestFor("tools/call", { name: "echo", arguments: { region: "eu" } });
    const page = (params: object, tools: unknown) =>
      headers.update(requestFor("tools/list", params), { result: { tools } });
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
  ])("of a requestFor without a session repeat what it names: %s %j", (method, params, name) => {
    expect(headersOf("echo").ofSessionless(requestFor(method, params), "2026-07-28")).toEqual({
      "mcp-protocol-version": "2026-07-28",
      "mcp-method": method,
      ...(name !== undefined && { "mcp-name": name }),
    });
  });
});
