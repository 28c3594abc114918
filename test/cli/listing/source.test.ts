import { describe, expect, it } from "vitest";
import type { ListKind } from "../../../src/cli/listing/scope.js";
import {
  COLUMNS,
  documentedValues,
  getItem,
  openListing,
  parseSort,
  SORT_FIELDS,
  warnOfOrder,
} from "../../../src/cli/listing/source.js";
import { createMemoryIo } from "../../helpers/memory-io.js";

const NOUNS = ["pools", "domains", "devices"] as const;

describe("--sort", () => {
  it.each<[string, ListKind["noun"], object]>([
    ["title", "pools", { field: "title" }],
    ["title:asc", "domains", { field: "title", direction: "asc" }],
    ["anything:desc", "pools", { field: "anything", direction: "desc" }],
    [`${SORT_FIELDS.devices[0]}:desc`, "devices", { field: SORT_FIELDS.devices[0], direction: "desc" }],
  ])("%s of %s is an order", (flag, noun, order) => {
    expect(parseSort(flag, noun)).toEqual(order);
  });

  it.each<[string, ListKind["noun"]]>([
    ["", "pools"],
    [":asc", "pools"],
    ["title:asc:x", "pools"],
    ["title:up", "pools"],
    ["title:", "pools"],
    ["zzzzzzzz", "devices"],
    [`${SORT_FIELDS.devices[0]}x`, "devices"],
  ])("%j of %s is none", (flag, noun) => {
    expect(() => parseSort(flag, noun)).toThrow(expect.objectContaining({ code: "usage" }));
    try {
      parseSort(flag, noun);
    } catch (error) {
      const { message, hint } = error as { message: string; hint: string };
      expect([message, hint]).toMatchSnapshot();
    }
  });

  it("is reported where the service ignores it", () => {
    const io = createMemoryIo();
    warnOfOrder(io)({ requested: { field: "title", direction: "asc" }, applied: { field: "id" } } as never);
    expect(io.err()).toMatchSnapshot();
  });
});

it("the values of the contract are those of devices", () => {
  expect(NOUNS.map((noun) => documentedValues(noun))).toMatchSnapshot();
  expect(SORT_FIELDS).toMatchSnapshot();
  expect(Object.keys(COLUMNS)).toEqual(NOUNS);
});

it("a list and an item are of their kind, in its scope, with what the flags say", async () => {
  const asked: unknown[] = [];
  const of = (kind: string) => ({
    list: (...args: unknown[]) => asked.push([kind, "list", ...args]),
    get: async (...args: unknown[]) => asked.push([kind, "get", ...args]),
  });
  const service = { pools: of("pools"), domains: of("domains"), devices: of("devices") } as never;
  const flags = { pageSize: 1, concurrency: 2, offset: 3, strict: true, limit: 4, columns: "id" } as const;
  for (const noun of NOUNS) {
    openListing(service, { noun, scope: "pool" }, "s", flags, { limit: 5 });
    await getItem(service, noun, { scopeId: "s", id: "i" }, { limit: 6 });
  }
  const options = { pageSize: 1, concurrency: 2, offset: 3, strict: true, limit: 5 };
  const scopes = { pools: "domain_id", domains: "account_id", devices: "pool_id" };
  expect(asked).toEqual(
    NOUNS.flatMap((noun) => [
      [noun, "list", { [scopes[noun]]: "s" }, options],
      [noun, "get", { [scopes[noun]]: "s", id: "i" }, { limit: 6 }],
    ]),
  );
});
