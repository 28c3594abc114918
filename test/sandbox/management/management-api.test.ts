import { describe, expect } from "vitest";
import type {
  ListEnvelope,
  SandboxDevice,
  SandboxDomain,
  SandboxPagination,
  SandboxPool,
} from "../../../src/sandbox/data/sample-device.js";
import { startSandbox } from "../../../src/sandbox/index.js";
import { fc } from "../../helpers/properties.js";
import { sandboxTest } from "../sandbox-test.js";
import { ask, devices, devicesUrl, failureOf, listUrl, raw, readAll } from "../support.js";

const it = sandboxTest({ devices: 123, pools: 7, maxPageSize: 100 });

/** The documented numbers, worked out from the items themselves. */
function model(items: readonly unknown[], offset: number, size: number): SandboxPagination {
  const page = items.slice(offset, offset + size);
  return {
    item_count: items.length,
    item_start: page.length === 0 ? 0 : offset + 1,
    item_end: page.length === 0 ? 0 : offset + page.length,
    page_count: Math.floor((items.length + size - 1) / size),
    page_index: (offset - (offset % size)) / size + 1,
    page_offset: offset,
    page_size: size,
    next_page_offset: items.length > offset + size ? offset + size : null,
    previous_page_offset: offset === 0 ? null : offset < size ? 0 : offset - size,
  };
}

describe("management lists", () => {
  it("answers a page of devices in the documented envelope", async ({ sandbox }) => {
    const response = await ask(sandbox, devicesUrl(sandbox));
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(response.headers.get("x-request-id")).toMatch(/^req_\w+$/);
    const body = (await response.json()) as ListEnvelope<SandboxDevice>;
    expect(Object.keys(body).sort()).toEqual(["pagination", "sorting", "status", "summaries"]);
    expect(body.status).toBe("success");
    expect(body.sorting).toEqual({ direction: "asc", field: "id" });
    expect(body.summaries).toHaveLength(50);
    expect(body.summaries[3]).toEqual(sandbox.data.device(sandbox.ids.pool, 3));
  });

  it("has right numbers and items at every offset and page size", async ({ sandbox }) => {
    const all = Array.from({ length: 123 }, (_, index) => sandbox.data.device(sandbox.ids.pool, index));
    const input = [fc.integer({ min: 0, max: 300 }), fc.integer({ min: 1, max: 100 })] as const;
    await fc.assert(
      fc.asyncProperty(...input, async (offset, size) => {
        const page = await devices(sandbox, { offset, size });
        expect(page.pagination).toEqual(model(all, offset, size));
        expect(page.summaries).toEqual(all.slice(offset, offset + size));
      }),
      {
        examples: [
          [0, 50],
          [100, 50],
          [123, 1],
          [122, 1],
          [7, 10],
          [73, 50],
        ],
      },
    );
  });

  it("has right numbers for an empty list", async () => {
    await using empty = await startSandbox({ devices: 0 });
    expect((await devices(empty)).pagination).toEqual(model([], 0, 50));
    expect((await devices(empty, { offset: 9, size: 2 })).pagination).toEqual(model([], 9, 2));
  });

  it("cuts a page size to the largest and says so", async ({ sandbox }) => {
    const page = await devices(sandbox, { size: 100_000 });
    expect(page.pagination.page_size).toBe(100);
    expect(page.summaries).toHaveLength(100);
  });

  it("ignores query parameters that it does not know", async ({ sandbox }) => {
    const response = await ask(sandbox, `${devicesUrl(sandbox)}&color=blue&sorting=title`);
    expect(response.status).toBe(200);
    expect(await response.json()).toMatchObject({ sorting: { field: "id" } });
  });

  it.for(["id", "last_seen", "status", "title"])(
    "sorts devices by %s in both directions",
    async (field, { sandbox }) => {
      const byId: SandboxDevice[] = [];
      for (const offset of [0, 100]) byId.push(...(await devices(sandbox, { offset, size: 100 })).summaries);
      const key = (device: SandboxDevice) => (field === "last_seen" ? device.last_seen.at : device[field as "id"]);
      const sorted = byId
        .sort((a, b) => (a.id < b.id ? -1 : 1))
        .sort((a, b) => (key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0));
      const ascending = await readAll(sandbox, { field, direction: "asc", size: 17 });
      expect(ascending.ids).toEqual(sorted.map(({ id }) => id));
      const descending = await readAll(sandbox, { field, direction: "desc", size: 100 });
      expect(descending.ids).toEqual(sorted.map(({ id }) => id).reverse());
      expect((await devices(sandbox, { field, direction: "desc" })).sorting).toEqual({ field, direction: "desc" });
    },
  );

  it.for(["pool", "domain"] as const)("lists and sorts what is of kind %s", async (kind, { sandbox }) => {
    const scope = kind === "pool" ? { domain_id: sandbox.ids.domain } : { account_id: sandbox.ids.account };
    const expected =
      kind === "pool" ? sandbox.data.pools(sandbox.ids.domain) : sandbox.data.domains(sandbox.ids.account);
    for (const field of ["id", "status", "title"] as const) {
      for (const direction of ["asc", "desc"] as const) {
        const url = listUrl(sandbox, kind, scope, { field, direction });
        const body = (await (await ask(sandbox, url)).json()) as ListEnvelope<SandboxPool | SandboxDomain>;
        const sorted = [...expected].sort((a, b) => (a.id < b.id ? -1 : 1));
        sorted.sort((a, b) => (a[field] < b[field] ? -1 : a[field] > b[field] ? 1 : 0));
        if (direction === "desc") sorted.reverse();
        expect(body.summaries).toEqual(sorted);
        expect(body.pagination).toEqual(model(sorted, 0, 50));
        expect(body.sorting).toEqual({ field, direction });
      }
    }
  });

  it("lists a hundred thousand devices in every order", async () => {
    await using large = await startSandbox({ devices: 100_000, domains: 1, pools: 1 });
    const seen = new Set<string>();
    let previous = "";
    for (const offset of [0, 25_000, 99_000]) {
      const { summaries, pagination } = await devices(large, { offset, size: 1000 });
      expect(pagination).toMatchObject({ item_count: 100_000, item_end: offset + 1000, page_count: 100 });
      for (const { id } of summaries) {
        expect(id > previous).toBe(true);
        previous = id;
        seen.add(id);
      }
    }
    expect(seen.size).toBe(3000);
    const titles = (await devices(large, { offset: 60_000, size: 1000, field: "title" })).summaries;
    expect(titles.map(({ title }) => title)).toEqual(titles.map(({ title }) => title).sort());
    const late = (await devices(large, { offset: 99_000, size: 1000, field: "last_seen", direction: "desc" }))
      .summaries;
    expect(late.map((device) => device.last_seen.at)).toEqual(
      late.map((device) => device.last_seen.at).sort((a, b) => b - a),
    );
    const statuses = (await devices(large, { offset: 89_500, size: 1000, field: "status" })).summaries;
    expect(statuses.map(({ status }) => status)).toEqual(statuses.map(({ status }) => status).sort());
  });
});

