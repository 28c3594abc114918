import { describe, expect } from "vitest";
import type { ListEnvelope, SandboxDevice, SandboxPool } from "../../../src/sandbox/data/sample-device.js";
import { FAULT_KINDS, type Sandbox } from "../../../src/sandbox/index.js";
import { ask, it as base, devices, devicesUrl, failureOf, listUrl, raw, readAll, withFault } from "../support.js";

const wholeIds = ({ data, ids }: Sandbox) => Array.from({ length: 100 }, (_, i) => data.device(ids.pool, i)?.id);
const it = base.extend({ options: { devices: 100, pageSize: 10 } });

describe("faults that replace the answer", () => {
  it("status: with Retry-After and each body", async ({ sandbox }) => {
    const limited = await withFault(sandbox, { kind: "status", status: 429, retryAfter: "2" });
    expect(limited.headers.get("retry-after")).toBe("2");
    expect(limited.headers.get("x-request-id")).toMatch(/^req_/);
    expect(await failureOf(limited)).toEqual([429, "unknown"]);
    expect(await failureOf(await withFault(sandbox, { kind: "status", status: 503 }))).toEqual([503, "unexpected"]);
    const page = await withFault(sandbox, { kind: "status", status: 502, body: "html" });
    expect([page.status, page.headers.get("content-type")]).toEqual([502, "text/html; charset=utf-8"]);
    const empty = await withFault(sandbox, { kind: "status", status: 500, body: "empty" });
    expect([empty.status, await empty.text()]).toEqual([500, ""]);
    const nothing = await withFault(sandbox, { kind: "status", status: 204 });
    expect([nothing.status, await nothing.text()]).toEqual([204, ""]);
    expect((await ask(sandbox, devicesUrl(sandbox))).status).toBe(200);
    expect(sandbox.requests.map(({ status, fault }) => [status, fault])).toEqual([
      [429, "status"],
      [503, "status"],
      [502, "status"],
      [500, "status"],
      [204, "status"],
      [200, undefined],
    ]);
  });

  it("reset-before: no byte arrives", async ({ sandbox }) => {
    await expect(withFault(sandbox, { kind: "reset-before" })).rejects.toMatchObject({ cause: { code: "ECONNRESET" } });
    sandbox.faults.add({ kind: "reset-before" });
    const request = `GET /api/v1/device HTTP/1.1\r\nHost: ${new URL(sandbox.origin).host}\r\n\r\n`;
    expect(await raw(sandbox, request)).toBe("");
    expect(sandbox.requests.at(-1)).toMatchObject({ status: 0, fault: "reset-before" });
  });

  it("html: a login page with status 200", async ({ sandbox }) => {
    const response = await withFault(sandbox, { kind: "html" });
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
    expect(await response.text()).toContain("<form");
  });

  it("redirect: to its location", async ({ sandbox }) => {
    const found = await withFault(sandbox, { kind: "redirect", location: "https://evil.example/x" });
    expect([found.status, found.headers.get("location")]).toEqual([302, "https://evil.example/x"]);
    expect((await withFault(sandbox, { kind: "redirect", location: "/", status: 307 })).status).toBe(307);
  });

  it.for([null, [], "text", { status: "success" }])("wrong-envelope: %j", async (body, { sandbox }) => {
    const response = await withFault(sandbox, { kind: "wrong-envelope", body });
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(await response.json()).toEqual(body);
  });
});

describe("faults of delivery", () => {
  it("reset-mid-body: the head and a part arrive, then the connection is gone", async ({ sandbox }) => {
    const response = await withFault(sandbox, { kind: "reset-mid-body" });
    expect(response.status).toBe(200);
    await expect(response.text()).rejects.toThrow();
  });

  it("truncated-json: the HTTP is whole, the JSON is not", async ({ sandbox }) => {
    const response = await withFault(sandbox, { kind: "truncated-json" });
    const text = await response.text();
    expect(Buffer.byteLength(text)).toBe(Number(response.headers.get("content-length")));
    expect(text).toMatch(/^\{"status":"success"/);
    expect(() => JSON.parse(text)).toThrow(SyntaxError);
  });

  it("slow-headers: nothing before the time is over, then all", async ({ sandbox }) => {
    const silent = withFault(sandbox, { kind: "slow-headers", ms: 3_600_000 });
    const first = await Promise.race([silent.catch(() => {}), devices(sandbox)]);
    expect(first).toMatchObject({ status: "success" });
    const later = await withFault(sandbox, { kind: "slow-headers", ms: 20 });
    expect((await later.json()) as object).toMatchObject({ status: "success" });
    await sandbox.close();
    await silent.catch(() => {});
  });

  it("slow-body: the head at once, the body bit by bit and whole", async ({ sandbox }) => {
    const dripping = await withFault(sandbox, { kind: "slow-body", bytes: 1, ms: 3_600_000 });
    expect(dripping.status).toBe(200);
    await dripping.body?.cancel();
    const response = await withFault(sandbox, { kind: "slow-body", bytes: 2000, ms: 5 });
    const chunks: number[] = [];
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) chunks.push(chunk.length);
    expect(chunks.length).toBeGreaterThan(1);
    expect(chunks.reduce((sum, length) => sum + length, 0)).toBe(Number(response.headers.get("content-length")));
  });
});

