import { describe, expect, it } from "vitest";
import type { Clock } from "../../../src/http/deadline.js";
import { OAuthHttp } from "../../../src/oauth/http/http.js";
import { pendingError } from "../../helpers/captured.js";
import { startScene } from "../../helpers/issuer.js";

const URL_A = "https://as.example/.well-known/oauth-authorization-server";

/** A client whose peer answers with the headers, and how often that was called. */
function requested(headers: Record<string, string>, status = 200) {
  let now = 1_000_000;
  let times = 0;
  const clock: Clock = { now: () => now, epoch: () => now, sleep: async () => {} };
  const fetch = async () => {
    times++;
    return Response.json({ nth: times }, { status, headers });
  };
  const http = new OAuthHttp({ fetch, clock, maxRetries: 0 });
  return {
    http,
    read: async (url = URL_A) => ((await http.document(url, undefined)).json as { nth: number }).nth,
    pass: (seconds: number) => {
      now += seconds * 1000;
    },
    times: () => times,
  };
}

describe("a metadata document", () => {
  it("is stored for as long as its headers allow, and requested again after that", async () => {
    const { read, pass } = requested({ "cache-control": "public, max-age=60" });
    expect([await read(), await read()]).toEqual([1, 1]);
    pass(59);
    expect(await read()).toBe(1);
    pass(1);
    expect(await read()).toBe(2);
  });

  it.each([
    {},
    { "cache-control": "no-store, max-age=60" },
    { "cache-control": "max-age=60, no-cache" },
    { "cache-control": "max-age=0" },
    { "cache-control": "max-age=-5" },
    { "cache-control": "max-age=soon" },
    { "cache-control": "max-age=60", age: "60" },
    { "cache-control": "max-age=60, max-age=0" },
  ])("is requested each time with %j", async (headers) => {
    const { read } = requested(headers as Record<string, string>);
    expect([await read(), await read()]).toEqual([1, 2]);
  });

  it("is stored for at most a day, whatever it says", async () => {
    const { read, pass } = requested({ "cache-control": "max-age=999999999" });
    await read();
    pass(24 * 3600 - 1);
    expect(await read()).toBe(1);
    pass(1);
    expect(await read()).toBe(2);
  });

  it("is stored by its address, and at most a hundred are stored", async () => {
    const { read } = requested({ "cache-control": "max-age=60" });
    for (let nth = 1; nth <= 101; nth++) expect(await read(`${URL_A}/${nth}`)).toBe(nth);
    expect(await read(`${URL_A}/101`)).toBe(101);
    expect(await read(`${URL_A}/1`)).toBe(102);
  });

  it("is not stored when it is a failure", async () => {
    const { read, times } = requested({ "cache-control": "max-age=60" }, 404);
    await read().catch(() => {});
    await read().catch(() => {});
    expect(times()).toBe(2);
  });

  it("is forgotten on demand", async () => {
    const { http, read } = requested({ "cache-control": "max-age=60" });
    await read();
    http.forgetDocuments();
    expect(await read()).toBe(2);
  });
});

describe("a client whose servers allow it to store their documents", () => {
  async function keepingScene() {
    const scene = await startScene();
    const { mcp, issuer } = scene;
    const headers = { "cache-control": "max-age=3600" };
    mcp.routes[mcp.wellKnown] = () => ({ json: mcp.metadata, headers });
    issuer.routes["/pool/.well-known/oauth-authorization-server"] = () => ({ json: issuer.metadata, headers });
    const reads = () => scene.log.filter((line) => line === `mcp GET ${mcp.wellKnown}`).length;
    return { ...scene, reads };
  }

  it("reads them once for two logins", async () => {
    const { agent, mcp, reads } = await keepingScene();
    const client = agent();
    await client.login(mcp.url);
    await client.login(mcp.url);
    expect(reads()).toBe(1);
  });

  it("requests them again after a login that failed", async () => {
    const { agent, mcp, login, reads } = await keepingScene();
    const client = agent();
    login.alter = (callback) => new URLSearchParams({ error: "access_denied", state: callback.get("state") ?? "" });
    expect(await pendingError(client.login(mcp.url))).toMatchObject({ code: "access_denied" });
    login.alter = () => undefined;
    await client.login(mcp.url);
    expect(reads()).toBe(2);
  });

  it("requests them again when a token was refused, and so finds the issuer that took over", async () => {
    const { agent, mcp, issuer, another } = await keepingScene();
    issuer.tokens = () => ({ access_token: "first", token_type: "Bearer", expires_in: 3600 });
    mcp.accepts = (token) => token === "first";
    const client = agent();
    expect((await client.fetch(mcp.url)).status).toBe(200);
    const next = await another("next");
    next.tokens = () => ({ access_token: "second", token_type: "Bearer", expires_in: 3600 });
    mcp.metadata["authorization_servers"] = [next.issuer];
    mcp.accepts = (token) => token === "second";
    expect((await client.fetch(mcp.url)).status).toBe(200);
    expect((await client.token(mcp.url)).issuer).toBe(next.issuer);
  });
});
