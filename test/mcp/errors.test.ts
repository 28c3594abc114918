import { describe, expect, it } from "vitest";
import { AgentAuthError } from "../../src/errors.js";
import {
  connectionError,
  HttpFailure,
  isSessionLost,
  isTimeout,
  RequestTimeout,
  RpcFailure,
  readHttpFailure,
  StreamLost,
  serverMessage,
  toRpcError,
} from "../../src/mcp/errors.js";

const URL = "https://mcp.example/mcp";
const mask = (text: string) => text.replaceAll("secret-1", "***");
const rpcErrorOf = (error: unknown, hasSession = false) => toRpcError(error, { url: URL, hasSession, mask });
const body = (error: unknown) => JSON.stringify({ jsonrpc: "2.0", id: 1, error });
const refused = (hint?: string) =>
  new AgentAuthError("login_required", "no token for secret-1\u001b[2J", { class: "auth", hint, status: 401 });
const data = { code: "login_required", class: "auth", retryable: false, status: 401 };
const REFUSED = "no token for ***\\e[2J";

describe("the error that a host gets", () => {
  const ours = (message: string, hint?: string) => ({
    message,
    data: { ...data, message: REFUSED, ...(hint && { hint }) },
  });
  const at = `the MCP server "${URL}"`;
  const ofServer = { code: -32_000, message: "no secret-1", data: { a: 1 } };

  it.each<[string, unknown, { code?: number; message: string; data?: object }]>([
    [
      "one of ours",
      refused("agentauth login secret-1"),
      ours(`${REFUSED}; run: agentauth login ***`, "agentauth login ***"),
    ],
    ["one with other advice", refused("ask its operator"), ours(`${REFUSED}; ask its operator`, "ask its operator")],
    ["one whose advice names a command", refused("see agentauth"), ours(`${REFUSED}; see agentauth`, "see agentauth")],
    ["one without advice", refused(), ours(REFUSED)],
    ["that of an HTTP error", new HttpFailure(400, body(ofServer)), { ...ofServer, message: "no ***" }],
    ["that without data", new HttpFailure(400, body({ code: 1, message: "no" })), { code: 1, message: "no" }],
    [
      "an HTTP error whose body is no JSON",
      new HttpFailure(502, " <h1>secret-1\n</h1> "),
      { message: `${at} answered HTTP 502: " <h1>***\\n</h1> "`, data: { status: 502 } },
    ],
    ["one without a body", new HttpFailure(502, " "), { message: `${at} answered HTTP 502`, data: { status: 502 } }],
    ["any other failure", new Error("broke at secret-1\u001b[2J"), { message: `${at}: broke at ***\\e[2J` }],
    ["what is no Error", "broke", { message: `${at}: broke` }],
  ])("is %s", (_what, error, expected) => {
    expect(rpcErrorOf(error)).toStrictEqual({ code: -32_603, ...expected });
  });

  it.each([
    ["no message", body({ code: 1 })],
    ["no error", body(null)],
    ["a code that is no number", body({ code: "1", message: "no" })],
    ["another version", JSON.stringify({ jsonrpc: "1.0", error: { code: 1, message: "no" } })],
    ["no object", "[]"],
  ])("quotes a body with %s", (_what, text) => {
    expect(rpcErrorOf(new HttpFailure(400, text)).message).toMatch(/^the MCP server .* answered HTTP 400: "/);
  });

  it("is at most 1,000 characters long", () => {
    expect(rpcErrorOf(new Error("x".repeat(5000))).message).toHaveLength(`the MCP server "${URL}": `.length + 1000);
  });

  const lost = `the MCP server "${URL}" has ended the session, or was restarted (HTTP 404): restart this server in the host to begin a new session`;

  it("says that the session has ended, only where there was one", () => {
    expect(rpcErrorOf(new HttpFailure(404, ""), true)).toEqual({
      code: -32_603,
      message: lost,
      data: { status: 404 },
    });
    expect(rpcErrorOf(new HttpFailure(404, "")).message).toBe(`the MCP server "${URL}" answered HTTP 404`);
  });
});

describe("a lost session", () => {
  const lost = (status: number, text: string) => isSessionLost(new HttpFailure(status, text));

  it.each([
    "Bad Request: No valid session ID provided",
    "no valid session id",
    "Server not initialized",
    "bad request: server not initialized.",
    " Session not found\n",
    "Invalid session ID",
    "Invalid or missing session ID.",
    "Bad Request: No valid session ID or not an initialize request",
    "Bad Request: Unknown Mcp-Session-Id header",
    "Unauthorized: Session not found",
    "session expired",
  ])("is what HTTP 400 and 401 say by %j, in their text or their error", (text) => {
    expect([lost(400, text), lost(400, body({ code: 1, message: text }))]).toEqual([true, true]);
    expect([lost(401, text), lost(403, text), lost(500, text)]).toEqual([true, false, false]);
  });

  it.each([
    "",
    "upstream: session not found",
    "session not found here",
    "bad request: session",
    "no valid session id was given",
    "session id",
    "bad request: no session of the parliament found",
  ])("is not what HTTP 400 says by %j", (text) => {
    expect([lost(400, text), lost(400, body({ code: 1, message: text }))]).toEqual([false, false]);
  });

  it.each<[string, string, boolean]>([
    ["without an error", "<h1>no</h1>", true],
    ["with the code of a session, -32000", body({ code: -32_000, message: "no" }), true],
    ["with the code of a session, -32001", body({ code: -32_001, message: "no" }), true],
    ["with the code of an invalid request", body({ code: -32_600, message: "no" }), true],
    ["with a code of its own", body({ code: -32_603, message: "Unknown session: session-1" }), true],
    ["with another code", body({ code: -32_601, message: "no" }), false],
    ["with the code of a resource", body({ code: -32_002, message: "Resource not found" }), false],
    ["with another code, about a session", body({ code: -32_601, message: "which Session?" }), true],
    ["with another code, about sessions", body({ code: -32_601, message: "no sessions" }), false],
  ])("is what HTTP 404 says %s: %s", (_what, text, isLost) => {
    expect(lost(404, text)).toBe(isLost);
  });

  it("is no other error", () => {
    for (const error of [new Error("HTTP 404"), undefined, new RpcFailure({ code: -32_001, message: "session" })])
      expect(isSessionLost(error)).toBe(false);
  });
});

describe("the failures of a server", () => {
  it("say in their messages what they are", () => {
    const failures = [
      new HttpFailure(500, ""),
      new HttpFailure(500, "down"),
      new RpcFailure({ code: 1, message: "no" }),
      new RequestTimeout("late"),
    ];
    expect(failures.map(String)).toEqual([
      "HttpFailure: HTTP 500",
      "HttpFailure: HTTP 500: down",
      "RpcFailure: no",
      "RequestTimeout: late",
    ]);
    expect(failures.map(isTimeout)).toEqual([false, false, false, true]);
    expect(failures.map(readHttpFailure)).toEqual([
      { status: 500, text: "" },
      { status: 500, text: "down" },
      undefined,
      undefined,
    ]);
  });

  it("quote why a stream ended, up to 300 characters", () => {
    const text = `the connection to the MCP server "${URL}" closed before the response arrived`;
    const reason = new Error(`\u001b[2J${"x".repeat(400)}`);
    const lost = new StreamLost(URL, reason);
    expect(lost).toMatchObject({ code: "connection_reset", class: "unavailable", cause: reason });
    expect(lost.message).toBe(`${text}: \\e[2J${"x".repeat(295)}`);
    expect(new StreamLost(URL, undefined).message).toBe(text);
  });

  it("lead to the error of ours that caused them, within eight causes", () => {
    const ours = refused();
    const wrapped = (times: number) => {
      let error: unknown = ours;
      for (let time = 0; time < times; time++) error = new Error("outer", { cause: error });
      return error;
    };
    expect([0, 1, 7, 8].map((times) => connectionError(wrapped(times), URL))).toEqual([ours, ours, ours, undefined]);
    const reset = Object.assign(new Error("read"), { code: "ECONNRESET" });
    expect(connectionError(reset, URL)).toMatchObject({ code: "connection_reset" });
    expect([connectionError("x", URL), connectionError(new Error("x"), URL)]).toEqual([undefined, undefined]);
  });

  it("have the message of the server, where there is one", () => {
    const errors = [
      new RpcFailure({ code: 1, message: "no" }),
      new HttpFailure(400, body({ code: 1, message: "not so" })),
      new HttpFailure(400, "page"),
      new Error("x"),
    ];
    expect(errors.map(serverMessage)).toEqual(["no", "not so", undefined, undefined]);
  });
});
