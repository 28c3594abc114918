import type { AuthProvider, OAuthClientProvider as OAuthClientProvider2 } from "@modelcontextprotocol/client";
import type { OAuthClientProvider as OAuthClientProvider1 } from "@modelcontextprotocol/sdk/client/auth.js";
import { expect, it } from "vitest";
import { AgentClient } from "../../../src/oauth/agent.js";
import { memoryStore } from "../../../src/store/memory.js";

it("the providers have the types of both SDKs, and print no secret", () => {
  const agent = new AgentClient({ store: memoryStore() });
  const url = new URL("https://mcp.example/mcp");
  const provider = agent.authProvider(url, { scope: "mcp", signal: new AbortController().signal });
  const two: AuthProvider & OAuthClientProvider2 = provider;
  const one: OAuthClientProvider1 & OAuthClientProvider2 = agent.oauthClientProvider(url.href);
  expect([typeof two.token, typeof two.onUnauthorized, typeof one.tokens]).toEqual(Array(3).fill("function"));
  expect(JSON.stringify(provider)).toBe("{}");
  for (const step of [
    () => one.redirectToAuthorization(url),
    () => one.saveCodeVerifier("verifier"),
    () => one.codeVerifier(),
  ]) {
    expect(step).toThrow(
      new TypeError("the agent client logs in: the transport's finishAuth() is not for its providers"),
    );
  }
});

it("a provider rejects an invalid scope and an aborted signal before any request", () => {
  const agent = new AgentClient({ store: memoryStore() });
  expect(() => agent.authProvider("https://mcp.example/mcp", { scope: 'a"b' })).toThrow(/scopes/);
  expect(() => agent.authProvider("https://mcp.example/mcp", { signal: AbortSignal.abort() })).toThrow(/aborted/);
  expect(() => agent.authProvider("not an address")).toThrow(/not an address/);
});
