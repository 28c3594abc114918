import { inspect } from "node:util";
import { describe, expect, it, vi } from "vitest";
import { AgentAuthError, abortedError, isAgentAuthError } from "../src/errors.js";

const full = () =>
  new AgentAuthError("not_found", "no such pool", {
    class: "remote",
    status: 404,
    requestId: "req_1",
    url: "https://agentauth.example/api/v1/device",
    hint: "check the identifier",
    resume: 50,
    response: new Response("canary-body", { headers: { "x-canary": "canary-header" } }),
    cause: new Error("why"),
  });

describe("an AgentAuthError", () => {
  it("is an Error with a name, a code, a class and a cause", () => {
    const error = full();
    expect(error).toBeInstanceOf(Error);
    expect(error).toMatchObject({
      name: "AgentAuthError",
      code: "not_found",
      class: "remote",
      message: "no such pool",
    });
    expect(error.cause).toEqual(new Error("why"));
    expect(String(error)).toBe("AgentAuthError: no such pool");
    expect(error.stack).toContain("errors.test.ts");
  });

  it("holds the answer out of sight: not enumerable, not in JSON, not printed", () => {
    const error = full();
    expect(error.response?.status).toBe(200);
    expect(Object.keys(error)).not.toContain("response");
    expect({ ...error }).not.toHaveProperty("response");
    expect(JSON.stringify(error) + inspect(error, { depth: 9 }) + String(error)).not.toMatch(/canary/);
  });

  it("is plain data as JSON, without what is absent and without its cause", () => {
    expect(JSON.parse(JSON.stringify(full()))).toEqual({
      code: "not_found",
      class: "remote",
      message: "no such pool",
      hint: "check the identifier",
      retryable: false,
      status: 404,
      request_id: "req_1",
      url: "https://agentauth.example/api/v1/device",
      resume: 50,
    });
    const bare = new AgentAuthError("usage", "no", { class: "usage", hint: undefined, response: undefined });
    expect(bare.toJSON()).toEqual({ code: "usage", class: "usage", message: "no", retryable: false });
    expect("hint" in bare || "response" in bare || "cause" in bare || "status" in bare).toBe(false);
  });

  it("keeps an offset of zero", () => {
    expect(new AgentAuthError("timeout", "x", { class: "partial", resume: 0 }).toJSON().resume).toBe(0);
  });

  it("may be retried when something was unavailable, unless it says otherwise", () => {
    expect(new AgentAuthError("timeout", "x", { class: "unavailable" }).retryable).toBe(true);
    expect(new AgentAuthError("tls_failed", "x", { class: "unavailable", retryable: false }).retryable).toBe(false);
    expect(new AgentAuthError("bad_json", "x", { class: "refused", retryable: true }).retryable).toBe(true);
    for (const other of ["internal", "usage", "refused", "auth", "remote", "partial", "store", "aborted"] as const) {
      expect(new AgentAuthError("x", "x", { class: other }).retryable).toBe(false);
    }
  });

  it("is known across two copies of the package, where instanceof fails", async () => {
    vi.resetModules();
    const copy = await import("../src/errors.js");
    const foreign = new copy.AgentAuthError("timeout", "x", { class: "unavailable" });
    expect(foreign).not.toBeInstanceOf(AgentAuthError);
    expect(isAgentAuthError(foreign)).toBe(true);
    expect(copy.isAgentAuthError(full())).toBe(true);
    const error = full();
    expect(copy.isAgentAuthError(error, error.code)).toBe(true);
    expect(copy.isAgentAuthError(error, "login_required")).toBe(false);
    expect([error].filter(isAgentAuthError)).toEqual([error]);
  });

  it("is nothing else", () => {
    for (const value of [
      undefined,
      null,
      "timeout",
      7,
      {},
      new Error("x"),
      { name: "AgentAuthError", code: "timeout" },
    ]) {
      expect(isAgentAuthError(value)).toBe(false);
    }
  });
});

describe("the error of a signal", () => {
  it("is `aborted`, with the reason as its cause", () => {
    expect(abortedError(AbortSignal.abort("enough"))).toMatchObject({
      code: "aborted",
      class: "aborted",
      retryable: false,
      cause: "enough",
    });
    expect(abortedError(AbortSignal.abort()).cause).toMatchObject({ name: "AbortError" });
  });

  it("is the reason itself where that is one of ours", () => {
    const reason = full();
    expect(abortedError(AbortSignal.abort(reason))).toBe(reason);
  });
});
