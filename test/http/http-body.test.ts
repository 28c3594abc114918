import { describe, expect, it } from "vitest";
import { HttpResponse } from "../../src/http/http-message.js";
import {
  decode,
  encode,
  type FetchClasses,
  isRefused,
  type StandardCase,
  streamOf,
  testStandard,
} from "../helpers/fetch-classes.js";

type Message = InstanceType<FetchClasses["Request"]> | InstanceType<FetchClasses["Response"]>;

const TEXT = '"Thïs"';
const OCTETS = '"123456"';

/** A request and a response with the same body. */
function messages({ Request, Response }: FetchClasses, body: unknown, headers: unknown = []): Message[] {
  const init = { method: "POST", body, headers, duplex: "half" };
  return [new Request("https://a.example/", init), new Response(body, { headers })];
}

/** The same row for a request and a response. */
function ofBoth(
  name: string,
  run: (make: (body?: unknown, headers?: unknown) => Message, classes: FetchClasses) => unknown,
  expected: unknown,
  differing: readonly number[] = [],
): StandardCase[] {
  return ["request", "response"].map((kind, index) => [
    `${name}, of a ${kind}`,
    (classes) => run((body, headers) => messages(classes, body, headers)[index] as Message, classes),
    expected,
    differing,
  ]);
}

function buffer(text: string, before = 0): ArrayBuffer {
  const octets = new Uint8Array(before + text.length + before);
  octets.set(encode(text), before);
  return octets.buffer;
}

/** A body with all that a runtime takes, what it says, and the type that it sets. */
const BODIES: [name: string, make: (classes: FetchClasses) => unknown, text: string, type: string | null][] = [
  ["a string", () => TEXT, TEXT, "text/plain;charset=UTF-8"],
  ["an empty string", () => "", "", "text/plain;charset=UTF-8"],
  ["half of a surrogate pair", () => "a\ud800", "a\ufffd", "text/plain;charset=UTF-8"],
  ["a number", () => 12, "12", "text/plain;charset=UTF-8"],
  ["an object", () => ({ toString: () => "own" }), "own", "text/plain;charset=UTF-8"],
  ["an ArrayBuffer", () => buffer(OCTETS), OCTETS, null],
  ["a Uint8Array", () => new Uint8Array(buffer(OCTETS)), OCTETS, null],
  ["a part of an Int8Array", () => new Int8Array(buffer(OCTETS, 1), 1, 8), OCTETS, null],
  ["a Float32Array", () => new Float32Array(buffer(OCTETS)), OCTETS, null],
  ["a part of a DataView", () => new DataView(buffer(OCTETS, 1), 1, 8), OCTETS, null],
  ["a Buffer", () => Buffer.from(OCTETS), OCTETS, null],
  ["a Blob", () => new Blob([TEXT], { type: "a/b" }), TEXT, "a/b"],
  ["a Blob without a type", () => new Blob([TEXT]), TEXT, null],
  ["a File", () => new File([TEXT], "name", { type: "a/b" }), TEXT, "a/b"],
  [
    "URLSearchParams",
    () => new URLSearchParams({ a: "1 ü" }),
    "a=1+%C3%BC",
    "application/x-www-form-urlencoded;charset=UTF-8",
  ],
  ["a stream", () => streamOf(encode(TEXT.slice(0, 2)), encode(TEXT.slice(2))), TEXT, null],
  ["a stream of one part that is empty", () => streamOf(new Uint8Array()), "", null],
  [
    "an async iterable",
    () => ({
      async *[Symbol.asyncIterator]() {
        yield encode(TEXT);
      },
    }),
    TEXT,
    null,
  ],
];

