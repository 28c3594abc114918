import { describe, expect, it } from "vitest";
import {
  checkHeaderValue,
  lateError,
  parseHeaderLine,
  readLimit,
  readText,
  responseError,
  type SentRequest,
} from "../../../src/cli/clients/http-error.js";

const URL_OF_SERVER = "https://mcp.example/mcp?key=secret";
const OTHER = "https://other.example/login?key=secret";

function errorOf(status: number, request: Partial<SentRequest> = {}, headers: Record<string, string> = {}) {
  const response = Object.defineProperty(new Response("", { status, headers }), "url", { value: OTHER });
  const error = responseError(response, { requested: URL_OF_SERVER, ...request });
  const { code, class: kind, message, hint, status: said, url, requestId, remedy } = error;
  return { code, class: kind, message, hint, status: said, url, requestId, remedy };
}

describe("the error of an answer", () => {
  const own = { url: "https://mcp.example/mcp", requestId: undefined, remedy: undefined };
  const login = { action: "login", server: URL_OF_SERVER };
  const refused = { code: "login_required", class: "auth", status: 401, ...own };
  const message = '"https://mcp.example/mcp" refused the token (HTTP 401)';
  const failed = (status: number) => `"https://mcp.example/mcp" answered with an error (HTTP ${status})`;
  const later = { class: "unavailable", hint: "call again later", ...own };

  it.each<[string, Parameters<typeof errorOf>, object]>([
    ["401 of a user", [401], { ...refused, message, hint: undefined, remedy: login }],
    [
      "401 of a machine",
      [401, { grant: "jwt-bearer" }],
      { ...refused, message, hint: "look at what the issuer lets this client do" },
    ],
    [
      "401 of another server",
      [401, { foreign: true }],
      {
        ...{ code: "http_error", class: "remote", status: 401, hint: undefined, ...own },
        url: "https://other.example/login",
        message: '"https://other.example/login" answered with an error (HTTP 401)',
      },
    ],
    ["429", [429], { code: "rate_limited", status: 429, message: failed(429), ...later }],
    ["499", [499], { ...own, code: "http_error", class: "remote", status: 499, message: failed(499), hint: undefined }],
    ["500", [500], { code: "server_error", status: 500, message: failed(500), ...later }],
    [
      "503 with a wait",
      [503, {}, { "retry-after": "120", "x-request-id": "req-1" }],
      {
        code: "server_error",
        status: 503,
        message: failed(503),
        ...later,
        requestId: "req-1",
        hint: "call again in 120 s, as the server asks",
      },
    ],
    ...["1234567", "soon", "1x", "x1", "-1"].map((wait): [string, Parameters<typeof errorOf>, object] => [
      `503 with the wait ${wait}`,
      [503, {}, { "retry-after": wait }],
      { code: "server_error", status: 503, message: failed(503), ...later },
    ]),
    [
      "404 with words of the server",
      [404, { words: "no \u001b[31m such tool" }],
      {
        ...own,
        code: "http_error",
        class: "remote",
        status: 404,
        hint: undefined,
        message: `${failed(404)}: "no \\e[31m such tool"`,
      },
    ],
    [
      "404 with many words",
      [404, { words: "x".repeat(400) }],
      {
        ...own,
        code: "http_error",
        class: "remote",
        status: 404,
        hint: undefined,
        message: `${failed(404)}: "${"x".repeat(300)}…"`,
      },
    ],
  ])("%s", (_what, args, expected) => {
    expect(errorOf(...args)).toEqual(expected);
  });
});

describe("the time for an answer", () => {
  it.each([
    [{}, false, 30],
    [{ timeout: 5 }, false, 5],
    [{ loginTimeout: 7 }, false, 30],
    [{}, true, 330],
    [{ timeout: 5 }, true, 305],
    [{ timeout: 5, loginTimeout: 7 }, true, 12],
  ])("with %j, and a login allowed: %s, is %i s", (flags, isAllowed, seconds) => {
    expect(readLimit(flags, { mayLogin: () => isAllowed }, 30)).toBe(seconds);
  });

  it.each([
    [undefined, "mcp.example: no response in 30 s"],
    ["no end of the response", "mcp.example: no end of the response in 30 s"],
  ])("is named by its error (%s)", (what, message) => {
    expect(lateError(URL_OF_SERVER, 30, what)).toMatchObject({
      ...{ code: "timeout", class: "unavailable", message, url: "https://mcp.example/mcp" },
      hint: "--timeout <seconds> allows more time",
    });
  });
});

it.each<[string, string, string]>([
  ["accept: text/plain", "accept", "text/plain"],
  ["x-a:b", "x-a", "b"],
  ["x-a: \t b c \t", "x-a", "b c"],
  ["x-a:", "x-a", ""],
  ["x-a: b: c", "x-a", "b: c"],
  ["x-a: \u00e9\t1", "x-a", "\u00e9\t1"],
])("the header %j has its name and its value", (line, name, value) => {
  expect(parseHeaderLine(line, "--header")).toEqual({ name, value });
});

const NO_HEADER = { hint: 'for example "Accept: text/plain"' };
const NO_VALUE = { hint: "remove line breaks and control characters" };

it.each<[string, string, object]>([
  ["a-secret", '--header is not "name: value"', NO_HEADER],
  ["two words-secret", '--header "two" is not "name: value"', NO_HEADER],
  ["a b: secret", '--header "a" is not "name: value"', NO_HEADER],
  [": secret", '--header "" is not "name: value"', NO_HEADER],
  ["", '--header is not "name: value"', NO_HEADER],
  [`${"n".repeat(50)}\u00e9: secret`, `--header "${"n".repeat(40)}…" is not "name: value"`, NO_HEADER],
  ["x-a: secret\r\nx-b: c", '--header "x-a" has a character that is not allowed in a header value', NO_VALUE],
  ["x-a: \u20ac secret", '--header "x-a" has a character that is not allowed in a header value', NO_VALUE],
])("the header %j is refused without what may be a secret", (line, message, hint) => {
  expect(() => parseHeaderLine(line, "--header")).toThrow(expect.objectContaining({ code: "usage", message, ...hint }));
});

it("a value of another source is checked as well", () => {
  expect(checkHeaderValue("a", "line 1")).toBeUndefined();
  expect(() => checkHeaderValue("a\u0000", "line 1")).toThrow("line 1 has a character that is not allowed");
});

it.each<[string, unknown, string]>([
  [
    "texts, each from its own line",
    [{ type: "text", text: "a\nb" }, { type: "text", text: "" }, text("c")],
    "a\nb\n\nc\n",
  ],
  [
    "a word for what is no text",
    [{ type: "image", data: "AA==" }, { type: "text", text: 1 }, {}],
    "(image)\n(text)\n(undefined)\n",
  ],
  ["no text of another type", [{ type: "resource", text: "x" }], "(resource)\n"],
  ["what acts on a terminal, escaped", [text("\u001b[31m\u202e")], "\\e[31m\\u{202e}\n"],
  ["an empty line for no content", [], "\n"],
  ["an empty line for content that is no list", "text", "\n"],
])("a result has as text %s", (_what, content, expected) => {
  expect(readText({ content })).toBe(expected);
});

function text(value: string) {
  return { type: "text", text: value };
}
