import { describe, expect } from "vitest";
import type { Sandbox } from "../../src/sandbox/index.js";
import { ask, it as base, devicesUrl, failureOf } from "./support.js";

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