describe("management errors", () => {
  it.for<[string, Record<string, string>, number, string]>([
    ["device", {}, 400, "required_value"],
    ["device", { pool_id: "" }, 400, "required_value"],
    ["pool", {}, 400, "required_value"],
    ["domain", {}, 400, "required_value"],
    ["device", { pool_id: "pool_0000000000" }, 404, "not_found"],
    ["device", { pool_id: "pool_a/../b" }, 404, "not_found"],
    ["pool", { domain_id: "dom_0000000000" }, 404, "not_found"],
    ["domain", { account_id: "acc_0000000000" }, 404, "not_found"],
    ["device", { pool_id: "dom_0000000000" }, 400, "unexpected_ref_type"],
    ["pool", { domain_id: "nonsense" }, 400, "unexpected_ref_type"],
    ["nothing", {}, 404, "not_found"],
    ["device/", {}, 404, "not_found"],
    ["constructor", {}, 404, "not_found"],
  ])("%s with %o is %i %s", async ([path, scope, status, code], { sandbox }) => {
    const url = listUrl(sandbox, path, scope);
    expect(await failureOf(await ask(sandbox, url))).toEqual([status, code]);
  });

  it.for([
    { offset: "-1" },
    { offset: "1.5" },
    { offset: "" },
    { offset: "1e3" },
    { size: "0" },
    { size: "ten" },
    { size: "99999999999999999999" },
    { field: "first_seen" },
    { field: "constructor" },
    { direction: "up" },
  ])("%o is an invalid value", async (params, { sandbox }) => {
    expect(await failureOf(await ask(sandbox, devicesUrl(sandbox, params)))).toEqual([400, "invalid_value"]);
  });

  it("refuses a parameter that is given twice", async ({ sandbox }) => {
    const response = await ask(sandbox, `${devicesUrl(sandbox, { offset: 1 })}&pagination[offset]=2`);
    expect(await failureOf(response)).toEqual([400, "invalid_value"]);
  });

  it.for([
    [undefined, "not_authenticated"],
    ["Basic Zm9vOmJhcg==", "not_authenticated"],
    ["Bearer", "not_authenticated"],
    ["Bearer wrong", "bad_authtoken"],
  ])("Authorization %s is 401 %s", async ([authorization, code], { sandbox }) => {
    const response = await fetch(devicesUrl(sandbox), {
      headers: authorization === undefined ? {} : { authorization },
    });
    expect(response.headers.get("www-authenticate")).toMatch(/^Bearer /);
    expect(await failureOf(response)).toEqual([401, code]);
  });

  it.for(["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])("refuses %s", async (method, { sandbox }) => {
    const response = await ask(sandbox, devicesUrl(sandbox), { method });
    expect(response.headers.get("allow")).toBe("GET, HEAD");
    expect(await failureOf(response)).toEqual([405, "invalid_action"]);
  });

  it("gives every answer an id of its own", async ({ sandbox }) => {
    const urls = [
      devicesUrl(sandbox),
      `${sandbox.baseUrl}/api/v1/x`,
      `${sandbox.baseUrl}/y`,
      `${sandbox.baseUrl}/health`,
    ];
    const ids = await Promise.all(urls.map(async (url) => (await ask(sandbox, url)).headers.get("x-request-id")));
    expect(new Set(ids).size).toBe(urls.length);
    for (const id of ids) expect(id).toMatch(/^req_/);
  });

  it("answers HEAD with the headers of GET and no body", async ({ sandbox }) => {
    const [head, get] = [
      await ask(sandbox, devicesUrl(sandbox), { method: "HEAD" }),
      await ask(sandbox, devicesUrl(sandbox)),
    ];
    expect(head.status).toBe(200);
    expect(head.headers.get("content-length")).toBe(get.headers.get("content-length"));
    expect(await head.text()).toBe("");
    expect(Buffer.byteLength(await get.text())).toBe(Number(get.headers.get("content-length")));
  });

  it("answers pipelined requests in their order", async ({ sandbox }) => {
    const request = (path: string, last = false) =>
      `GET ${path} HTTP/1.1\r\nHost: ${new URL(sandbox.origin).host}\r\n${last ? "Connection: close\r\n" : ""}\r\n`;
    const text = await raw(sandbox, request("/health") + request("/api/v1/device") + request("/health", true));
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 401", "HTTP/1.1 200"]);
  });
});
