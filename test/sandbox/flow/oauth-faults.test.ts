import { describe, expect } from "vitest";
import { type Fault, type FaultEndpoint, parseFault, type Sandbox } from "../../../src/sandbox/index.js";
import { begin, callTool, type LoggedIn, logIn, post, refresh, refreshed, rpc } from "../oauth/support.js";
import { it as base } from "../support.js";

const it = base.extend({ options: { devices: 5, autoApprove: true } });
const reset = { cause: { code: "ECONNRESET" } };

/** A request to each endpoint. */
const requests: Readonly<
  Record<Exclude<FaultEndpoint, "device_authorization">, (session: LoggedIn, sandbox: Sandbox) => Promise<Response>>
> = {
  metadata: ({ as }) => fetch(`${as.issuer}/.well-known/oauth-authorization-server`),
  authorize: async ({ as, client }) => fetch((await begin(as, client)).url, { redirect: "manual" }),
  token: (session) => refresh(session),
  register: ({ as }) => fetch(as.registration_endpoint ?? "", { method: "POST" }),
  introspect: (session) => post(session, session.as.introspection_endpoint, { token: "x" }),
  jwks: ({ as }) => fetch(as.jwks_uri ?? ""),
  end_session: ({ as }) => fetch(as.end_session_endpoint ?? ""),
  prm: (_session, sandbox) => fetch(`${sandbox.origin}/.well-known/oauth-protected-resource/mcp`),
  mcp: ({ tokens }, sandbox) => rpc(sandbox.mcpUrl, tokens.access_token, "tools/list"),
};

describe.each(Object.entries(requests))("at %s", (path, ask) => {
  it("a status, and no answer at all", async ({ sandbox }) => {
    const session = await logIn(sandbox);
    sandbox.faults.add([
      { kind: "status", status: 503, path },
      { kind: "reset-before", path },
    ]);
    for (const [other, requested] of Object.entries(requests)) {
      if (other !== path && other !== "token") expect((await requested(session, sandbox)).status).not.toBe(503);
    }
    expect((await ask(session, sandbox)).status).toBe(503);
    await expect(ask(session, sandbox)).rejects.toMatchObject(reset);
    expect((await ask(session, sandbox)).status).not.toBe(503);
    expect(sandbox.faults.list().map(({ fired }) => fired)).toEqual([1, 1]);
  });

  it("half an answer, a lost one, a late one", async ({ sandbox }) => {
    const session = await logIn(sandbox);
    sandbox.faults.add({ kind: "reset-after", path });
    await expect(ask(session, sandbox)).rejects.toMatchObject(reset);
    if (path === "token") return;
    sandbox.faults.add({ kind: "slow-headers", ms: 3_600_000, path });
    const late = ask(session, sandbox).catch(() => "closed");
    const first = await Promise.race([late, fetch(`${sandbox.origin}/health`)]);
    expect(first).toMatchObject({ url: `${sandbox.origin}/health` });
    await sandbox.close();
    await late;
  });
});

describe("at the token endpoint", () => {
  it.for<Fault>([
    { kind: "reset-after", path: "token" },
    { kind: "reset-mid-body", path: "token" },
    { kind: "truncated-json", path: "token" },
  ])("%j: the token was rotated, and the answer is lost", async (fault, { sandbox }) => {
    const session = await logIn(sandbox);
    sandbox.faults.add(fault);
    await expect(refreshed(session)).rejects.toThrow();
    const again = await refresh(session);
    expect([again.status, await again.json()]).toMatchObject([400, { error: "invalid_grant" }]);
    expect(sandbox.requests.filter(({ fault: kind }) => kind === fault.kind)).toMatchObject([
      { operation: "refresh_token" },
    ]);
  });

  it.for<Fault>([
    { kind: "reset-before", path: "token" },
    { kind: "status", status: 503, path: "token" },
    { kind: "html", path: "token" },
  ])("%j: nothing was done, and the token is still good", async (fault, { sandbox }) => {
    const session = await logIn(sandbox);
    sandbox.faults.add(fault);
    await expect(refreshed(session)).rejects.toThrow();
    expect(await refreshed(session)).toMatchObject({ refresh_token: expect.any(String) });
  });

  it("refuse-refresh: invalid_grant, for refreshes only", async ({ sandbox }) => {
    sandbox.faults.add({ kind: "refuse-refresh" });
    const session = await logIn(sandbox);
    const refused = await refresh(session);
    expect([refused.status, await refused.json()]).toMatchObject([400, { error: "invalid_grant" }]);
    expect((await refresh(session)).status).toBe(200);
  });
});

describe("step-up", () => {
  it("refuses tool calls until the token has the scope, and nothing else", async ({ sandbox }) => {
    sandbox.faults.add(parseFault("step-up=files:write"));
    const { tokens } = await logIn(sandbox);
    for (let i = 0; i < 3; i++) {
      const refused = await callTool(sandbox.mcpUrl, tokens.access_token, "echo", { text: "x" });
      expect(refused.status).toBe(403);
      expect(refused.headers.get("www-authenticate")).toBe(
        `Bearer error="insufficient_scope", scope="files:write", ` +
          `resource_metadata="${sandbox.origin}/.well-known/oauth-protected-resource/mcp"`,
      );
    }
    expect((await rpc(sandbox.mcpUrl, tokens.access_token, "tools/list")).status).toBe(200);
    expect((await callTool(sandbox.mcpUrl, undefined, "echo")).status).toBe(401);
    const more = await logIn(sandbox, { scope: "mcp files:write" });
    expect((await callTool(sandbox.mcpUrl, more.tokens.access_token, "echo", { text: "x" })).status).toBe(200);
  });
});

it("faults of lists leave the other endpoints alone", async ({ sandbox }) => {
  sandbox.faults.add([{ kind: "extra-fields" }, { kind: "empty-page" }]);
  await logIn(sandbox);
  expect(sandbox.faults.list().map(({ matched }) => matched)).toEqual([0, 0]);
});

it("refuses bodies that are too large", async ({ sandbox }) => {
  const { as, tokens } = await logIn(sandbox);
  const body = "x".repeat(1024 * 1024 + 1);
  expect((await fetch(as.token_endpoint ?? "", { method: "POST", body })).status).toBe(413);
  const headers = { authorization: `Bearer ${tokens.access_token}` };
  expect((await fetch(sandbox.mcpUrl, { method: "POST", body, headers })).status).toBe(413);
});