describe("faults of the page numbers", () => {
  it("stuck-offset: the next page is this page", async ({ sandbox }) => {
    const page = await withFault(sandbox, { kind: "stuck-offset", offset: 30 }, { offset: 30 });
    expect(await page.json()).toMatchObject({ pagination: { page_offset: 30, next_page_offset: 30 } });
  });

  it("cycling-offset: A, B, A, B", async ({ sandbox }) => {
    sandbox.faults.add({ kind: "cycling-offset", times: 2 });
    const { offsets } = await readAll(sandbox);
    expect(offsets.slice(0, 7)).toEqual([0, 10, 0, 10, 0, 10, 20]);
  });

  it.for(["10", 10.5, -1, null, true, {}])("bad-offset: %j", async (value, { sandbox }) => {
    const response = await withFault(sandbox, { kind: "bad-offset", value });
    expect(await response.json()).toMatchObject({ pagination: { next_page_offset: value } });
  });

  it("omit-pagination: the list has no pagination, whatever else is changed in it", async ({ sandbox }) => {
    sandbox.faults.add([{ kind: "omit-pagination" }, { kind: "extra-fields" }]);
    const response = await ask(sandbox, devicesUrl(sandbox));
    expect(Object.keys((await response.json()) as object).sort()).toEqual([
      "sorting",
      "status",
      "summaries",
      "x_undocumented",
    ]);
  });

  it("page-size: another than was asked for, and numbers that fit it", async ({ sandbox }) => {
    const response = await withFault(sandbox, { kind: "page-size", size: 7 }, { size: 10 });
    const body = (await response.json()) as ListEnvelope<SandboxDevice>;
    expect(body.summaries).toHaveLength(7);
    expect(body.pagination).toMatchObject({ page_size: 7, next_page_offset: 7, item_end: 7 });
    sandbox.faults.add({ kind: "page-size", size: 3, every: 2 });
    expect((await readAll(sandbox)).ids).toEqual(wholeIds(sandbox));
  });

  it.for([
    [{ kind: "empty-page" }, [10]],
    [{ kind: "empty-page", pages: 3 }, [10, 20, 30]],
    [{ kind: "empty-page", offset: 50 }, [50]],
    [{ kind: "empty-page", after: 3 }, [30]],
    [{ kind: "empty-page", times: 2 }, [10, 20]],
  ] as const)("empty-page: %j is empty in the middle and loses nothing", async ([fault, expected], { sandbox }) => {
    sandbox.faults.add(fault);
    const { ids, offsets } = await readAll(sandbox);
    expect(ids).toEqual(wholeIds(sandbox));
    expect(offsets).toHaveLength(10 + expected.length);
    for (const offset of offsets) {
      const page = await devices(sandbox, { offset });
      expect(page.summaries.length === 0).toBe((expected as readonly number[]).includes(offset));
      expect(page.pagination.item_count).toBe(100);
    }
    sandbox.faults.clear();
    expect((await readAll(sandbox)).offsets).toHaveLength(10);
  });
});

it("empty-page: for ever is a list that only continues", async ({ sandbox }) => {
  sandbox.faults.add({ kind: "empty-page", times: 0 });
  for (const offset of [0, 10, 20, 30, 200]) {
    const { summaries, pagination } = await devices(sandbox, { offset });
    expect(summaries).toHaveLength(offset === 0 ? 10 : 0);
    if (offset < 200) expect(pagination.next_page_offset).toBe(offset + 10);
  }
});

