import { describe, expect, it } from "vitest";
import { mayRetry, readEnvelope, serviceError } from "../../src/api/envelope.js";
import { SERVICE_ERROR_CODES } from "../../src/error-codes.js";
import type { AgentAuthError, ErrorClass } from "../../src/errors.js";
import type { BufferedResponse } from "../../src/http/buffered-response.js";
import { createTransport } from "../../src/http/transport.js";
import { Redactor } from "../../src/redact.js";

const mask = (text: string) => text;

/** The reply that a transport makes of an answer. */
function replyTo(body: unknown, init: ResponseInit = {}): Promise<BufferedResponse> {
  const fetch = async () => (typeof body === "string" ? new Response(body, init) : Response.json(body, init));
  return createTransport({ fetch, maxRetries: 0 })(new Request("https://agentauth.example/api/v1/pool?domain_id=d"));
}

async function errorOf(body: unknown, init: ResponseInit = {}, masking = mask): Promise<AgentAuthError> {
  const reply = await replyTo(body, init);
  try {
    readEnvelope(reply, masking);
  } catch (error) {
    return error as AgentAuthError;
  }
  throw new Error("expected an error");
}

const failure = (code: unknown, message: unknown = "words") => ({ status: "error", code, message });

describe("a success", () => {
  it("gives summaries, pagination and sorting", async () => {
    const body = {
      status: "success",
      summaries: [{ id: "a" }],
      pagination: { item_count: 1 },
      sorting: { field: "id", direction: "asc" },
    };
    const { status: _, ...expected } = body;
    expect(readEnvelope(await replyTo(body), mask)).toEqual(expected);
  });

  it("may lack status, sorting and every number, and may have more than is documented", async () => {
    for (const absent of [undefined, null]) {
      const reply = await replyTo({ summaries: [], status: absent, pagination: {}, sorting: absent, more: 1 });
      expect(readEnvelope(reply, mask)).toEqual({ summaries: [], pagination: {}, sorting: undefined });
    }
  });

  it("is taken by its members where no type says that it is JSON", async () => {
    const summaries = [{ id: "a" }];
    const text = JSON.stringify({ status: "success", summaries, pagination: {} });
    for (const headers of [{ "content-type": "text/plain" }, { "content-type": "text/html; charset=utf-8" }])
      expect(readEnvelope(await replyTo(text, { headers }), mask).summaries).toEqual(summaries);
    const refused = [text.slice(0, -1), `${text.slice(0, -1)},"x":"\ufffd"}`, '{"items":[]}', `[${text}]`];
    for (const body of refused) {
      const error = await errorOf(body, { headers: { "content-type": "text/plain" } });
      expect(error).toMatchObject({ code: "bad_content_type" });
    }
    const failed = { status: 400, headers: { "content-type": "text/plain" } };
    expect(await errorOf(JSON.stringify(failure("not_permitted")), failed)).toMatchObject({ code: "not_permitted" });
  });

  it.each([
    [undefined, "missing"],
    [null, "null"],
    [[], "an array"],
    [7, 'the number "7"'],
  ])("is refused without a pagination object: %j", async (pagination, said) => {
    const error = await errorOf({ summaries: [{ id: "a" }], pagination });
    expect(error).toMatchObject({ code: "bad_pagination", class: "refused", status: 200 });
    expect(error.message).toBe(
      `https://agentauth.example/api/v1/pool: pagination is ${said}, not an object: the end of the list is unknown`,
    );
  });
});

describe("an answer that is no envelope", () => {
  it.each([
    [[], "the body is an array, not an object"],
    ["null", "the body is null, not an object"],
    ["7", 'the body is the number "7", not an object'],
    [{}, "summaries is missing, not an array"],
    [{ summaries: null }, "summaries is null, not an array"],
    [{ summaries: {} }, "summaries is an object, not an array"],
    [{ summaries: "x\u001b" }, String.raw`summaries is the string "x\e", not an array`],
    [{ summaries: [{}, null] }, "summaries[1] is null, not an object"],
    [{ summaries: [["x"]] }, "summaries[0] is an array, not an object"],
    [{ summaries: [], status: "ok\u202e" }, String.raw`status is "ok\u{202e}", neither "success" nor "error"`],
    [{ summaries: [], status: 0 }, 'status is "0"'],
  ])("is refused: %j", async (body, said) => {
    const error = await errorOf(body, { headers: { "content-type": "application/json", "x-request-id": "req_1" } });
    expect(error).toMatchObject({ code: "bad_envelope", class: "refused", status: 200, requestId: "req_1" });
    expect(error.message).toContain(`https://agentauth.example/api/v1/pool: ${said}`);
  });

  it("is refused without a secret that it repeats", async () => {
    const redactor = new Redactor();
    redactor.add("canary-token");
    const error = await errorOf({ summaries: [], status: "canary-token" }, {}, (text) => redactor.redact(text));
    expect(error.message).toContain('status is "********", neither');
  });

  it("is refused when its status is nested too deep to be shown", async () => {
    const deep = `{"summaries":[],"status":${"[".repeat(50_000)}${"]".repeat(50_000)}}`;
    expect(await errorOf(deep, { headers: { "content-type": "application/json" } })).toMatchObject({
      code: "bad_envelope",
    });
  });

  it("is refused with its type and its first words when it is a page of a proxy", async () => {
    const body = `<html>\u001b[2J Sign in to the \u202e network ${"x".repeat(500)}`;
    const error = await errorOf(body, { headers: { "content-type": "text/html\u00e4" } });
    expect(error).toMatchObject({ code: "bad_content_type", class: "refused", retryable: false });
    expect(error.message).toContain("text/html");
    expect(error.message).toContain(String.raw`it begins with "<html>\e[2J Sign in to the \u{202e} network xxx`);
    expect(error.message.length).toBeLessThan(300);
    expect(error.hint).toContain("base URL");
  });

  it("is refused when it is of no type, or empty", async () => {
    const untyped = new Response(new TextEncoder().encode("{}"));
    // The server of the MCP SDK replaces the global Response with one that names a type.
    untyped.headers.delete("content-type");
    const reply = await createTransport({ fetch: async () => untyped })(new Request("https://agentauth.example"));
    expect(() => readEnvelope(reply, mask)).toThrow("of no stated type");
    expect(await errorOf("", { headers: { "content-type": "application/json" } })).toMatchObject({
      code: "bad_json",
      class: "refused",
    });
  });
});

