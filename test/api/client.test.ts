import nock from "nock";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { MANAGEMENT_OPTIONS } from "../../src/api/client.js";
import { HttpRequest, HttpResponse, ownFetch } from "../../src/http/http-message.js";
import { checkOptionNames } from "../../src/http/public-class.js";
import { ManagementClient } from "../../src/index.js";
import { useNock } from "../helpers/nock.js";

const BASE = "https://agentauth.example";
const POOL = { id: "pool_1", title: "Staging", type: "pool" };
const LAST_PAGE = { item_count: 1, page_offset: 0, page_size: 50, next_page_offset: null };

const service = () => new ManagementClient({ baseUrl: BASE, token: "api-token", random: () => 0 });
const poolList = () => nock(BASE).get("/api/v1/pool").query({ domain_id: "dom_1" });
const success = (summaries: unknown[]) => ({ status: "success", summaries, pagination: LAST_PAGE });

useNock();

describe("the management client, on the global fetch", () => {
  it("sends the token and returns the typed answer of a raw request", async () => {
    poolList()
      .matchHeader("authorization", "Bearer api-token")
      .reply(200, success([POOL]));
    const { data, error, response } = await service().client.GET("/api/v1/pool", {
      params: { query: { domain_id: "dom_1" } },
    });
    expect(data?.summaries).toEqual([POOL]);
    expect(error).toBeUndefined();
    expect(response.status).toBe(200);
  });

  it.each(["/api/v1", "/api/v1/"])("takes a base URL that ends in %s", async (path) => {
    poolList().reply(200, success([POOL]));
    const client = new ManagementClient({ baseUrl: `${BASE}${path}`, token: "api-token" });
    expect(await client.pools.list({ domain_id: "dom_1" }).toArray()).toEqual([POOL]);
  });

  it("returns the documented error of a raw request, and throws it from a list", async () => {
    const failure = { status: "error", code: "not_found", message: "no such domain" };
    poolList().twice().reply(404, failure);
    const { data, error } = await service().client.GET("/api/v1/pool", { params: { query: { domain_id: "dom_1" } } });
    expect([data, error]).toEqual([undefined, failure]);
    await expect(service().pools.list({ domain_id: "dom_1" }).toArray()).rejects.toMatchObject({
      code: "not_found",
      status: 404,
    });
  });

  it.each([
    ["replaces a response", { onResponse: () => Response.json(success([])) }],
    ["answers in place of the service", { onRequest: () => Response.json(success([])) }],
  ])("refuses a list for which a middleware %s", async (_, middleware) => {
    const { client, pools } = service();
    if ("onResponse" in middleware) poolList().reply(200, success([POOL]));
    client.use(middleware);
    await expect(pools.list({ domain_id: "dom_1" }).toArray()).rejects.toThrow(/a middleware replaced a response/);
  });

  it("passes a list through a middleware that looks on", async () => {
    const { client, pools } = service();
    const seen: string[] = [];
    client.use({ onRequest: ({ schemaPath }) => void seen.push(schemaPath) });
    poolList().reply(200, success([POOL]));
    expect(await pools.list({ domain_id: "dom_1" }).toArray()).toEqual([POOL]);
    expect(seen).toEqual(["/api/v1/pool"]);
  });
});

describe("a request of a list", () => {
  /** Whether a `fetch` gets the global classes or ours for one page, and how many requests were converted. */
  async function seenBy(mark: (fetch: typeof globalThis.fetch) => typeof globalThis.fetch) {
    const seen: unknown[] = [];
    const send = mark(async (input, init) => {
      seen.push(input instanceof Request, init?.headers instanceof Headers, input instanceof HttpRequest);
      return Response.json(success([POOL]));
    });
    const made = vi.spyOn(HttpRequest.prototype, "asRequest");
    onTestFinished(() => made.mockRestore());
    // The files of a worker share the class: the requests of this client have a host of their own.
    const baseUrl = "https://converted.example";
    const client = new ManagementClient({ baseUrl, token: "api-token", fetch: send });
    expect(await client.pools.list({ domain_id: "dom_1" }).toArray()).toEqual([POOL]);
    return [...seen, made.mock.contexts.filter((one) => (one as HttpRequest).url.startsWith(baseUrl)).length];
  }

  it("is of the global classes from the start where the fetch of the user gets it", async () => {
    expect(await seenBy((send) => send)).toEqual([true, true, false, 0]);
  });

  it("is of ours where the fetch takes them", async () => {
    expect(await seenBy((send) => ownFetch(send))).toEqual([false, false, true, 0]);
  });

  it("is an address and options for the global fetch, which makes its own request of it", async () => {
    const seen: unknown[] = [];
    const spy = vi.spyOn(globalThis, "fetch").mockImplementation(async (input, init) => {
      const headers = new Headers(init?.headers);
      seen.push(input, init?.method, headers.get("authorization"), headers.get("accept"));
      return Response.json(success([POOL]));
    });
    onTestFinished(() => spy.mockRestore());
    const client = new ManagementClient({ baseUrl: BASE, token: "api-token" });
    expect(await client.pools.list({ domain_id: "dom_1" }).toArray()).toEqual([POOL]);
    expect(seen).toEqual([`${BASE}/api/v1/pool?domain_id=dom_1`, "GET", "Bearer api-token", "application/json"]);
  });
});

it.each([
  [`${BASE}/api/v1`, "/api/v1/device?a=1&b=2"],
  [`${BASE}/api/v1/behind`, "/api/v1/behind/api/v1/device?a=1&b=2"],
])("a raw request by path at %s is sent to %s", async (baseUrl, address) => {
  const urls: string[] = [];
  const fetch = async (input: string | URL | Request) => {
    urls.push(input instanceof Request ? input.url : String(input));
    return Response.json(success([]));
  };
  const query = new URLSearchParams({ a: "1", b: "2" });
  await new ManagementClient({ baseUrl, fetch }).get("/api/v1/device", query);
  expect(urls).toEqual([`${BASE}${address}`]);
});

it("a management client takes each of its options", () => {
  expect(() => checkOptionNames(MANAGEMENT_OPTIONS, MANAGEMENT_OPTIONS, "ManagementClient")).not.toThrow();
});

describe("the response of a raw request by path", () => {
  const item = { ...POOL, dynamic_client_details: { client_secret: "hush" } };
  const body = JSON.stringify(success([item]));
  const init = { status: 201, headers: { "content-type": "application/json", "x-a": "1" } };

  it.each([
    ["the runtime", async () => new Response(body, init)],
    ["ours", ownFetch(async () => new HttpResponse(body, { ...init, url: `${BASE}/api/v1/pool` }))],
  ])("is copied as a Response of the runtime, with the classes of %s", async (_, fetch) => {
    const response = await new ManagementClient({ baseUrl: BASE, fetch }).get("/api/v1/pool");
    for (const one of [response.clone(), response.clone().clone()]) {
      expect([response.bodyUsed, response.body]).toEqual([false, null]);
      expect(one).toBeInstanceOf(Response);
      expect([one.status, one.url, one.headers.get("x-a")]).toEqual([201, response.url, "1"]);
      expect(await one.text()).toBe(body);
      expect(new TextDecoder().decode(await one.arrayBuffer())).toBe(body);
      expect(JSON.stringify(await one.json())).not.toContain("hush");
    }
    const { bytes } = response as Response & { bytes: () => Promise<Uint8Array> };
    expect([await response.text(), new TextDecoder().decode(await bytes())]).toEqual([body, body]);
  });
});
