import { once } from "node:events";
import { connect } from "node:net";
import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { MAX_LOGGED } from "../../src/sandbox/http/requests.js";
import { type Sandbox, type SandboxOptions, startSandbox } from "../../src/sandbox/index.js";
import { ask, it as base, devices, devicesUrl, failureOf, raw } from "./support.js";

async function statusOf(sandbox: Sandbox, path: string, headers: Record<string, string>): Promise<number> {
  const lines = Object.entries({ Authorization: `Bearer ${sandbox.apiToken}`, ...headers }).map(
    ([k, v]) => `${k}: ${v}\r\n`,
  );
  const text = await raw(sandbox, `GET ${path} HTTP/1.1\r\n${lines.join("")}Connection: close\r\n\r\n`);
  expect(text.toLowerCase()).toContain("\r\nx-request-id: req_");
  return Number(/^HTTP\/1\.1 (\d+)/.exec(text)?.[1]);
}

describe("a sandbox", () => {
  test("listens on loopback under an origin of its own and says how it is", async () => {
    await using sandbox = await startSandbox();
    expect(sandbox.origin).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(sandbox.baseUrl).toBe(sandbox.origin);
    expect(sandbox.apiToken).toMatch(/^sandbox_[\w-]{20,}$/);
    expect(sandbox.controlToken).not.toBe(sandbox.apiToken);
    expect(sandbox.accounts[0]?.id).toBe(sandbox.ids.account);
    const health = await fetch(`${sandbox.origin}/health`);
    expect(await health.json()).toMatchObject({ status: "ok" });
  });

  test("does not show its tokens when it is printed", async () => {
    await using sandbox = await startSandbox();
    const printed = inspect(sandbox, { depth: 9 }) + JSON.stringify(sandbox);
    expect(printed).toContain(sandbox.origin);
    expect(printed).not.toContain(sandbox.apiToken);
    expect(printed).not.toContain(sandbox.controlToken);
  });

  test("gives the same data for the same seed, over the wire too", async () => {
    const now = () => 1_790_000_000_000;
    await using one = await startSandbox({ seed: 5, now });
    await using two = await startSandbox({ seed: 5, now });
    await using other = await startSandbox({ seed: 6, now });
    expect(await devices(one)).toEqual(await devices(two));
    expect((await devices(one)).summaries).not.toEqual((await devices(other)).summaries);
    expect(one.apiToken).not.toBe(two.apiToken);
  });

  test.each(["0.0.0.0", "::", "192.168.1.5", "example.com"])(
    "does not listen on %s unless that is allowed",
    async (host) => {
      await expect(startSandbox({ host })).rejects.toMatchObject({
        code: "usage",
        class: "usage",
        message: expect.stringContaining(host),
        hint: expect.stringContaining("allowNonLoopback"),
      });
    },
  );

  test("listens on all addresses when that is allowed, and still refuses names", async () => {
    await using sandbox = await startSandbox({ host: "0.0.0.0", allowNonLoopback: true });
    const { port } = new URL(sandbox.origin);
    expect(await statusOf(sandbox, "/health", { Host: `192.168.1.5:${port}` })).toBe(200);
    expect(await statusOf(sandbox, "/health", { Host: `rebound.example:${port}` })).toBe(403);
  });

  test("publishes the public address alone, with cookies for https where it has that", async () => {
    const publicUrl = "https://sandbox.example";
    await using sandbox = await startSandbox({ publicUrl });
    expect([sandbox.baseUrl, sandbox.mcpUrl, sandbox.authUrl(sandbox.ids.pool)]).toEqual([
      publicUrl,
      `${publicUrl}/mcp`,
      `${publicUrl}/${sandbox.ids.pool}`,
    ]);
    const local = `${sandbox.origin}/${sandbox.ids.pool}`;
    const metadata = await (await fetch(`${local}/.well-known/oauth-authorization-server`)).json();
    const { issuer, authorization_endpoint, token_endpoint } = metadata as Record<string, string>;
    for (const one of [issuer, authorization_endpoint, token_endpoint]) {
      expect(one?.startsWith(`${publicUrl}/${sandbox.ids.pool}`)).toBe(true);
    }
    const registered = await fetch(`${local}/register`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ redirect_uris: ["http://127.0.0.1:1/"], token_endpoint_auth_method: "none" }),
    });
    const { client_id } = (await registered.json()) as { client_id: string };
    const query = new URLSearchParams({
      response_type: "code",
      client_id,
      code_challenge: "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
      code_challenge_method: "S256",
    });
    const page = await fetch(`${local}/authorize?${query}`, { redirect: "manual" });
    expect(page.headers.get("location")?.startsWith("http://")).not.toBe(true);
    expect(page.headers.getSetCookie()).not.toEqual([]);
    expect(page.headers.getSetCookie().filter((cookie) => !/; secure/i.test(cookie))).toEqual([]);
    expect(await statusOf(sandbox, "/health", { Host: "sandbox.example" })).toBe(200);
    expect(await statusOf(sandbox, "/health", { Host: "sandbox.example", Origin: publicUrl })).toBe(200);
    expect(await statusOf(sandbox, "/health", { Host: "other.example" })).toBe(403);
    expect(await statusOf(sandbox, "/health", { Host: "sandbox.example", Origin: "http://sandbox.example" })).toBe(403);
  });

  test.each<[string, SandboxOptions]>([
    ["publicUrl", { publicUrl: "https://sandbox.example/path" }],
    ["publicUrl", { publicUrl: "ftp://sandbox.example" }],
    ["devices", { devices: 1_000_001 }],
    ["devices", { devices: -1 }],
    ["pageSize", { pageSize: 0 }],
    ["seed", { seed: 1.5 }],
    ["pools", { accounts: 1000, domains: 1000, pools: 1000 }],
    ["apiToken", { apiToken: "two words" }],
    ["port", { port: 70_000 }],
    ["allowOrigins", { allowOrigins: ["http://localhost:5173", "*"] }],
    ["allowOrigins", { allowOrigins: ["null"] }],
    ["allowOrigins", { allowOrigins: ["localhost:5173"] }],
    ["allowOrigins", { allowOrigins: ["http://localhost:5173/"] }],
  ])("refuses a wrong %s", async (name, options) => {
    await expect(startSandbox(options)).rejects.toMatchObject({
      code: "usage",
      message: expect.stringContaining(name),
    });
  });

  test("says when a port is taken", async () => {
    await using sandbox = await startSandbox();
    const port = Number(new URL(sandbox.origin).port);
    await expect(startSandbox({ port })).rejects.toMatchObject({
      code: "usage",
      message: expect.stringContaining("in use"),
    });
  });

  test("refuses the Host of another site and the Origin of a web page", async () => {
    await using sandbox = await startSandbox();
    const { host, port } = new URL(sandbox.origin);
    const path = `/api/v1/pool?domain_id=${sandbox.ids.domain}`;
    expect(await statusOf(sandbox, path, { Host: host })).toBe(200);
    expect(await statusOf(sandbox, path, { Host: `localhost:${port}` })).toBe(200);
    for (const bad of [
      `evil.example:${port}`,
      "127.0.0.1",
      `127.0.0.1:${Number(port) + 1}`,
      `127.0.0.1.evil.example:${port}`,
    ]) {
      expect(await statusOf(sandbox, path, { Host: bad })).toBe(403);
      expect(await statusOf(sandbox, "/health", { Host: bad })).toBe(403);
    }
    expect(await statusOf(sandbox, path, { Host: host, Origin: sandbox.origin })).toBe(200);
    for (const Origin of ["https://evil.example", "null", `https://${host}`, `http://evil.example:${port}`]) {
      expect(await statusOf(sandbox, path, { Host: host, Origin })).toBe(403);
    }
    expect(await statusOf(sandbox, `http://evil.example${path}`, { Host: host })).toBe(404);
    expect(await statusOf(sandbox, `//evil.example${path}`, { Host: host })).toBe(404);
  });

  test("logs what it was asked without credentials and holds the last ten thousand only", async () => {
    await using sandbox = await startSandbox({ devices: 10, now: () => 42 });
    await devices(sandbox, { offset: 3 });
    await ask(sandbox, `${sandbox.baseUrl}/api/v1/x?access_token=canary-1234567&code=canary-7654321`);
    expect(sandbox.requests).toHaveLength(2);
    expect(sandbox.requests[0]).toEqual({
      method: "GET",
      path: "/api/v1/device",
      query: { pool_id: sandbox.ids.pool, "pagination[offset]": "3" },
      at: 42,
      status: 200,
    });
    expect(sandbox.requests[1]).toMatchObject({ path: "/api/v1/x", status: 404 });
    const text = JSON.stringify(sandbox.requests);
    expect(text).not.toContain("canary");
    expect(text).not.toContain(sandbox.apiToken);
    const line = `GET /health HTTP/1.1\r\nHost: ${new URL(sandbox.origin).host}\r\n`;
    await raw(sandbox, `${`${line}\r\n`.repeat(MAX_LOGGED + 5)}${line}Connection: close\r\n\r\n`);
    expect(sandbox.requests).toHaveLength(MAX_LOGGED);
    expect(sandbox.requests.total).toBe(MAX_LOGGED + 8);
  });

  test("closes although connections are open and answers are under way", async () => {
    const sandbox = await startSandbox({ faults: [{ kind: "slow-headers", ms: 3_600_000 }] });
    const silent = connect(Number(new URL(sandbox.origin).port), "127.0.0.1");
    await once(silent, "connect");
    const pending = ask(sandbox, devicesUrl(sandbox)).then(
      (response) => response.text(),
      () => "ended",
    );
    while (sandbox.requests.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    const silentClosed = once(silent, "close");
    silent.on("error", () => {}).resume();
    await sandbox.close();
    await sandbox.close();
    await sandbox.closed;
    await Promise.all([silentClosed, pending]);
    await expect(fetch(`${sandbox.origin}/health`)).rejects.toThrow();
  });

  test("closes when its signal fires", async () => {
    const controller = new AbortController();
    const sandbox = await startSandbox({ signal: controller.signal });
    controller.abort();
    await sandbox.closed;
    await expect(fetch(`${sandbox.origin}/health`)).rejects.toThrow();
    await expect(startSandbox({ signal: controller.signal })).rejects.toMatchObject({ code: "aborted" });
  });

  test("outlives clients that go away at any moment", async () => {
    await using sandbox = await startSandbox({
      devices: 2000,
      faults: [{ kind: "slow-headers", ms: 5, path: "device", times: 5 }],
    });
    for (const delay of [0, 1, 4, 6, 10]) {
      const signal = AbortSignal.timeout(delay);
      await ask(sandbox, devicesUrl(sandbox, { size: 1000 }), { signal })
        .then((response) => response.text())
        .catch(() => {});
    }
    expect(await raw(sandbox, "nonsense\r\n\r\n")).toMatch(/^HTTP\/1\.1 400 Bad Request\r\nx-request-id: /);
    expect(await raw(sandbox, `GET / HTTP/1.1\r\nX: ${"x".repeat(70_000)}\r\n\r\n`)).toMatch(/^HTTP\/1\.1 431 /);
    expect((await devices(sandbox)).summaries).toHaveLength(50);
  });
});

