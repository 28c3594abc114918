import { describe, expect, it } from "vitest";
import { isSessionUnknown, saysSessionLost } from "../../src/http/lost-session.js";

describe("the text of a server that does not know a session", () => {
  it.each([
    "Session not found",
    " session expired.\n",
    "Bad Request: No valid session ID provided",
    "no valid session id or not an initialize request",
    "Unauthorized: Session not found",
    "bad request: server not initialized",
    "Invalid session ID",
    "invalid session-id",
    "Invalid or missing session",
    "Unknown Mcp-Session-Id header",
    "Expired mcp-session",
  ])("is %j", (text) => expect(saysSessionLost(text)).toBe(true));

  it.each([
    "",
    "session",
    "upstream: session not found",
    "session not found here",
    "bad request: bad request: session not found",
    "no valid session id was given",
    "invalid or expired session",
    "unknown session of parliament",
    "session not found..",
    "not initialized",
  ])("is not %j", (text) => expect(saysSessionLost(text)).toBe(false));
});

describe("401 for a session", () => {
  const IN_SESSION = { "mcp-session-id": "s" };
  const isUnknown = (text: string, more: Record<string, string> = {}, status = 401, asked: object = IN_SESSION) => {
    const response = new Response(text, { status, headers: { "content-length": String(text.length), ...more } });
    return isSessionUnknown(response, new Headers(asked as Record<string, string>));
  };

  it("says that it is not known, and leaves the body to be read", async () => {
    const response = new Response("Session not found", { status: 401, headers: { "content-length": "17" } });
    expect(await isSessionUnknown(response, new Headers(IN_SESSION))).toBe(true);
    expect(await response.text()).toBe("Session not found");
  });

  it("is read up to 200 bytes", async () => {
    const long = (length: number) => "Session not found".padEnd(length);
    expect([await isUnknown(long(200)), await isUnknown(long(201))]).toEqual([true, false]);
  });

  it.each<[string, Parameters<typeof isUnknown>]>([
    ["another text", ["no token"]],
    ["a challenge", ["Session not found", { "www-authenticate": "Bearer" }]],
    ["another status", ["Session not found", {}, 403]],
    ["a request without a session", ["Session not found", {}, 401, {}]],
    ["a length that is no number", ["Session not found", { "content-length": "x" }]],
  ])("says nothing of it with %s", async (_what, given) => {
    expect(await isUnknown(...given)).toBe(false);
  });

  it("says nothing of it without its length", async () => {
    const response = new Response("Session not found", { status: 401 });
    expect(await isSessionUnknown(response, new Headers(IN_SESSION))).toBe(false);
  });
});
