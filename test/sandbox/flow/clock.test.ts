import { describe, expect, vi } from "vitest";
import {
  begin,
  callTool,
  discover,
  landing,
  logIn,
  post,
  REDIRECT_URI,
  refresh,
  refreshed,
  register,
} from "../oauth/support.js";
import { it as base, failureOf } from "../support.js";

const it = base.extend({ options: { devices: 5, autoApprove: true } });

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
