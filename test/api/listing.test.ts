import { describe, expect, it, vi } from "vitest";
import { withHint } from "../../src/errors.js";
import type {
  AgentAuthError,
  DeviceSorting,
  Drift,
  IgnoredSorting,
  ListingSummary,
  ListOptions,
  ManagementClient,
  ManagementClientOptions,
  SortingEncoding,
} from "../../src/index.js";
import { FakeClock } from "../helpers/clock.js";
import { fc } from "../helpers/properties.js";
import { until } from "../helpers/server.js";
import { rejection, SampleService } from "../helpers/service.js";

const pool_id = "<pool_id>";

async function readIds(service: SampleService, options: ListOptions = {}): Promise<string[]> {
  const ids: string[] = [];
  for await (const device of service.client().devices.list({ pool_id }, options)) ids.push(device.id);
  return ids;
}

/** Reads as far as it goes; gives what came and the error that ended it. */
async function readUntilError(service: SampleService, options: ListOptions = {}) {
  const ids: string[] = [];
  const error = (await rejection(
    (async () => {
      for await (const device of service.client().devices.list({ pool_id }, options)) ids.push(device.id);
    })(),
  )) as AgentAuthError;
  return { ids, error };
}

/** A service whose pages take time, on a clock of their own; `flying.most` is how many were in flight at once. */
function slowService(msOf: (nth: number) => number, count = 300) {
  const [service, clock, flying] = [new SampleService(count), new FakeClock(), { now: 0, most: 0 }];
  const never = new AbortController().signal;
  service.before = async (_, nth) => {
    flying.most = Math.max(flying.most, ++flying.now);
    // Requests that are sent together take their time together.
    const end = clock.now() + msOf(nth);
    await new Promise((resolve) => setImmediate(resolve));
    await clock.sleep(Math.max(0, end - clock.now()), never);
    flying.now--;
  };
  return { service, client: service.client({ clock }), flying };
}