const controlOf =
  ({ origin, controlToken }: Sandbox) =>
  (method: string, path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(`${origin}/_sandbox${path}`, {
      method,
      headers: { authorization: `Bearer ${controlToken}`, "content-type": "application/json", ...headers },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
    });
const it = base.extend({ options: { devices: 20 } }).extend<{ control: ReturnType<typeof controlOf> }>({
  control: async ({ sandbox }, use) => use(controlOf(sandbox)),
});

describe("control endpoints", () => {
  it("add, list and clear faults", async ({ sandbox, control }) => {
    const added = await control("POST", "/faults", { kind: "status", status: 503 });
    expect(added.status).toBe(201);
    expect((await control("POST", "/faults", [{ kind: "html" }, { kind: "extra-fields" }])).status).toBe(201);
    expect((await control("POST", "/faults", JSON.stringify("429:times=2"))).status).toBe(201);
    expect((await ask(sandbox, devicesUrl(sandbox))).status).toBe(503);
    const listed = (await (await control("GET", "/faults")).json()) as { faults: { fault: unknown; fired: number }[] };
    expect(listed.faults.map(({ fault }) => fault)).toEqual(sandbox.faults.list().map(({ fault }) => fault));
    expect(listed.faults.map(({ fired }) => fired)).toEqual([1, 0, 0, 0]);
    expect((await control("DELETE", "/faults")).status).toBe(200);
    expect(sandbox.faults.list()).toEqual([]);
    expect((await ask(sandbox, devicesUrl(sandbox))).status).toBe(200);
  });

  it("list the requests", async ({ sandbox, control }) => {
    await ask(sandbox, devicesUrl(sandbox, { offset: 7 }));
    const body = await (await control("GET", "/requests")).json();
    expect(body).toMatchObject({
      total: 1,
      requests: [{ path: "/api/v1/device", query: { "pagination[offset]": "7" } }],
    });
    expect(sandbox.requests.total).toBe(1);
  });

  it("shut the sandbox down, after the answer", async ({ sandbox, control }) => {
    const response = await control("POST", "/shutdown");
    expect(response.status).toBe(202);
    expect(await response.json()).toEqual({ status: "success" });
    await sandbox.closed;
    await expect(fetch(`${sandbox.origin}/health`)).rejects.toThrow();
  });

  it.for(["/faults", "/requests", "/shutdown", "/nothing"])(
    "want the control token at %s",
    async (path, { sandbox, control }) => {
      const method = path === "/shutdown" ? "POST" : "GET";
      const none = await fetch(`${sandbox.origin}/_sandbox${path}`, { method });
      expect(await failureOf(none)).toEqual([401, "not_authenticated"]);
      const api = await control(method, path, undefined, { authorization: `Bearer ${sandbox.apiToken}` });
      expect(await failureOf(api)).toEqual([401, "bad_authtoken"]);
      expect((await fetch(`${sandbox.origin}/health`)).status).toBe(200);
    },
  );

  it("are not the API token's key to the management interface either", async ({ sandbox }) => {
    const headers = { authorization: `Bearer ${sandbox.controlToken}` };
    expect(await failureOf(await fetch(devicesUrl(sandbox), { headers }))).toEqual([401, "bad_authtoken"]);
  });

  it("refuse what a web page could send", async ({ sandbox, control }) => {
    const origin = await control("POST", "/faults", { kind: "html" }, { origin: "https://evil.example" });
    expect(origin.status).toBe(403);
    const form = await control("POST", "/faults", '{"kind":"html"}', { "content-type": "text/plain" });
    expect(form.status).toBe(415);
    expect(sandbox.faults.list()).toEqual([]);
  });

  it("refuse bodies that are too large, no JSON or no fault", async ({ sandbox, control }) => {
    expect((await control("POST", "/faults", `"${"x".repeat(64 * 1024)}"`)).status).toBe(413);
    expect((await control("POST", "/faults", "{")).status).toBe(400);
    const wrong = await control("POST", "/faults", { kind: "page-size", size: 0 });
    expect(wrong.status).toBe(400);
    expect(await wrong.json()).toMatchObject({ code: "invalid_value", message: expect.stringMatching(/"size".*"0"/) });
    expect(sandbox.faults.list()).toEqual([]);
  });

  it("say which methods and paths there are", async ({ control }) => {
    const response = await control("PUT", "/faults");
    expect(response.headers.get("allow")).toBe("GET, POST, DELETE");
    expect(await failureOf(response)).toEqual([405, "invalid_action"]);
    expect(await failureOf(await control("GET", "/nothing"))).toEqual([404, "not_found"]);
    expect(await failureOf(await control("GET", ""))).toEqual([404, "not_found"]);
  });
});
