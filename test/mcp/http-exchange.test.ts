import { describe, expect, it } from "vitest";
import { HttpResponse } from "../../src/http/http-response.js";
import {
  bodyParts,
  httpFailure,
  readEvents,
  readResponseBody,
  type StreamEvent,
  sendWithinOrigin,
  textParts,
} from "../../src/mcp/http-exchange.js";

const turns = async (count: number) => {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
};

/** What accepts nothing until it is opened. */
function closedRoom() {
  let open = () => {};
  const room = new Promise<void>((resolve) => {
    open = resolve;
  });
  return { room, open };
}

/** A body of 500 parts, and how many of them were read. */
function countedBody() {
  const counted = { pulled: 0 };
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      counted.pulled += 1;
      if (counted.pulled > 500) controller.close();
      else controller.enqueue(new Uint8Array(1024).fill(0x78));
    },
  });
  return { counted, body };
}

describe("a redirect", () => {
  const SERVER = "https://mcp.example/mcp";
  const sent = async (location: string | undefined, status = 307) => {
    const urls: string[] = [];
    const response = await sendWithinOrigin(
      async (url) => {
        urls.push(url);
        const headers: Record<string, string> = location === undefined ? {} : { location };
        return urls.length === 1 ? new Response(null, { status, headers }) : new Response("done");
      },
      SERVER,
      { method: "POST" },
    );
    return { status: response.status, urls: urls.slice(1) };
  };

  it("within the origin is followed", async () => {
    for (const status of [307, 308]) {
      expect(await sent("/other", status)).toEqual({ status: 200, urls: ["https://mcp.example/other"] });
    }
  });

  it.each([undefined, "http://[", "https://other.example/mcp", "http://mcp.example/mcp"])(
    "to %s is the response",
    async (location) => {
      expect(await sent(location)).toEqual({ status: 307, urls: [] });
    },
  );

  it("that changes the method is the response", async () => {
    expect(await sent("/other", 302)).toEqual({ status: 302, urls: [] });
  });
});

describe("a body that is read with back-pressure", () => {
  it.each([
    [
      "as a whole",
      (body: ReadableStream<Uint8Array>, ready: () => Promise<void>) =>
        readResponseBody(new Response(body), 1e6, ready),
    ],
    [
      "as a whole of a length that it says",
      (body: ReadableStream<Uint8Array>, ready: () => Promise<void>) =>
        readResponseBody(new HttpResponse(body, { headers: { "content-length": "512000" } }), 1e6, ready),
    ],
    [
      "in parts",
      async (body: ReadableStream<Uint8Array>, ready: () => Promise<void>) => {
        let text = "";
        for await (const part of textParts(bodyParts(body, ready))) text += part;
        return text;
      },
    ],
  ])("is read no faster than the reader accepts it: %s", async (_how, read) => {
    const { counted, body } = countedBody();
    const { room, open } = closedRoom();
    const whole = read(body, () => room);
    await turns(100);
    expect(counted.pulled).toBeLessThan(5);
    open();
    expect(await whole).toHaveLength(500 * 1024);
  });

  it("is not begun before the reader accepts it, if it says that it is short", async () => {
    const { room, open } = closedRoom();
    const { counted, body } = countedBody();
    const response = new HttpResponse(body, { headers: { "content-length": "1000" } });
    const whole = readResponseBody(response, 1e6, () => room);
    await turns(100);
    expect(counted.pulled).toBeLessThan(5);
    open();
    expect(await whole).toHaveLength(500 * 1024);
  });

  it.each([undefined, "10"])(
    "is never longer than its limit, whatever it says (content-length: %s)",
    async (length) => {
      const response = new HttpResponse("x".repeat(2000), { headers: { ...(length && { "content-length": length }) } });
      await expect(readResponseBody(response, 1000)).rejects.toMatchObject({ code: "body_too_large" });
    },
  );

  it("is read without its byte order mark, and whatever is no text is replaced", async () => {
    const bytes = Uint8Array.of(0xef, 0xbb, 0xbf, 0x7b, 0xff, 0x7d);
    expect(await readResponseBody(new HttpResponse(bytes), 100)).toBe("{\u{fffd}}");
    expect(await readResponseBody(new HttpResponse(null), 100)).toBe("");
  });

  it("is no error of any size", async () => {
    const answer = new Response("a part of an error\n\n".repeat(20_000), { status: 500 });
    await expect(httpFailure(answer)).rejects.toMatchObject({ code: "body_too_large" });
  });

  it("measures each event, however the bytes are split", async () => {
    const texts = ["data: aaaa\n\n", "data: bb\r\n\r\n", "data: cccc\r\r", "data: d\n\n"];
    for (let size = 1; size <= 9; size++) {
      const chunks = texts.join("").match(new RegExp(`[^]{1,${size}}`, "g")) ?? [];
      const stream = ReadableStream.from(chunks.map((chunk) => new TextEncoder().encode(chunk)));
      const found: string[] = [];
      // One event with its end, and the piece in which it ends.
      for await (const { data } of readEvents(textParts(bodyParts(stream)), 14 + size, () => new Error("too long")))
        found.push(data);
      expect(found).toEqual(["aaaa", "bb", "cccc", "d"]);
    }
  });
});

async function read(...parts: string[]): Promise<StreamEvent[]> {
  const source = (async function* () {
    yield* parts;
  })();
  const found: StreamEvent[] = [];
  for await (const event of readEvents(source, 40, () => new Error("too long"))) found.push(event);
  return found;
}

it.each([
  ["\n", ["data: one\ndata: two\n\n", "data: three\n\n"]],
  ["\r\n", ["data: one\r", "\ndata: two\r\n\r", "\ndata: three\r\n\r\n"]],
  ["\r", ["data: one\rdata: two\r\rdata: three\r\r"]],
])("reads lines that end in %j, however they are cut", async (_end, parts) => {
  expect((await read(...parts)).map(({ data }) => data)).toEqual(["one\ntwo", "three"]);
});

it("keeps the last place, and the type of one event only", async () => {
  const found = await read("id: 7\nretry: 20\ndata:\n\n", "event: note\ndata: x\n\n", "data: y\n\n");
  expect(found.map(({ id, retry, type, data }) => [id, retry, type, data])).toEqual([
    ["7", 20, undefined, ""],
    ["7", 20, "note", "x"],
    ["7", 20, undefined, "y"],
  ]);
});

it("reads no event to its end that is too long", async () => {
  await expect(read("data: ", "x".repeat(30), "x".repeat(30))).rejects.toThrow("too long");
});

it("limits each event, not all of them together", async () => {
  const event = `data: ${"x".repeat(20)}\n\n`;
  expect(await read(event, event, event)).toHaveLength(3);
});

it("ignores a place with NUL and a wait that is no number", async () => {
  const [event] = await read("id: 7\nretry: 20\n", "id: 8\0\nretry: soon\n\n");
  expect(event).toMatchObject({ id: "7", retry: 20 });
});