describe("a listing", () => {
  it("sends nothing until it is iterated, and starts again at each iteration", async () => {
    const service = new SampleService(25);
    const listing = service.client().devices.list({ pool_id });
    expect(service.offsets).toEqual([]);
    expect(await listing.toArray()).toHaveLength(25);
    expect(await listing.toArray()).toHaveLength(25);
    expect(service.offsets).toEqual([0, 9, 18, 0, 9, 18]);
  });

  it("asks for the first page without an offset unless a start is given, with encoded names", async () => {
    const urls: string[] = [];
    const service = new SampleService(3);
    const spy: typeof fetch = (input, init) => {
      urls.push((input as Request).url);
      return service.fetch(input, init);
    };
    const { devices } = service.client({ fetch: spy });
    await devices.list({ pool_id: "p 1" }, { sort: { field: "title", direction: "desc" }, pageSize: 7 }).toArray();
    await devices.list({ pool_id: "p" }, { offset: 0 }).toArray();
    expect(urls).toEqual([
      "https://agentauth.example/api/v1/device?pool_id=p%201&sorting%5Bfield%5D=title&sorting%5Bdirection%5D=desc&pagination%5Bpage_size%5D=7",
      "https://agentauth.example/api/v1/device?pool_id=p&pagination%5Boffset%5D=0",
    ]);
  });

  it.each<[SortingEncoding, DeviceSorting, string]>([
    ["deep", { field: "title", direction: "desc" }, "sorting%5Bfield%5D=title&sorting%5Bdirection%5D=desc"],
    [
      "json",
      { field: "title", direction: "desc" },
      "sorting=%7B%22field%22%3A%22title%22%2C%22direction%22%3A%22desc%22%7D",
    ],
    ["field:direction", { field: "title", direction: "desc" }, "sorting=title%3Adesc"],
    ["field:direction", { field: "title" }, "sorting=title"],
  ])("sends the order as %s: %j", async (sorting, order, query) => {
    const urls: string[] = [];
    const service = new SampleService(1);
    const spy: typeof fetch = (input, init) => {
      urls.push(new URL((input as Request).url).search);
      return service.fetch(input, init);
    };
    const client = service.client({ fetch: spy, sorting });
    await client.devices.list({ pool_id: "p" }, { sort: order }).toArray();
    await client.client.GET("/api/v1/device", { params: { query: { pool_id: "p", sorting: order } } });
    const text = Object.values(order).join(":") as "title:desc";
    await client.devices.list({ pool_id: "p" }, { sort: text }).toArray();
    expect(urls).toEqual([`?pool_id=p&${query}`, `?pool_id=p&${query}`, `?pool_id=p&${query}`]);
    expect(() => service.client({ sorting: "xml" as never })).toThrow(TypeError);
  });

  it.each(["", ":desc", "title:down", "title:desc:asc"])("refuses %j for an order", (sort) => {
    const list = () => new SampleService(1).client().pools.list({ domain_id: "d" }, { sort });
    expect(list).toThrow(new TypeError(`sort "${sort}" is not a field, alone or with :asc or :desc`));
  });

  it.each([undefined, null, "", 7])("needs the id that it is asked by: %j", (id) => {
    const { pools, domains, devices } = new SampleService(1).client();
    const usage = expect.objectContaining({ code: "usage", class: "usage" });
    expect(() => pools.list({ domain_id: id as never })).toThrow(usage);
    expect(() => domains.list({ account_id: id as never })).toThrow(usage);
    expect(() => devices.list({ pool_id: id as never })).toThrow(usage);
  });

  it("gives pages with their numbers, and the answer itself out of sight", async () => {
    const service = new SampleService(12);
    const pages = [];
    for await (const page of service.client().devices.list({ pool_id }).pages()) pages.push(page);
    expect(pages.map(({ items, offset }) => [items.length, offset])).toEqual([
      [10, 0],
      [2, 10],
    ]);
    expect(pages[1]?.pagination?.page_offset).toBe(9);
    expect(pages[1]?.sorting).toEqual({ field: "id", direction: "asc" });
    expect(pages[0]?.response.status).toBe(200);
    expect(Object.keys(pages[0] ?? {})).not.toContain("response");
  });

  it("gives the first item, or undefined", async () => {
    expect(await new SampleService(5).client().devices.list({ pool_id }).first()).toEqual({ id: "dev_0" });
    expect(await new SampleService(0).client().devices.list({ pool_id }).first()).toBeUndefined();
  });

  it("never asks for a page that limit cannot use", async () => {
    for (const concurrency of [1, 4, 16]) {
      const service = new SampleService(1000);
      expect(await readIds(service, { limit: 35, concurrency })).toEqual(service.ids().slice(0, 35));
      expect(service.offsets).toEqual([0, 9, 18, 27]);
    }
  });

  it("keeps at most `concurrency` pages in flight, and a slow reader holds them back", async () => {
    let flying = 0;
    let most = 0;
    const service = new SampleService(500);
    service.before = async (_, nth) => {
      most = Math.max(most, ++flying);
      // The first page comes alone.
      if (nth > 1) await until(() => most === 4);
      flying--;
    };
    const ids: string[] = [];
    for await (const page of service.client().devices.list({ pool_id }, { concurrency: 4 }).pages()) {
      ids.push(...page.items.map((item) => item.id));
      await new Promise((resolve) => setTimeout(resolve, 5));
      expect(service.offsets.length).toBeLessThanOrEqual((ids.length - 1) / 9 + 4);
    }
    expect(ids).toEqual(service.ids());
    expect(most).toBe(4);
  });

  it("has four pages in flight by default among all listings of a client", async () => {
    const { service, client, flying } = slowService(() => 20);
    const listings = Array.from({ length: 3 }, () => client.devices.list({ pool_id }).toArray());
    for (const items of await Promise.all(listings)) expect(items.map(({ id }) => id)).toEqual(service.ids());
    expect(flying.most).toBe(4);
  });

  it("gives each item once to a caller that does not wait for the one before", async () => {
    const service = new SampleService(25);
    const items = service.client().devices.list({ pool_id })[Symbol.asyncIterator]();
    const results = await Promise.all(Array.from({ length: 26 }, () => items.next()));
    expect(results.map(({ value }) => value?.id)).toEqual([...service.ids(), undefined]);
  });

  it("ends everything in flight when the loop is left", async () => {
    const signals: AbortSignal[] = [];
    const service = new SampleService(500);
    const spy: typeof fetch = (input, init) => {
      if (init?.signal) signals.push(init.signal);
      return service.offsets.length === 0 ? service.fetch(input, init) : hang(service, input, init);
    };
    for await (const _ of service.client({ fetch: spy }).devices.list({ pool_id }, { concurrency: 4 })) break;
    await until(() => signals.slice(1).every((signal) => signal.aborted));
    expect(signals).toHaveLength(5);
  });

  it("ends with `aborted`, and says where, when its signal fires", async () => {
    const controller = new AbortController();
    const service = new SampleService(50);
    service.before = (_, nth) => {
      if (nth === 3) controller.abort();
    };
    const { ids, error } = await readUntilError(service, { signal: controller.signal });
    expect(ids).toHaveLength(19);
    expect(error).toMatchObject({ code: "aborted", class: "aborted", resume: 19 });
  });

  it.each([
    [{ pageSize: 0 }, "pageSize"],
    [{ limit: -1 }, "limit"],
    [{ concurrency: 1.5 }, "concurrency"],
    [{ offset: -1 }, "offset"],
    [{ maxPages: Number.NaN }, "maxPages"],
  ])("refuses %o as a programmer's mistake", (options, name) => {
    expect(() => new SampleService(1).client().devices.list({ pool_id }, options)).toThrow(TypeError);
    expect(() => new SampleService(1).client().devices.list({ pool_id }, options)).toThrow(name);
  });

  it("lists pools and domains by the same rules", async () => {
    const service = new SampleService(15);
    expect(await service.client().pools.list({ domain_id: "d" }).toArray()).toHaveLength(15);
    expect(await service.client().domains.list({ account_id: "a" }).toArray()).toHaveLength(15);
  });

  it.each([
    ["device", `pool "${pool_id}"`, (client: ManagementClient, id: string) => client.devices.get({ pool_id, id })],
    ["pool", 'domain "d"', (client: ManagementClient, id: string) => client.pools.get({ domain_id: "d", id })],
    ["domain", 'account "a"', (client: ManagementClient, id: string) => client.domains.get({ account_id: "a", id })],
  ])("finds a %s by listing, and says when there is none", async (kind, scope, get) => {
    const service = new SampleService(25);
    expect(await get(service.client(), "dev_13")).toEqual({ id: "dev_13" });
    expect(service.offsets).toEqual([0, 9]);
    expect(await rejection(get(service.client(), "nobody"))).toMatchObject({
      code: "not_found",
      class: "remote",
      message: `no ${kind} "nobody" in ${scope}`,
    });
    await expect(get(service.client(), "")).rejects.toThrow("id must be a non-empty string");
  });

  it("ends the search for a device as any call ends: with the failure itself, not as a part of a list", async () => {
    const service = new SampleService(50);
    service.alter = (page, offset) => (offset < 20 ? page : new Response("", { status: 503 }));
    const error = await rejection(service.client().devices.get({ pool_id, id: "dev_30" }));
    expect(error).toMatchObject({ code: "server_error", class: "unavailable", status: 503, retryable: true });
    expect(JSON.parse(JSON.stringify(error))).not.toHaveProperty("resume");
    expect((error as Error).message).not.toContain("the listing");
    const controller = new AbortController();
    service.before = (offset) => (offset === 9 ? controller.abort() : undefined);
    const { signal } = controller;
    const aborted = await rejection(service.client().devices.get({ pool_id, id: "dev_30" }, { signal }));
    expect(aborted).toMatchObject({ code: "aborted", class: "aborted" });
    expect((aborted as AgentAuthError).resume).toBeUndefined();
  });
});

