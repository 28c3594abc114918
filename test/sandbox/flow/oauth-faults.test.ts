import { describe, expect, vi } from "vitest";
import { type Fault, type FaultEndpoint, parseFault, type Sandbox } from "../../../src/sandbox/index.js";
import {
  begin,
  callTool,
  discover,
  type LoggedIn,
  landing,
  logIn,
  post,
  REDIRECT_URI,
  refresh,
  refreshed,
  register,
  rpc,
} from "../oauth/support.js";
import { it as base, failureOf } from "../support.js";

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

it("step-up refuses tool calls until the token has the scope, and nothing else", async ({ sandbox }) => {
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

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

describe.each([false, true])("the clock, opaque tokens: %s", (opaque) => {
  it("lets an access token expire while its refresh token is still good", async ({ start }) => {
    const sandbox = await start({ opaque });
    const session = await logIn(sandbox);
    const status = async (token: string) => (await callTool(sandbox.mcpUrl, token, "whoami")).status;
    const { access_token: token } = session.tokens;
    sandbox.clock.advance(HOUR - 60_000);
    expect(await status(token)).toBe(200);
    sandbox.clock.advance(60_000);
    expect(await status(token)).toBe(401);
    const inactive = await post(session, session.as.introspection_endpoint, { token });
    expect(await inactive.json()).toEqual({ active: false });
    const next = await refreshed(session);
    expect(await status(next.access_token)).toBe(200);
    const response = await post(session, session.as.introspection_endpoint, { token: next.access_token });
    const { iat, exp } = (await response.json()) as { iat: number; exp: number };
    expect(Math.abs(iat - sandbox.clock.now() / 1000)).toBeLessThan(30);
    expect(exp - iat).toBe(3600);
  });

  it("lets refresh tokens expire too, each by itself", async ({ start }) => {
    const sandbox = await start({ opaque, accessTokenTtlSeconds: 60 });
    const session = await logIn(sandbox);
    sandbox.clock.advance(15 * DAY);
    const next = await refreshed(session);
    expect(next.expires_in).toBe(60);
    sandbox.clock.advance(16 * DAY);
    const again = await refreshed(session, next.refresh_token);
    sandbox.clock.advance(30 * DAY);
    const late = await refresh(session, again.refresh_token);
    expect([late.status, await late.json()]).toMatchObject([400, { error: "invalid_grant" }]);
  });
});

it("an authorization code is too old after a minute, and a login on the pages after an hour", async ({ start }) => {
  const sandbox = await start();
  const as = await discover(sandbox);
  const client = await register(as);
  const begun = await begin(as, client);
  const code = (await landing(begun.url)).searchParams.get("code") ?? "";
  sandbox.clock.advance(61_000);
  const form = { grant_type: "authorization_code", code, redirect_uri: REDIRECT_URI, code_verifier: begun.verifier };
  expect((await post({ client }, as.token_endpoint, form)).status).toBe(400);
});

it("a clock that stands still keeps everything as it is", async ({ start }) => {
  const sandbox = await start({ now: () => 1_000_000, accessTokenTtlSeconds: 2 });
  const { tokens } = await logIn(sandbox);
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + HOUR });
  try {
    expect((await callTool(sandbox.mcpUrl, tokens.access_token, "whoami")).status).toBe(200);
  } finally {
    vi.useRealTimers();
  }
  sandbox.clock.advance(2000);
  expect((await callTool(sandbox.mcpUrl, tokens.access_token, "whoami")).status).toBe(401);
});

it("goes forward only, in whole milliseconds, in this process or from another", async ({ start }) => {
  const sandbox = await start({ now: () => 5000 });
  for (const wrong of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY]) {
    expect(() => sandbox.clock.advance(wrong)).toThrow(TypeError);
  }
  expect(sandbox.clock.advance(10)).toBe(5010);
  const headers = { authorization: `Bearer ${sandbox.controlToken}`, "content-type": "application/json" };
  const url = `${sandbox.origin}/_sandbox/clock`;
  const advance = (body: unknown) => fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  expect(await (await advance({ advance_ms: 90 })).json()).toEqual({ status: "success", now: 5100 });
  expect(await (await fetch(url, { headers })).json()).toEqual({ status: "success", now: 5100 });
  for (const wrong of [{ advance_ms: -1 }, { advance_ms: "5" }, {}, null, 5]) {
    expect(await failureOf(await advance(wrong))).toEqual([400, "invalid_value"]);
  }
  expect(sandbox.clock.now()).toBe(5100);
  await fetch(`${sandbox.origin}/health`);
  expect(sandbox.requests.at(-1)?.at).toBe(5100);
});
