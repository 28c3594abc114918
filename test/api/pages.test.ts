import nock from "nock";
import { describe, expect, it } from "vitest";
import { ManagementClient } from "../../src/index.js";
import { useNock } from "../helpers/nock.js";
import { rejection } from "../helpers/service.js";

const BASE = "https://agentauth.example";
const ALL = ["dev_0", "dev_1", "dev_2", "dev_3", "dev_4"].map((id) => ({ id, type: "device" }));
const SIZE = 2;

const devices = () =>
  new ManagementClient({ baseUrl: BASE, token: "api-token", random: () => 0 }).devices.list({ pool_id: "pool_1" });

/** The request of one page; the first page is asked for without an offset. */
const page = (offset: number) =>
  nock(BASE)
    .get("/api/v1/device")
    .query({ pool_id: "pool_1", ...(offset > 0 && { "pagination[offset]": offset }) });

const answer = (offset: number) => ({
  status: "success",
  summaries: ALL.slice(offset, offset + SIZE),
  pagination: {
    item_count: ALL.length,
    page_offset: offset,
    page_size: SIZE,
    next_page_offset: offset + SIZE < ALL.length ? offset + SIZE : null,
  },
});

useNock();

describe("reading page after page, on the global fetch", () => {
  it("follows the service's offsets to the end", async () => {
    for (const offset of [0, 1, 2, 3]) page(offset).reply(200, answer(offset));
    expect(await devices().toArray()).toEqual(ALL);
  });

  it("throws where to resume when a page fails", async () => {
    page(0).reply(200, answer(0));
    page(1).reply(200, "<html>", { "content-type": "text/html" });
    expect(await rejection(devices().toArray())).toMatchObject({ code: "bad_content_type", resume: 2 });
  });

  it("repeats a page that is refused for a moment, and no other", async () => {
    page(0).reply(200, answer(0));
    page(1).reply(429, "slow down", { "retry-after": "0" });
    for (const offset of [1, 2, 3]) page(offset).reply(200, answer(offset));
    expect(await devices().toArray()).toEqual(ALL);
  });
});
