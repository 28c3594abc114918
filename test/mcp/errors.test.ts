import { describe, expect, it } from "vitest";
import { AgentAuthError } from "../../src/errors.js";
import { HttpFailure, toRpcError } from "../../src/mcp/errors.js";

const URL = "https://mcp.example/mcp";
const mask = (text: string) => text.replaceAll("secret-1", "***");
const rpcErrorOf = (error: unknown, hasSession = false) => toRpcError(error, { url: URL, hasSession, mask });
const body = (error: unknown) => JSON.stringify({ jsonrpc: "2.0", id: 1, error });
const refused = (hint?: string) =>
  new AgentAuthError("login_required", "no token for secret-1\u001b[2J", { class: "auth", hint, status: 401 });
const data = { code: "login_required", class: "auth", retryable: false, status: 401 };
const message = "no token for ***\\e[2J";

describe("the error that a host gets", () => {
  it.each<[string, unknown, object]>([
    [
      "one of ours with the command that helps",
      refused("agentauth login secret-1"),
      {
        code: -32_603,
        message: `${message}; run: agentauth login ***`,
        data: { ...data, message, hint: "agentauth login ***" },
      },
    ],
    [
      "one of ours with other advice",
      refused("ask its operator"),
      { code: -32_603, message: `${message}; ask its operator`, data: { ...data, message, hint: "ask its operator" } },
    ],
    ["one of ours without advice", refused(), { code: -32_603, message, data: { ...data, message } }],
    [
      "that of the server in an HTTP error",
      new HttpFailure(400, body({ code: -32_000, message: "no secret-1", data: { a: 1 } })),
      { code: -32_000, message: "no ***", data: { a: 1 } },
    ],
    [
      "that of the server, without data",
      new HttpFailure(400, body({ code: -32_000, message: "no" })),
      { code: -32_000, message: "no" },
    ],
    [
      "an HTTP error whose body is no JSON",
      new HttpFailure(502, " <h1>secret-1\n</h1> "),
      {
        code: -32_603,
        message: `the MCP server "${URL}" answered HTTP 502: " <h1>***\\n</h1> "`,
        data: { status: 502 },
      },
    ],
    [
      "an HTTP error without a body",
      new HttpFailure(502, " "),
      { code: -32_603, message: `the MCP server "${URL}" answered HTTP 502`, data: { status: 502 } },
    ],
    [
      "any other failure",
      new Error("broke at secret-1\u001b[2J"),
      { code: -32_603, message: `the MCP server "${URL}": broke at ***\\e[2J` },
    ],
    ["what is no Error", "broke", { code: -32_603, message: `the MCP server "${URL}": broke` }],
  ])("is %s", (_what, error, expected) => {
    expect(rpcErrorOf(error)).toEqual(expected);
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