describe("complete or an error", () => {
  it.each([1, 4])("gives all items in order, none twice, at any size and page size (window %i)", async (least) => {
    await fc.assert(
      fc.asyncProperty(
        fc.record({
          count: fc.integer({ min: 0, max: 120 }),
          pageSize: fc.integer({ min: 1, max: 25 }),
          concurrency: fc.integer({ min: least, max: least * 3 }),
          from: fc.integer({ min: 0, max: 130 }),
          limit: fc.option(fc.integer({ min: 1, max: 130 }), { nil: undefined }),
        }),
        async ({ count, pageSize, concurrency, from, limit }) => {
          const service = new SampleService(count);
          let end: ListingSummary | undefined;
          const ids = await readIds(service, {
            pageSize,
            concurrency,
            offset: from,
            limit,
            onEnd: (verdict) => (end = verdict),
          });
          expect(ids).toEqual(service.ids().slice(from, limit === undefined ? undefined : from + limit));
          expect(new Set(service.offsets).size).toBe(service.offsets.length);
          const more = from + ids.length < count;
          expect(end).toMatchObject({ yielded: ids.length, duplicates: 0, drift: [], complete: !more });
          expect(end?.next).toBe(more ? from + ids.length : undefined);
        },
      ),
      { numRuns: 150 },
    );
  });

  it.each([
    ["the same", 9],
    ["a smaller", 3],
  ])("ends at %s next offset, with everything before it returned", async (_, value) => {
    const service = new SampleService(50);
    service.alter = (page, offset) => {
      if (offset === 9) Object.assign(page.pagination ?? {}, { next_page_offset: value });
      return page;
    };
    for (const concurrency of [1, 4]) {
      const { ids, error } = await readUntilError(service, { concurrency });
      expect(ids).toEqual(service.ids().slice(0, 19));
      expect(error).toMatchObject({ code: "pagination_loop", class: "partial", resume: 19 });
    }
  });

  it.each(["10", 10.5, -1, 1e300, true, {}, []])("ends at the next offset %j", async (value) => {
    const service = new SampleService(50);
    service.alter = (page, offset) => {
      if (offset === 9) Object.assign(page.pagination ?? {}, { next_page_offset: value });
      return page;
    };
    const { ids, error } = await readUntilError(service);
    expect(ids).toHaveLength(19);
    expect(error).toMatchObject({ code: "bad_pagination", class: "partial", resume: 19 });
    expect(error.message).toContain("next_page_offset");
  });

  it("continues past an empty page that names a next one, but not for ever", async () => {
    const service = new SampleService(30);
    service.alter = (page, offset) => {
      const { item_count: _, ...numbers } = page.pagination ?? {};
      return offset === 9
        ? { items: [], pagination: { ...numbers, item_start: 0, item_end: 0 } }
        : { ...page, pagination: numbers };
    };
    let end: ListingSummary | undefined;
    const ids = await readIds(service, { onEnd: (summary) => (end = summary) });
    expect(ids).toEqual([...service.ids().slice(0, 10), ...service.ids().slice(19)]);
    expect(end?.unseenShifts).toBe("gaps");
    service.alter = (_, offset) => ({ items: [], pagination: { next_page_offset: offset + 10 } });
    expect((await readUntilError(service)).error).toMatchObject({ code: "pagination_loop", resume: 500 });
  });

  it("takes a list without numbers for a single page", async () => {
    const service = new SampleService(10);
    service.alter = (page) => ({ items: page.items, pagination: {} });
    expect(await readIds(service)).toEqual(service.ids());
  });

  it("stops at the page cap", async () => {
    const { ids, error } = await readUntilError(new SampleService(50), { maxPages: 3 });
    expect(ids).toHaveLength(28);
    const url = "https://agentauth.example/api/v1/device";
    expect(error).toMatchObject({ code: "page_cap", class: "partial", resume: 28, url });
    expect(error.message).toContain(`: ${url}: `);
  });

  it("carries the cause, its request id and the place to continue when a page fails in the middle", async () => {
    const service = new SampleService(50);
    service.alter = (page, offset) =>
      offset < 27
        ? page
        : Response.json(
            { status: "error", code: "not_permitted", message: "no\u001b[31m more" },
            { status: 403, headers: { "x-request-id": "req-7" } },
          );
    for (const concurrency of [1, 4]) {
      const { ids, error } = await readUntilError(service, { concurrency });
      expect(ids).toEqual(service.ids().slice(0, 28));
      expect(error).toMatchObject({
        code: "not_permitted",
        class: "partial",
        resume: 28,
        status: 403,
        requestId: "req-7",
      });
      expect(error.message).toContain("no\\e[31m more");
      expect(error.cause).toMatchObject({ code: "not_permitted", class: "remote" });
    }
  });

  it("keeps the class of the failure when nothing was returned", async () => {
    const service = new SampleService(50);
    service.alter = () => new Response("<html>sign in", { headers: { "content-type": "text/html" } });
    const { error } = await readUntilError(service, { offset: 20 });
    expect(error).toMatchObject({ code: "bad_content_type", class: "refused", resume: 20 });
  });

  it("uses the next offset as it was given, whatever size the pages have", async () => {
    const service = new SampleService(60);
    service.alter = (_, offset) => service.page(offset, offset % 20 === 0 ? 7 : 13);
    for (const concurrency of [1, 5]) {
      expect(await readIds(service, { concurrency, pageSize: 10 })).toEqual(service.ids());
    }
  });

  it("drops its guesses at the first that proves wrong, and reads on page by page", async () => {
    const service = new SampleService(100);
    service.alter = (page, offset) => (offset === 18 ? service.page(18, 5) : page);
    expect(await readIds(service, { concurrency: 4 })).toEqual(service.ids());
    expect(service.offsets.slice(0, 7)).toEqual(
      [0, 9, 18, 27, 36, 45, 54].slice(0, service.offsets.indexOf(22)).concat(22).slice(0, 7),
    );
    expect(service.offsets.slice(service.offsets.indexOf(22))).toEqual([22, 31, 40, 49, 58, 67, 76, 85, 94]);
  });
});