// The facts of the web platform's tests, fetch/api/body and the files *-consume* of fetch/api/request and response.
describe("a body", () => {
  testStandard(
    BODIES.flatMap(([name, body, text, type]) => [
      ...ofBoth(
        `of ${name} is read in every form, once`,
        async (make, classes) => {
          const forms = {
            text: (message: Message) => message.text(),
            arrayBuffer: async (message: Message) => decode(await message.arrayBuffer()),
            bytes: async (message: Message) => decode(await message.bytes()),
            blob: async (message: Message) => (await message.blob()).text(),
          };
          const all: unknown[] = [];
          for (const read of Object.values(forms)) {
            const message = make(body(classes));
            const before = message.bodyUsed;
            const reading = read(message);
            const [during, value] = [message.bodyUsed, await reading];
            all.push([before, during, value, message.bodyUsed, await isRefused(() => message.blob())]);
          }
          return all;
        },
        Array(4).fill([false, true, text, true, true]),
        // They have no bytes().
        [20],
      ),
      ...ofBoth(
        `of ${name} sets its type, unless there is one`,
        (make, classes) => [
          make(body(classes)).headers.get("content-type"),
          make(body(classes), { "Content-Type": "text/x" }).headers.get("content-type"),
        ],
        [type, "text/x"],
      ),
    ]),
  );

  testStandard([
    ...ofBoth(
      "that is absent is empty, as often as it is read",
      async (make) => {
        const message = make(null);
        return [
          message.body,
          await message.text(),
          (await message.arrayBuffer()).byteLength,
          (await message.blob()).size,
          await message.json().catch((error: Error) => error.name),
          await isRefused(() => message.formData()),
          message.bodyUsed,
        ];
      },
      [null, "", 0, 0, "SyntaxError", true, false],
    ),
    ...ofBoth(
      "is used once its stream was read in part",
      async (make) => {
        const message = make("ab");
        const reader = (message.body as ReadableStream).getReader();
        const before = message.bodyUsed;
        await reader.read();
        reader.releaseLock();
        return [before, message.bodyUsed, await isRefused(() => message.text())];
      },
      [false, true, true],
    ),
    ...ofBoth(
      "is read as JSON",
      async (make) => [
        await make('\ufeff{ "b": 1, "a": 2, "b": 3 }').json(),
        await make("null").json(),
        await make(new Blob(["1"])).json(),
      ],
      [{ b: 3, a: 2 }, null, 1],
    ),
    ...["undefined", "{", "a", "[", ""].flatMap((text) =>
      ofBoth(`is no JSON: ${JSON.stringify(text)}`, (make) => make(text).json(), SyntaxError),
    ),
    ...ofBoth(
      "loses the mark of its byte order as text",
      async (make) => [
        await make("\ufeffa").text(),
        await make(encode("\ufeffa")).text(),
        (await make("\ufeffa").arrayBuffer()).byteLength,
      ],
      ["a", "a", 4],
    ),
    ...ofBoth(
      "is decoded with a mark for what is not UTF-8",
      (make) => make(new Uint8Array([97, 255, 98])).text(),
      "a\ufffdb",
    ),
    ...ofBoth(
      "does not change with what it was made of",
      async (make, { FormData }) => {
        const [form, params, bytes] = [new FormData(), new URLSearchParams("a=1"), encode("a")];
        form.set("a", "1");
        const all = [make(form), make(params), make(bytes), make(bytes.buffer)];
        form.set("a", "2");
        params.set("a", "2");
        bytes[0] = 98;
        const [ofForm, ofParams, ...texts] = all as [Message, Message, Message, Message];
        return [
          (await ofForm.formData()).get("a"),
          (await ofParams.formData()).get("a"),
          ...(await Promise.all(texts.map((message) => message.text()))),
        ];
      },
      ["1", "1", "a", "a"],
    ),
    ...ofBoth(
      "is not changed by who has read a copy",
      async (make) => {
        const message = make(encode("a"));
        const read = new Uint8Array(await message.clone().arrayBuffer());
        read[0] = 98;
        return message.text();
      },
      "a",
    ),
    ...ofBoth("of a symbol: never", (make) => make(Symbol("a")), TypeError),
  ]);
});