describe("faults of the list", () => {
  it("insert: an item comes again at the seam", async ({ sandbox }) => {
    const before = wholeIds(sandbox);
    sandbox.faults.add({ kind: "insert", count: 2 });
    const { ids } = await readAll(sandbox);
    expect(sandbox.data.deviceCount(sandbox.ids.pool)).toBe(102);
    expect(ids).toEqual([...before.slice(0, 10), ...before.slice(8)]);
  });

  it("delete: an item is missed at the seam", async ({ sandbox }) => {
    const before = wholeIds(sandbox);
    sandbox.faults.add({ kind: "delete", count: 2, after: 1 });
    const { ids } = await readAll(sandbox);
    expect(sandbox.data.deviceCount(sandbox.ids.pool)).toBe(98);
    expect(ids).toEqual([...before.slice(0, 20), ...before.slice(22)]);
  });

  it("insert: at a position of the order that was asked for", async ({ sandbox }) => {
    const before = await readAll(sandbox, { field: "title", direction: "desc" });
    sandbox.faults.add({ kind: "insert", position: 25, offset: 20 });
    const { ids } = await readAll(sandbox, { field: "title", direction: "desc" });
    expect(ids).toHaveLength(101);
    expect(ids.filter((id) => !before.ids.includes(id))).toEqual([ids[25]]);
    expect(ids.toSpliced(25, 1)).toEqual(before.ids);
  });
});

describe("faults of the items", () => {
  it("unknown-enum: undocumented values", async ({ sandbox }) => {
    const body = (await (await withFault(sandbox, { kind: "unknown-enum" })).json()) as ListEnvelope<SandboxDevice>;
    expect(body.summaries[0]).toMatchObject({ session_type: "quantum", status: "paused" });
    sandbox.faults.add({ kind: "unknown-enum", path: "pool" });
    const pools = await ask(sandbox, listUrl(sandbox, "pool", { domain_id: sandbox.ids.domain }));
    const [pool] = ((await pools.json()) as ListEnvelope<SandboxPool>).summaries;
    expect(pool?.status).toBe("paused");
    expect(pool).not.toHaveProperty("session_type");
  });

  it("extra-fields: everywhere", async ({ sandbox }) => {
    const body = (await (await withFault(sandbox, { kind: "extra-fields" })).json()) as ListEnvelope<SandboxDevice>;
    for (const part of [body, body.pagination, body.summaries[9]]) expect(part).toHaveProperty("x_undocumented.nested");
  });

  it("missing-fields: those that were named, or some", async ({ sandbox }) => {
    const [whole] = (await devices(sandbox)).summaries;
    const named = await withFault(sandbox, { kind: "missing-fields", fields: ["id"] });
    const [first] = ((await named.json()) as ListEnvelope<SandboxDevice>).summaries;
    const { id: _missing, ...others } = whole ?? {};
    expect(Object.keys(first ?? {})).toEqual(Object.keys(others));
    expect(first).not.toHaveProperty("id");
    const some = await withFault(sandbox, { kind: "missing-fields" });
    const [second] = ((await some.json()) as ListEnvelope<SandboxDevice>).summaries;
    expect(second).toHaveProperty("id");
    expect(second).not.toHaveProperty("last_seen");
  });

  it("hostile-text: what a terminal would obey", async ({ sandbox }) => {
    const response = await withFault(sandbox, { kind: "hostile-text" });
    const titles = ((await response.json()) as ListEnvelope<SandboxDevice>).summaries
      .map(({ title }) => title)
      .join("");
    for (const part of ["\u001b]52;", "\u202e", "\u0000", "\u009b", "\r\n"]) expect(titles).toContain(part);
    const own = await withFault(sandbox, { kind: "hostile-text", text: "\u0007" });
    expect(((await own.json()) as ListEnvelope<SandboxDevice>).summaries[5]?.title).toBe("\u0007");
  });
});

describe("faults together", () => {
  it("strike the same request where they can", async ({ sandbox }) => {
    sandbox.faults.add([
      { kind: "extra-fields" },
      { kind: "bad-offset", value: true },
      { kind: "slow-body", bytes: 5000, ms: 1 },
    ]);
    const body = await devices(sandbox);
    expect(body).toHaveProperty("x_undocumented");
    expect(body.pagination.next_page_offset).toBe(true);
    expect(sandbox.requests[0]?.fault).toBe("extra-fields,bad-offset,slow-body");
  });

  it("leave /health and the control endpoints alone", async ({ sandbox }) => {
    sandbox.faults.add({ kind: "status", status: 500, times: 0 });
    expect((await fetch(`${sandbox.origin}/health`)).status).toBe(200);
    const headers = { authorization: `Bearer ${sandbox.controlToken}` };
    expect((await fetch(`${sandbox.origin}/_sandbox/faults`, { headers })).status).toBe(200);
    expect((await ask(sandbox, devicesUrl(sandbox))).status).toBe(500);
  });

  it("are each described in a line", () => {
    for (const text of Object.values(FAULT_KINDS)) expect(text).toMatch(/^[^\n]{10,110}$/);
  });
});
