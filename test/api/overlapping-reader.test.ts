import { describe, expect, it } from "vitest";
import type { ListingSummary } from "../../src/index.js";
import { rejection, SampleService } from "../helpers/service.js";

const pool_id = "<pool_id>";

async function read(service: SampleService, options: object = {}) {
  let end: ListingSummary | undefined;
  const onEnd = (summary: ListingSummary) => {
    end = summary;
  };
  const items = await service
    .client()
    .devices.list({ pool_id }, { ...options, onEnd })
    .toArray();
  return { ids: items.map(({ id }) => id), end };
}

const refused = (code: string) => Response.json({ status: "error", code, message: "no" }, { status: 400 });

type Alter = SampleService["alter"];
const aligned = (offset: number) => new SampleService(35).page(offset - (offset % 10), 10);
const withoutOffset: Alter = (_, offset) => {
  const page = aligned(offset);
  return { ...page, pagination: { ...page.pagination, page_offset: undefined } };
};
const refusing =
  (code: string): Alter =>
  (page, offset) =>
    offset % 10 === 0 ? page : refused(code);

/** Services that do not return the page that begins one item earlier. */
const SERVICES: [string, string, Alter][] = [
  ["aligns offsets", "aligned", (_, offset) => aligned(offset)],
  ["aligns offsets and does not say so", "aligned", withoutOffset],
  ["refuses an offset inside a page as bad_request", "refused", refusing("bad_request")],
  ["refuses an offset inside a page as invalid_value", "refused", refusing("invalid_value")],
];

describe("a service that", () => {
  it.each(SERVICES)("%s gets the pages as it names them, and the summary says why", async (_, reason, alter) => {
    for (const concurrency of [1, 4]) {
      const service = new SampleService(35);
      service.alter = alter;
      const { ids, end } = await read(service, { concurrency });
      expect(ids).toEqual(service.ids());
      expect(end).toMatchObject({ complete: true, unseenShifts: reason });
      if (concurrency === 1) expect(service.offsets).toEqual([0, 9, 10, 20, 30]);
    }
  });

  it.each(SERVICES)("%s loses nothing by a deletion, which its count shows", async (_, __, alter) => {
    const service = new SampleService(35);
    const stayed = service.ids().slice(3);
    service.alter = (page, offset, nth) => {
      const made = alter(page, offset, nth);
      if (made instanceof Response) return made;
      return { ...service.page(offset - (offset % 10), 10) };
    };
    service.before = (_offset, nth) => {
      if (nth === 4) service.items.splice(0, 3);
    };
    const { ids } = await read(service);
    expect(stayed.filter((id) => !ids.includes(id))).toEqual([]);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("fails at both offsets ends the listing with the second failure", async () => {
    const service = new SampleService(35);
    service.alter = (page, offset) => (offset === 0 ? page : refused(offset === 9 ? "bad_request" : "not_permitted"));
    const error = await rejection(read(service));
    expect(error).toMatchObject({ code: "not_permitted", class: "partial", resume: 10 });
  });
});

describe("a page", () => {
  it.each([1, 4])("of one item has no item before it, and the summary says so (%i in flight)", async (concurrency) => {
    const service = new SampleService(5, 1);
    const { ids, end } = await read(service, { concurrency });
    expect([ids, service.offsets, end?.unseenShifts]).toEqual([service.ids(), [0, 1, 2, 3, 4], "page_size"]);
  });

  it("of several begins with the last item of the one before, and the list says nothing of it", async () => {
    const service = new SampleService(30);
    const { ids, end } = await read(service);
    expect([ids, service.offsets]).toEqual([service.ids(), [0, 9, 18, 27]]);
    expect(end).toEqual({
      ...{ yielded: 30, expected: 30, duplicates: 0, drift: [], missing: 0, complete: true },
      ...{ unseenShifts: undefined, next: undefined },
    });
  });

  it.each([1, 4])(
    "that ends at a limit says where the list continues in the count of the reader (%i in flight)",
    async (concurrency) => {
      const service = new SampleService(30);
      const { ids, end } = await read(service, { limit: 19, concurrency });
      expect([ids.length, end?.next, service.offsets]).toEqual([19, 19, [0, 9]]);
      const rest = await read(service, { offset: end?.next, concurrency });
      expect(rest.ids).toEqual(service.ids().slice(19));
    },
  );
});