describe("the stream of a body", () => {
  const cases = (mode: "byob" | undefined): StandardCase[] =>
    BODIES.filter(([name]) => !/stream|iterable/.test(name) || mode === undefined).flatMap(([name, body, text]) =>
      ofBoth(
        `of ${name} is read part by part (${mode ?? "default"})`,
        async (make, classes) => {
          const stream = make(body(classes)).body;
          let read = "";
          if (mode === undefined) {
            for await (const part of stream ?? []) read += decode(part);
            return read;
          }
          const reader = stream?.getReader({ mode });
          for (;;) {
            const part = await reader?.read(new Uint8Array(64));
            if (part === undefined || part.done) return read;
            read += decode(part.value as Uint8Array);
          }
        },
        text,
      ),
    );
  testStandard([...cases(undefined), ...cases("byob")]);

  testStandard([
    ...ofBoth(
      "is the same each time",
      (make) => {
        const message = make("text");
        const { body } = message;
        return [message.body === body, body?.locked];
      },
      [true, false],
    ),
    ...ofBoth(
      "leaves the body as it is until it is read",
      async (make) => {
        const message = make("text");
        const reader = message.body?.getReader();
        const locked = [message.bodyUsed, await isRefused(() => message.text())];
        reader?.releaseLock();
        return [...locked, message.bodyUsed, await message.text()];
      },
      [false, true, false, "text"],
    ),
    ...ofBoth(
      "that is given is the stream of the body",
      async (make) => {
        const stream = streamOf(encode("text"));
        const message = make(stream);
        return [message.body === stream, await message.text()];
      },
      [true, "text"],
    ),
    ...["start", "pull"].flatMap((when) =>
      ofBoth(
        `that fails (${when}) fails the reading with its error`,
        (make) => {
          const fail = (controller: ReadableStreamDefaultController) => controller.error(new Error("of the stream"));
          return make(new ReadableStream({ [when]: fail })).text();
        },
        new Error("of the stream"),
      ),
    ),
    ...["text", 1, null, {}].flatMap((part) =>
      ofBoth(
        `may not have the part ${JSON.stringify(part)} (${typeof part})`,
        (make) => make(streamOf(part)).text(),
        TypeError,
      ),
    ),
    ...ofBoth(
      "of an async iterable asks it for a part when it is read, and ends it when it is cancelled",
      async (make) => {
        const seen: string[] = [];
        const source = {
          async *[Symbol.asyncIterator]() {
            try {
              for (;;) {
                seen.push("asked");
                yield encode("a");
              }
            } finally {
              seen.push("ended");
            }
          },
        };
        const reader = make(source).body?.getReader();
        await reader?.read();
        await reader?.cancel();
        return seen;
      },
      ["asked", "ended"],
    ),
    ...ofBoth(
      "of an async iterable fails with its error",
      (make) =>
        make({
          [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new Error("of the iterable")) }),
        }).text(),
      new Error("of the iterable"),
    ),
  ]);
});

it("the form of a body is read by the class of the runtime", async () => {
  const body = '--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--b--\r\n';
  const read = (type: string) => new HttpResponse(body, { headers: { "content-type": type } }).formData();
  const form = await read("multipart/form-data; boundary=b");
  expect([form.constructor, [...form]]).toEqual([FormData, [["a", "1"]]]);
  await expect(read("text/plain")).rejects.toThrow(TypeError);
});

it("a form is encoded by the class of the runtime", async () => {
  const form = new FormData();
  form.append("a", "1");
  form.append("b", new File(["text"], "b.txt", { type: "text/x" }));
  const response = new HttpResponse(form);
  expect(response.headers.get("content-type")).toMatch(/^multipart\/form-data; boundary=/);
  const read = await response.formData();
  expect([read.get("a"), await (read.get("b") as File).text()]).toEqual(["1", "text"]);
});