describe("an error of the service", () => {
  const classes: Record<string, ErrorClass> = {
    bad_authtoken: "auth",
    not_authenticated: "auth",
    unknown: "remote",
    unexpected: "remote",
  };

  it.each(SERVICE_ERROR_CODES)("%s is decided by the code of the body, whatever the status", async (code) => {
    for (const status of [200, 400, 403, 404, 422]) {
      const error = await errorOf(failure(code), { status, headers: { "x-request-id": "req_2" } });
      expect(error).toMatchObject({ code, class: classes[code] ?? "remote", status, requestId: "req_2" });
      expect(error.message).toBe(`https://agentauth.example/api/v1/pool: words (${code}, HTTP ${status})`);
    }
  });

  it("that is a verdict stays one in a 5xx; `unknown` and `unexpected` are a service that is not well", async () => {
    for (const code of SERVICE_ERROR_CODES) {
      const isPassing = code === "unknown" || code === "unexpected";
      const error = await errorOf(failure(code), { status: 500 });
      expect(error.class).toBe(isPassing ? "unavailable" : (classes[code] ?? "remote"));
      expect(error.retryable).toBe(isPassing);
    }
  });

  it("with a code of a newer service passes through", async () => {
    expect(await errorOf(failure("quota_spent"), { status: 402 })).toMatchObject({
      code: "quota_spent",
      class: "remote",
    });
    expect((await errorOf(failure("x".repeat(900)))).code).toHaveLength(100);
  });

  it.each([
    [429, "rate_limited", "unavailable"],
    [500, "server_error", "unavailable"],
    [503, "server_error", "unavailable"],
    [408, "http_error", "unavailable"],
    [401, "http_error", "auth"],
    [403, "http_error", "remote"],
    [404, "http_error", "remote"],
    [302, "http_error", "remote"],
  ])("without a body that is documented is classified by its status: HTTP %i is `%s`", async (status, code, kind) => {
    for (const body of ["<html>", "{}", '{"status":"error"}', failure(7, 7), failure("", "")]) {
      const error = await errorOf(body, { status });
      expect(error).toMatchObject({ code, class: kind, status });
      expect(error.message).toBe(`https://agentauth.example/api/v1/pool: HTTP ${status}`);
    }
  });

  it("is `unavailable` with HTTP 429 whatever its code", async () => {
    expect(await errorOf(failure("bad_request"), { status: 429 })).toMatchObject({
      code: "bad_request",
      class: "unavailable",
    });
  });

  it("keeps its code and message where its body lacks the status", async () => {
    for (const status of [undefined, null]) {
      const error = await errorOf({ ...failure("not_permitted", "not yours"), status }, { status: 403 });
      expect(error).toMatchObject({ code: "not_permitted", class: "remote", status: 403 });
      expect(error.message).toBe("https://agentauth.example/api/v1/pool: not yours (not_permitted, HTTP 403)");
    }
    expect((await errorOf({ ...failure("not_permitted"), status: "ok" }, { status: 403 })).code).toBe("http_error");
    const summaries = { summaries: [], code: "not_permitted" };
    expect(serviceError(await replyTo(summaries), mask)).toBeUndefined();
  });

  it("says what helps", async () => {
    expect((await errorOf(failure("not_authenticated"))).hint).toBe("give an API token");
    expect((await errorOf(failure("bad_authtoken"))).hint).toContain("valid");
    expect((await errorOf("", { status: 401 })).hint).toContain("API token");
    expect((await errorOf(failure("not_found"))).hint).toContain("identifier");
    expect((await errorOf(failure("bad_request"))).hint).toBeUndefined();
  });

  it("is shown escaped, cut and masked", async () => {
    const redactor = new Redactor();
    redactor.add("canary-token");
    const said = `\u001b]52;c;x\u0007 canary-token ${"y".repeat(900)}`;
    const error = await errorOf(failure("code\u001b", said), { status: 400 }, (text) => redactor.redact(text));
    expect(error.message).toContain(String.raw`\e]52;c;x\u{7} ******** yyy`);
    expect(error.message).toContain(String.raw`(code\e, HTTP 400)`);
    expect(error.message).not.toContain("\u001b");
    expect(error.message.length).toBeLessThan(700);
  });

  it("is none for a success", async () => {
    expect(serviceError(await replyTo({ status: "success", summaries: [] }), mask)).toBeUndefined();
  });
});

it("an answer with a status that is retried is final only when its body carries a verdict", async () => {
  for (const code of SERVICE_ERROR_CODES) {
    const isPassing = code === "unknown" || code === "unexpected";
    expect(mayRetry(await replyTo(failure(code), { status: 500 }))).toBe(isPassing);
    expect(mayRetry(await replyTo(failure(code), { status: 429 }))).toBe(true);
  }
  expect(mayRetry(await replyTo({ code: "not_permitted" }, { status: 503 }))).toBe(false);
  for (const body of ["<html>", {}, [], failure(undefined), failure("brand_new"), { code: "brand_new" }]) {
    expect(mayRetry(await replyTo(body, { status: 500 }))).toBe(true);
  }
});
