import * as oauth from "oauth4webapi";
import { describe, expect, it } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import { mapErrorCode, oauthError, withResourceHint } from "../../../src/oauth/http/oauth-error.js";
import { quote } from "../../../src/redact.js";

const AT = "https://as.example/token";
const LATER = { "retry-after": "7" };

const answer = (status: number, headers = {}) => new Response("{}", { status, headers });
const bodyError = (status: number, cause: Record<string, string | number>, headers = {}) =>
  new oauth.ResponseBodyError("failed", { cause: cause as never, response: answer(status, headers) });

const captured = (thrown: unknown, known: string[] = []) => {
  const error = oauthError(thrown, AT, known);
  expect(error).toBeInstanceOf(AgentAuthError);
  return error as AgentAuthError;
};

describe("the error of an issuer", () => {
  it.each([
    "invalid_grant",
    "invalid_client",
    "unauthorized_client",
    "access_denied",
    "login_required",
    "interaction_required",
    "consent_required",
    "expired_token",
    "invalid_token",
  ])("%s is one of the login, unless it may pass", (error) => {
    const message = `${AT} answered "${error}"`;
    expect(captured(bodyError(400, { error }))).toMatchObject({
      code: error,
      class: "auth",
      status: 400,
      url: AT,
      message,
    });
    expect(captured(bodyError(503, { error }))).toMatchObject({ code: error, class: "unavailable", status: 503 });
  });

  it.each<[number, string, string, string, number | undefined]>([
    [400, "invalid_request", "invalid_request", "remote", undefined],
    [499, "invalid_request", "invalid_request", "remote", undefined],
    [500, "invalid_request", "invalid_request", "unavailable", 7],
    [429, "slow_down", "slow_down", "unavailable", 7],
    [400, "temporarily_unavailable", "temporarily_unavailable", "unavailable", 7],
    [400, "server_error", "server_error", "unavailable", 7],
    [400, "timeout", "http_error", "remote", undefined],
    [400, "connection_reset", "http_error", "remote", undefined],
    [400, "bad_json", "http_error", "remote", undefined],
    [400, "grant_not_saved", "http_error", "remote", undefined],
    [400, "lease_lost", "http_error", "remote", undefined],
    [400, "renewal_storm", "http_error", "remote", undefined],
  ])("with HTTP %d and %s has the code %s and the class %s", (status, error, code, kind, retryAfter) => {
    expect(captured(bodyError(status, { error }, LATER))).toMatchObject({ code, class: kind, status, url: AT });
    expect(captured(bodyError(status, { error }, LATER)).retryAfter).toBe(retryAfter);
    expect(captured(bodyError(status, { error })).retryAfter).toBeUndefined();
  });

  it("keeps a code of 64 characters", () => {
    expect([mapErrorCode("x".repeat(64)), mapErrorCode("x".repeat(65))]).toEqual(["x".repeat(64), "http_error"]);
  });

  it.each<[string | number, string]>([
    ["used up", ": used up"],
    ["a\u001b[2J", ": a\\e[2J"],
    ["x".repeat(400), `: ${"x".repeat(300)}`],
    [7, ""],
  ])("has the description %j", (description, shown) => {
    const thrown = bodyError(400, { error: "invalid_grant", error_description: description });
    expect(captured(thrown).message).toBe(`${AT} answered "invalid_grant"${shown}`);
    const ofCallback = { error: "access_denied", error_description: String(description) };
    const failed = new oauth.AuthorizationResponseError("failed", { cause: new URLSearchParams(ofCallback) });
    expect(captured(failed).message).toBe(`the login failed with "access_denied"${shown || ": 7"}`);
  });

  it("shows no secret that the server knows", () => {
    const thrown = bodyError(400, { error: "hush-hush", error_description: "not hush-hush" });
    const { code, message } = captured(thrown, ["hush-hush"]);
    expect(code).not.toContain("hush");
    expect(message).not.toContain("hush");
    expect(captured(thrown)).toMatchObject({ code: "hush-hush" });
  });

  it("about a proof is one of the clock", () => {
    expect(captured(bodyError(400, { error: "invalid_dpop_proof" }))).toMatchObject({
      class: "remote",
      hint: "check the clock of this machine",
      remedy: { action: "inspect", subject: "clock" },
    });
    const { hint, remedy } = captured(bodyError(400, { error: "invalid_request" }));
    expect([hint, remedy]).toEqual([undefined, undefined]);
  });

  it.each<[number, string, string, number | undefined]>([
    [401, "http_error", "auth", undefined],
    [499, "http_error", "auth", undefined],
    [429, "server_error", "unavailable", 7],
    [500, "server_error", "unavailable", 7],
  ])("that is a challenge with HTTP %d has the code %s", (status, code, kind, retryAfter) => {
    const cause = [{ scheme: "basic", parameters: {} }] as never;
    const thrown = new oauth.WWWAuthenticateChallengeError("failed", { cause, response: answer(status, LATER) });
    const message = `${AT} answered HTTP ${status}`;
    expect(captured(thrown)).toMatchObject({ code, class: kind, status, url: AT, message });
    expect(captured(thrown).retryAfter).toBe(retryAfter);
  });

  it.each([
    ["access_denied", "auth"],
    ["temporarily_unavailable", "unavailable"],
    ["server_error", "unavailable"],
  ])("%s in a callback is of the class %s", (error, kind) => {
    const thrown = new oauth.AuthorizationResponseError("failed", { cause: new URLSearchParams({ error }) });
    const message = `the login failed with "${error}"`;
    expect(captured(thrown)).toMatchObject({ code: error, class: kind, url: AT, message });
  });

  it.each<[unknown, string | undefined, string, string, string]>([
    [answer(500, LATER), undefined, "server_error", "unavailable", "HTTP 500"],
    [answer(429, LATER), undefined, "server_error", "unavailable", "HTTP 429"],
    [answer(400), undefined, "http_error", "remote", "HTTP 400"],
    [answer(300), undefined, "bad_token_answer", "refused", "broken\\e"],
    [undefined, undefined, "bad_token_answer", "refused", "broken\\e"],
    [answer(200), oauth.PARSE_ERROR, "bad_json", "unavailable", "the response is empty"],
  ])("that breaks a rule names it, or the status: %#", (cause, code, expected, kind, text) => {
    const thrown = new oauth.OperationProcessingError("broken\u001b", { cause, ...(code && { code }) } as never);
    expect(captured(thrown)).toMatchObject({ code: expected, class: kind, url: AT, message: `${AT}: ${text}` });
    expect(captured(thrown).retryAfter).toBe(expected === "server_error" ? 7 : undefined);
  });

  it("is passed on where it is ours, or unknown", () => {
    const ours = new AgentAuthError("timeout", "late", { class: "unavailable" });
    const bug = new RangeError("oops");
    expect([oauthError(ours, AT), oauthError(bug, AT)]).toEqual([ours, bug]);
  });
});