describe("items without an id", () => {
  const without = (service: SampleService, ...offsets: number[]) => {
    for (const offset of offsets) service.items[offset] = { title: `item ${offset}` } as never;
    return service;
  };

  it.each([1, 4])(
    "end a listing after all others, by number and offset, with %i pages in flight",
    async (concurrency) => {
      const service = without(new SampleService(40), 3, 10, 39);
      const { ids, error } = await readUntilError(service, { concurrency });
      expect(ids).toEqual(new SampleService(40).ids().filter((_, index) => ![3, 10, 39].includes(index)));
      expect(error).toMatchObject({ code: "unusable_items", class: "partial", retryable: false });
      expect(error.message).toContain("3 of the devices");
      expect(error.message).toContain("at offsets 3, 10, 39");
      expect(error.toJSON().unusable).toEqual({ count: 3, positions: [3, 10, 39] });
      expect(error.resume).toBeUndefined();
      expect(withHint(error, "a hint").unusable).toEqual(error.unusable);
    },
  );

  it("end one with a limit too, which says where it continues", async () => {
    const { ids, error } = await readUntilError(without(new SampleService(40), 1), { limit: 12 });
    expect([ids.length, ids.at(-1)]).toEqual([12, "dev_12"]);
    expect(error).toMatchObject({ code: "unusable_items", resume: 13, remedy: { action: "resume", offset: 13 } });
    expect(error.message).toContain(" has no id, at offset 1; ");
  });

  it("are counted, and the first of them named, where no item has an id", async () => {
    const service = new SampleService(1000, 300);
    const { ids, error } = await readUntilError(without(service, ...service.items.keys()));
    expect([ids, error.unusable?.count, error.unusable?.positions.length]).toEqual([[], 1000, 100]);
  });

  it("end a strict listing at once", async () => {
    const service = without(new SampleService(40), 15);
    const { ids, error } = await readUntilError(service, { strict: ["shape"] });
    expect([ids, error.code]).toEqual([[], "unexpected_shape"]);
  });

  it("are not the device that was asked for", async () => {
    const { devices } = without(new SampleService(40), 1).client();
    expect(await devices.get({ pool_id, id: "dev_39" })).toEqual({ id: "dev_39" });
    expect(await rejection(devices.get({ pool_id, id: "dev_1" }))).toMatchObject({ code: "not_found" });
    expect(await devices.list({ pool_id }).first()).toEqual({ id: "dev_0" });
  });
});

