import { describe, expect, it } from "vitest";
import { backpressureFetch } from "../../src/mcp/http-transport.js";
import { heldError } from "../helpers/told.js";

const turns = async (count: number) => {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
};

describe("a fetch with back-pressure", () => {
  it("reads no more of a response than the reader accepts", async () => {
    let pulled = 0;
    const body = () =>
      new ReadableStream<Uint8Array>({
        pull(controller) {
          pulled += 1;
          if (pulled > 500) controller.close();
          else controller.enqueue(new Uint8Array(1024));
        },
      });
    let open = () => {};
    const room = new Promise<void>((resolve) => {
      open = resolve;
    });
    const fetch = backpressureFetch(
      async () => new Response(body()),
      () => room,
    );
    const read = fetch("https://mcp.example/").then((answer) => answer.arrayBuffer());
    await turns(100);
    expect(pulled).toBeLessThan(5);
    open();
    expect((await read).byteLength).toBe(500 * 1024);
  });

  it("keeps status, headers and URL of a response", async () => {
    const origin = new Response("x", { status: 203, statusText: "so", headers: { "mcp-session-id": "s" } });
    Object.defineProperty(origin, "url", { value: "https://mcp.example/there" });
    const answer = await backpressureFetch(
      async () => origin,
      async () => {},
    )("https://mcp.example/");
    expect([answer.status, answer.statusText, answer.url]).toEqual([203, "so", "https://mcp.example/there"]);
    expect([answer.headers.get("mcp-session-id"), await answer.text()]).toEqual(["s", "x"]);
  });

  it("leaves a response without a body as it is", async () => {
    const empty = new Response(null, { status: 202 });
    const fetch = backpressureFetch(
      async () => empty,
      async () => {},
    );
    expect(await fetch("https://mcp.example/")).toBe(empty);
  });

  it.each(["text/plain", "text/event-stream"])("reads no error of any size (%s)", async (type) => {
    const events = "data: a part of an error\n\n".repeat(20_000);
    const answer = () => new Response(events, { status: 500, headers: { "content-type": type } });
    const fetch = backpressureFetch(
      async () => answer(),
      async () => {},
    );
    expect(await heldError((await fetch("https://mcp.example/")).text())).toMatchObject({ code: "body_too_large" });
  });

  it("measures each event, however the bytes are split", async () => {
    const events = ["data: aaaa\n\n", "data: bb\r\n\r\n", "data: cccc\r\r", "data: d\n\n"].join("");
    for (let size = 1; size <= 9; size++) {
      const chunks = events.match(new RegExp(`[^]{1,${size}}`, "g")) ?? [];
      const stream = ReadableStream.from(chunks.map((chunk) => new TextEncoder().encode(chunk)));
      const answer = () => new Response(stream, { headers: { "content-type": "text/event-stream" } });
      const fetch = backpressureFetch(
        async () => answer(),
        async () => {},
        // One event with its end, and the piece in which it ends.
        14 + size,
      );
      expect(await (await fetch("https://mcp.example/")).text()).toBe(events);
    }
  });
});
