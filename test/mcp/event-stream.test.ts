import { expect, it } from "vitest";
import { readEvents, type StreamEvent } from "../../src/mcp/event-stream.js";

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