describe("an order that was requested", () => {
  const listed = (items: object[], sorting: object | undefined, options: Partial<ManagementClientOptions> = {}) => {
    const service = new SampleService(0, 2);
    service.items = items as never;
    service.alter = ({ items: summaries, pagination }) =>
      Response.json({ status: "success", summaries, pagination, ...(sorting && { sorting }) });
    return service.client(options);
  };
  const reported = async (client: ManagementClient, sort: DeviceSorting) => {
    const order: string[] = [];
    const onSortingIgnored = ({ requested, applied }: IgnoredSorting) =>
      order.push(JSON.stringify([requested, applied]));
    for await (const { id } of client.devices.list({ pool_id }, { sort, onSortingIgnored })) order.push(id);
    return order;
  };
  const items = [{ id: "a" }, { id: "b" }, { id: "c" }];
  const asked: DeviceSorting = { field: "title", direction: "desc" };

  it.each([
    ["another field", { field: "id", direction: "desc" }],
    ["another direction", { field: "title", direction: "asc" }],
    ["none", undefined],
  ])("is reported once, before the first item, where the answer names %s", async (_, applied) => {
    const warn = vi.fn();
    const client = listed(items, applied, { logger: { debug() {}, info() {}, error() {}, warn } });
    const report = JSON.stringify([asked, applied]);
    expect(await reported(client, asked)).toEqual([report, "a", "b", "c"]);
    expect(warn.mock.calls).toEqual([
      [expect.stringContaining('the order "title:desc" was requested, and the answer')],
    ]);
    for (const strict of [true, "all", ["order"]] as const) {
      const error = await rejection(client.devices.list({ pool_id }, { sort: asked, strict }).toArray());
      expect([strict, error]).toEqual([
        strict,
        expect.objectContaining({ code: strict === "all" || strict === true ? "unexpected_shape" : "sorting_ignored" }),
      ]);
    }
  });

  it("is taken where the answer names it, as far as it was asked for", async () => {
    const client = listed(items, asked);
    expect(await reported(client, asked)).toEqual(["a", "b", "c"]);
    expect(await reported(client, { field: "title" })).toEqual(["a", "b", "c"]);
    expect(await reported(client, {})).toEqual(["a", "b", "c"]);
  });

  it("is compared within pages alone once the list has changed", async () => {
    const sort: DeviceSorting = { field: "id", direction: "asc" };
    const service = new SampleService(0, 2);
    service.items = [..."ghijkl"].map((id) => ({ id }));
    service.before = (_, nth) => {
      if (nth === 2) service.items.unshift(...[..."abcdef"].map((id) => ({ id })));
    };
    const ids = [];
    for await (const { id } of service.client().devices.list({ pool_id }, { sort, strict: ["order"] })) ids.push(id);
    expect(ids.join("")).toBe("ghabcdefijkl");
  });

  it("is one of the checks that there are", () => {
    const list = (strict: never) => () => listed([], undefined).devices.list({ pool_id }, { strict });
    expect(list(["ordre"] as never)).toThrow(TypeError);
    expect(list("strict" as never)).toThrow(TypeError);
  });
});

