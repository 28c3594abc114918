import { describe, expect, it, vi } from "vitest";
import { isEventStream } from "../../src/http/buffered-response.js";
import { HttpResponse } from "../../src/http/http-message.js";
import {
  bodyParts,
  httpFailure,
  isJsonResponse,
  readEvents,
  readResponseBody,
  type StreamEvent,
  textParts,
} from "../../src/mcp/http-channel.js";

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

  it.each([
    [262_144, 1],
    [262_145, 2],
  ])("is read at once, if it says that it has %i bytes, else by parts", async (length, least) => {
    let asked = 0;
    const { body } = countedBody();
    const response = new HttpResponse(body, { headers: { "content-length": String(length) } });
    await readResponseBody(response, 1e6, async () => void asked++);
    expect(Math.min(asked, 2)).toBe(least);
  });

  it("may be as long as its limit", async () => {
    expect(await readResponseBody(new HttpResponse("x".repeat(1000)), 1000)).toHaveLength(1000);
  });

  it("is cancelled where the reader leaves", async () => {
    const cancel = vi.fn();
    const body = new ReadableStream<Uint8Array>({ pull: (controller) => controller.enqueue(Uint8Array.of(1)), cancel });
    for await (const _ of bodyParts(body)) break;
    expect(cancel).toHaveBeenCalledOnce();
  });

  it("keeps a character whose bytes come apart", async () => {
    const parts = ReadableStream.from([Uint8Array.of(0xc3), Uint8Array.of(0xa9)]);
    let text = "";
    for await (const part of textParts(bodyParts(parts))) text += part;
    expect(text).toBe("é");
  });

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

it.each<[string | undefined, boolean, boolean]>([
  ["text/event-stream", true, false],
  ["Text/Event-Stream; charset=utf-8", true, false],
  ["application/json", false, true],
  ["Application/JSON;charset=utf-8", false, true],
  ["x-text/event-stream", false, false],
  ["text/event-streams", false, false],
  ["application/jsonl", false, false],
  ["x-application/json", false, false],
  [undefined, false, false],
])("tells a stream of events and JSON by the type %s", (type, isStream, isJson) => {
  const response = new Response(null, { headers: { ...(type !== undefined && { "content-type": type }) } });
  expect([isEventStream(response), isJsonResponse(response)]).toEqual([isStream, isJson]);
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

it("limits an event of many lines, and takes one of the limit", async () => {
  await expect(read("data: 1234\n", "data: 1234\n", "data: 1234\n", "data: 1234\n", "data: 1\n")).rejects.toThrow(
    "too long",
  );
  expect(await read("data: 1234567\ndata: 12345678901234567890", "1\n\n")).toHaveLength(1);
});

it.each<[string, string[], string[]]>([
  ["a field without a value", ["data\ndata\n\n"], ["\n"]],
  ["a value without a blank", ["data:x\n\n"], ["x"]],
  ["a value of blanks", ["data:  x\n\n"], [" x"]],
  ["a comment", [": data\ndata: x\n\n"], ["x"]],
  ["an empty line at the start", ["\ndata: x\n\n"], ["", "x"]],
  ["an end that comes in three parts", ["data: x\r", "", "\n\r", "", "\n"], ["x"]],
])("reads %s", async (_what, parts, texts) => {
  expect((await read(...parts)).map(({ data }) => data)).toEqual(texts);
});

it("ignores a place with NUL and a wait that is no number", async () => {
  const [event] = await read("id: 7\nretry: 20\n", "id: 8\0\n\n");
  expect(event).toMatchObject({ id: "7", retry: 20 });
  for (const field of ["retry: soon", "retry: 5s", "retry: s5", "retry:", "wait: 5"])
    expect(await read("retry: 20\n", `${field}\n\n`)).toMatchObject([{ retry: 20 }]);
});

it.each([
  ["with another token than the session began with", true, "Bearer", true],
  ["with another token, which lacks a scope", true, 'Bearer error="insufficient_scope"', undefined],
  ["with the token of the session", undefined, "Bearer", undefined],
])("a failure to a request %s says so or not", async (_what, hasNewToken, challenge, expected) => {
  const response = new Response("no", { status: 403, headers: { "www-authenticate": challenge } });
  const { data } = await httpFailure(response, hasNewToken);
  expect(data).toEqual({ status: 403, text: "no", ...(expected && { hasNewToken: expected }) });
});
