import { describe, expect, it } from "vitest";
import { lateError, readLimit, responseError, type SentRequest } from "../../../src/cli/clients/http-error.js";

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