describe("an issuer that rejects the resource", () => {
  const error = (code: string, message = "no", hint?: string) =>
    new AgentAuthError(code, message, { class: "remote", ...(hint !== undefined && { hint }) });
  const ENTRA = "AADSTS9010010: no match";

  it.each<[AgentAuthError, boolean]>([
    [error("invalid_target"), true],
    [error("invalid_target", "no", "ask them"), false],
    [error("invalid_scope"), false],
    [error("invalid_scope", ENTRA), true],
    [error("invalid_target", ENTRA, "ask them"), true],
  ])("is advised to set the option: %#", (given, isAdvised) => {
    const resource = "https://mcp.example/mcp";
    const hint = `the issuer rejects the resource ${quote(resource)}: with resource "none" none is sent, or set another one`;
    const remedy = { action: "configure", option: "resource", value: resource };
    const advised = withResourceHint(given, resource);
    if (isAdvised) expect(advised).toMatchObject({ code: given.code, hint, remedy });
    else expect(advised).toBe(given);
    const without = { hint: "the issuer needs a resource: set the option resource" };
    if (isAdvised) expect(withResourceHint(given, "none")).toMatchObject(without);
  });

  it("is no other error", () => {
    const bug = new RangeError(ENTRA);
    expect(withResourceHint(bug, "none")).toBe(bug);
  });
});