describe("a list that changes while it is read", () => {
  it.each([
    [15, 6, []],
    [30, 5, [{ field: "page_size", to: 5 }]],
  ])("may count the items of its last page alone: %d items", async (count, size, expected) => {
    const service = new SampleService(count);
    const drift: Drift[] = [];
    service.alter = (made, _, nth) =>
      nth === 2 ? { ...made, pagination: { ...made.pagination, page_size: size } } : made;
    await readIds(service, { concurrency: 1, onDrift: (change) => drift.push(change) });
    expect(drift.slice(0, 1)).toMatchObject(expected);
  });

  it("drops what an insertion pushes across a seam, and reports it", async () => {
    const service = new SampleService(30);
    const drift: Drift[] = [];
    let end: ListingSummary | undefined;
    service.before = (_, nth) => {
      if (nth === 2) service.items.unshift({ id: "new_1" }, { id: "new_2" });
    };
    const ids = await readIds(service, {
      onDrift: (change) => drift.push(change),
      onEnd: (verdict) => (end = verdict),
    });
    expect(ids).toEqual(Array.from({ length: 30 }, (_, index) => `dev_${index}`));
    expect(drift).toEqual([{ field: "item_count", from: 30, to: 32, offset: 10 }]);
    expect(end).toMatchObject({ yielded: 30, expected: 32, duplicates: 2, complete: false });
  });

  it("fails under `strict` at the first change, and not before", async () => {
    const service = new SampleService(30);
    service.items = service.items.map(({ id }) => ({
      id,
      account_id: "<account_id>",
      authentication_ruleset_nid: "<ruleset_nid>",
      domain_id: "<domain_id>",
      status: "on",
      title: "A pool",
      type: "pool",
    }));
    const pools = () => service.client().pools.list({ domain_id: "d" }, { strict: true });
    expect(await pools().toArray()).toHaveLength(30);
    service.before = (_, nth) => {
      if (nth === 6) service.items.pop();
    };
    const error = await rejection(pools().toArray());
    // One was deleted, so the first unread item may stand one further to the left.
    expect(error).toMatchObject({ class: "partial", code: "list_changed", resume: 9 });
  });

  it("fails under `strict` on an item of another shape, naming the field", async () => {
    const error = await rejection(
      new SampleService(3).client().pools.list({ domain_id: "d" }, { strict: true }).toArray(),
    );
    expect(error).toMatchObject({ class: "refused", code: "unexpected_shape" });
    expect((error as Error).message).toMatch(/summaries\[0\].*is missing/);
  });

  it.each([
    ["a sorting of another kind", { sorting: "id" }, 'sorting "id" must be an object'],
    ["no sorting", { sorting: undefined }, "sorting is missing"],
    ["an unknown direction", { sorting: { direction: "up", field: "id" } }, 'sorting.direction "up" must be one of'],
    [
      "a field that devices are not sorted by",
      { sorting: { direction: "asc", field: "at" } },
      'sorting.field "at" must',
    ],
    ["more in its sorting", { sorting: { direction: "asc", field: "id", by: 1 } }, "sorting.by is not documented"],
    ["a status that is null", { status: null }, 'status "null" must not be null'],
    ["no status", { status: undefined }, "status is missing"],
    ["a member that is not documented", { "mo\u001bre": 1 }, String.raw`mo\ere is not documented`],
  ])('fails under `strict: "all"` on an answer with %s, and only there', async (_, change, said) => {
    const numbers = { item_count: 0, item_start: 0, item_end: 0, page_count: 0, page_index: 1, page_offset: 0 };
    const ends = { page_size: 50, next_page_offset: null, previous_page_offset: null };
    const whole = {
      status: "success",
      summaries: [],
      pagination: { ...numbers, ...ends },
      sorting: { direction: "asc", field: "id" },
    };
    const listOf = (body: object) => {
      const fetch = async () => Response.json(body);
      return new SampleService(0).client({ fetch }).devices;
    };
    expect(await listOf(whole).list({ pool_id }, { strict: "all" }).toArray()).toEqual([]);
    const changed = listOf({ ...whole, ...change });
    expect(await changed.list({ pool_id }).toArray()).toEqual([]);
    const error = await rejection(changed.list({ pool_id }, { strict: "all" }).toArray());
    const url = "https://agentauth.example/api/v1/device";
    expect(error).toMatchObject({ class: "refused", code: "unexpected_shape", url });
    expect((error as Error).message).toContain(`${url}: ${said}`);
  });

  it("ends rather than chasing a count that falls for ever", async () => {
    const service = new SampleService(40);
    let count = 1_000_000;
    service.alter = (page, offset) => {
      count -= offset === 0 ? 0 : 1000;
      return { items: page.items, pagination: { item_count: count, next_page_offset: offset + 10 } };
    };
    expect((await readUntilError(service)).error).toMatchObject({ code: "list_changed", class: "partial" });
  });
});

function hang(
  service: SampleService,
  input: Parameters<typeof fetch>[0],
  init: RequestInit | undefined,
): Promise<Response> {
  service.offsets.push(-1);
  return new Promise((_, reject) => {
    init?.signal?.addEventListener("abort", () => reject(init.signal?.reason));
    void input;
  });
}
