import { format, inspect } from "node:util";
import { describe, expect, it } from "vitest";
import { callHeaders, querySerializer, readCallLimits, readStrictChecks, requireId } from "../../src/api/types.js";
import { type AgentAuthError, type Logger, ManagementClient, type ManagementClientOptions } from "../../src/index.js";
import { FakeClock } from "../helpers/clock.js";
import { type Answer, sendJson, startServer } from "../helpers/server.js";
import { rejection } from "../helpers/service.js";

const pool_id = "pool_1";

async function setUp(handler: Answer, options: Partial<ManagementClientOptions> = {}) {
  const server = await startServer(handler);
  const token = "sample-token";
  return {
    server,
    service: new ManagementClient({ baseUrl: server.origin, token, clock: new FakeClock(), ...options }),
  };
}

const page = (items: object[]) => ({
  summaries: items,
  pagination: { item_count: items.length, offset_item: 0, offset_next: null, page_size: 50 },
});

const failing: Answer = (response) => sendJson(response, {}, 503);
const ok: Answer = (response) => sendJson(response, page([{ id: "d1" }]), 200, { "x-request-id": "r-1" });

describe("the options of one call", () => {
  it("set the number of retries in place of the client's", async () => {
    const { server, service } = await setUp(failing, { maxRetries: 3 });
    await rejection(service.devices.list({ pool_id }, { maxRetries: 0 }).first());
    expect(server.requests).toHaveLength(1);
    await rejection(service.get("/api/v1/other", [], { maxRetries: 1 }));
    expect(server.requests).toHaveLength(3);
    await rejection(service.devices.get({ pool_id, id: "d1" }));
    expect(server.requests).toHaveLength(7);
  });

  it("set the time of one attempt", async () => {
    const { service } = await setUp(() => undefined);
    const error = await rejection(service.devices.list({ pool_id }, { timeoutMs: 30, maxRetries: 0 }).first());
    expect(error).toMatchObject({ code: "timeout" });
    expect((error as AgentAuthError).message).toContain("no complete response in 0.03 s");
  });

  it("add headers to every page, but replace neither the token nor the client's own", async () => {
    const { server, service } = await setUp(ok);
    const headers = { "X-Trace": "t-1", authorization: "Bearer other", "User-Agent": "other", accept: "text/html" };
    await service.devices.list({ pool_id }, { headers }).toArray();
    await service.get("/api/v1/device", [["pool_id", pool_id]], { headers: new Headers(headers) });
    for (const request of server.requests) {
      expect(request.headers).toMatchObject({
        "x-trace": "t-1",
        authorization: "Bearer sample-token",
        accept: "application/json",
      });
      expect(request.headers["user-agent"]).toMatch(/^agentauth\//);
    }
    expect(server.requests).toHaveLength(2);
  });

  it.for([
    [{ maxRetries: -1 }, "maxRetries must be a whole number of at least 0, not -1"],
    [{ maxRetries: 0.5 }, "maxRetries must be a whole number of at least 0, not 0.5"],
    [{ timeoutMs: 0 }, "timeoutMs must be a positive number, not 0"],
    [{ headers: { "x-a": "b\r\nc: d" } }, "invalid"],
  ] as const)("are refused before any request: %j", async ([options, message]) => {
    const { server, service } = await setUp(ok);
    expect(() => service.devices.list({ pool_id }, options)).toThrow(message);
    await expect(service.get("/api/v1/device", [], options)).rejects.toThrow(message);
    expect(server.requests).toEqual([]);
  });
});

describe("a listing", () => {
  it("can be returned by an async function, and only its caller reads it", async () => {
    const { server, service } = await setUp(ok);
    const find = async () => service.devices.list({ pool_id });
    const listing = await find();
    expect(server.requests).toEqual([]);
    expect(await listing.toArray()).toHaveLength(1);
  });

  it("has a first page, with the response on request", async () => {
    const { server, service } = await setUp(ok);
    const listing = service.devices.list({ pool_id }, { concurrency: 4 });
    expect((await listing.firstPage()).items).toEqual([{ id: "d1" }]);
    const { data, response, requestId } = await listing.withResponse();
    expect([data.pagination.item_count, response.status, requestId]).toEqual([1, 200, "r-1"]);
    expect(response.headers.get("x-request-id")).toBe("r-1");
    expect(server.requests).toHaveLength(2);
    const empty = await setUp((reply) => sendJson(reply, page([])));
    expect((await empty.service.devices.list({ pool_id }).firstPage()).items).toEqual([]);
  });

  it("says what it is when it is printed", async () => {
    const { service } = await setUp(ok);
    const text = inspect(service.devices.list({ pool_id: "pool_\u001b[31m" }));
    expect(text).toMatch(/^Listing of devices of pool_id "pool_.*" \{ read it with for await, /);
    expect(text).not.toContain("\u001b");
    expect(format(service.pools.list({ domain_id: "d" }))).toContain('Listing of pools of domain_id "d"');
  });

  it("fails with an error that is not its own cause", async () => {
    const { service } = await setUp(failing, { maxRetries: 0 });
    const error = (await rejection(service.devices.list({ pool_id }).toArray())) as AgentAuthError;
    expect(error).toMatchObject({ code: "server_error", resume: 0 });
    expect(error.cause).toBeUndefined();
    const single = (await rejection(service.devices.get({ pool_id, id: "d1" }))) as AgentAuthError;
    expect([single.code, single.resume, single.cause]).toEqual(["server_error", undefined, undefined]);
  });
});

it("the option logger receives a line for each event, with neither a token nor a query", async () => {
  const lines: string[] = [];
  const line = (level: string) => (message: string) => void lines.push(`${level} ${message}`);
  const logger: Logger = { debug: line("debug"), info: line("info"), warn: line("warn"), error: line("error") };
  const { server, service } = await setUp(
    (response, request, nth) => (nth === 1 ? failing : ok)(response, request, nth),
    { logger, random: () => 0 },
  );
  await service.devices.list({ pool_id }).toArray();
  const url = `${server.origin}/api/v1/device`;
  expect(lines.map((one) => one.replace(/in \d+ ms/, "in N ms"))).toEqual([
    `debug GET ${url}`,
    `debug GET ${url}: HTTP 503 in N ms`,
    `warn ${url}: attempt 2 in N ms (HTTP 503)`,
    `debug GET ${url}`,
    `debug GET ${url}: HTTP 200 in N ms, request id "r-1"`,
  ]);
});

describe("the parts of a call", () => {
  const SORTED = { pool_id: "a b", sorting: { field: "title", direction: "asc" }, "pagination[offset]": 0, none: null };
  const FIELD = { sorting: { field: "title", direction: null } };
  const DIRECTION = { sorting: { direction: "desc" }, filter: { a: 1, b: null }, none: undefined };

  it.each([
    ["deep", SORTED, "pool_id=a b&sorting[field]=title&sorting[direction]=asc&pagination[offset]=0"],
    ["deep", FIELD, "sorting[field]=title"],
    ["deep", DIRECTION, "sorting[direction]=desc&filter[a]=1"],
    ["json", SORTED, 'pool_id=a b&sorting={"field":"title","direction":"asc"}&pagination[offset]=0'],
    ["field:direction", SORTED, "pool_id=a b&sorting=title:asc&pagination[offset]=0"],
    ["field:direction", FIELD, "sorting=title"],
    ["field:direction", DIRECTION, "sorting=:desc&filter[a]=1"],
  ] as const)("write a query with the sorting %s: %j", (encoding, query, expected) => {
    const text = querySerializer(encoding)(query);
    expect(decodeURIComponent(text)).toBe(expected);
    expect(text).not.toMatch(/[[\]{}" ]/);
  });

  it("are checked", () => {
    expect(() => querySerializer("flat" as never)).toThrow(
      new TypeError('sorting "flat" is none of deep, json, field:direction'),
    );
    expect(() => readStrictChecks(["shap" as never])).toThrow(
      new TypeError('strict: "shap" is none of shape, order, drift, nulls, fields'),
    );
    for (const id of ["", 5, undefined]) {
      expect(() => requireId("pool_id", id)).toThrow(
        expect.objectContaining({
          code: "usage",
          message: expect.stringMatching(/^pool_id must be a non-empty string, not /),
        }),
      );
    }
    expect(() => requireId("pool_id", "a")).not.toThrow();
  });

  it("are those of the call alone", () => {
    expect(callHeaders({ headers: { Accept: "x", AUTHORIZATION: "y", "User-Agent": "z", "X-A": "1" } })).toEqual({
      "x-a": "1",
    });
    expect(readCallLimits({ timeoutMs: 1, maxRetries: 2, headers: {} })).toEqual({ timeoutMs: 1, maxRetries: 2 });
    expect([...readStrictChecks()]).toEqual([]);
    expect([...readStrictChecks(true)]).toEqual(["shape", "order", "drift"]);
    expect([...readStrictChecks("all")]).toEqual(["shape", "order", "drift", "nulls", "fields"]);
    expect([...readStrictChecks(["nulls"])]).toEqual(["nulls"]);
  });
});
