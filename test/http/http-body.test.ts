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
            stream: async ({ body: stream }: Message) => new Response(stream).text(),
          };
          const all: unknown[] = [];
          for (const read of Object.values(forms)) {
            const message = make(body(classes));
            const before = message.bodyUsed;
            const reading = read(message);
            const [during, value] = [message.bodyUsed, await reading];
            all.push([
              before,
              during,
              value,
              message.bodyUsed,
              message.body?.locked,
              await isRefused(() => message.blob()),
            ]);
          }
          return all;
        },
        Array(5).fill([false, true, text, true, true, true]),
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
      "uses the body when it is read or cancelled",
      async (make) => {
        const [read, cancelled] = [make("text"), make("text")];
        const reader = read.body?.getReader();
        const reading = reader?.read();
        const during = read.bodyUsed;
        await reading;
        reader?.releaseLock();
        await cancelled.body?.cancel();
        return [
          during,
          read.bodyUsed,
          await isRefused(() => read.text()),
          cancelled.bodyUsed,
          await isRefused(() => cancelled.text()),
        ];
      },
      [true, true, true, true, true],
    ),
    ...ofBoth(
      "is used as soon as it is piped",
      (make) => {
        const message = make("text");
        void message.body?.pipeTo(new WritableStream());
        return message.bodyUsed;
      },
      true,
    ),
    ...ofBoth(
      "that is given is the stream of the body",
      async (make) => {
        const stream = streamOf(encode("text"));
        const message = make(stream);
        return [message.body === stream, await message.text(), stream.locked];
      },
      [true, "text", true],
    ),
    ...ofBoth(
      "that is or was read makes no body",
      async (make) => {
        const [locked, read] = [streamOf(), streamOf(encode("a"))];
        locked.getReader();
        const reader = read.getReader();
        await reader.read();
        reader.releaseLock();
        return [await isRefused(() => make(locked)), await isRefused(() => make(read))];
      },
      [true, true],
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
    ...["text", 1, null, {}, buffer("a")].flatMap((part) =>
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

const entries = (form: FormData) =>
  Promise.all(
    [...form].map(async ([name, value]) =>
      typeof value === "string" ? [name, value] : [name, value.name, value.type, await value.text()],
    ),
  );

// The facts of the web platform's tests, fetch/api/body/formdata-serializing.
describe("a body of form data", () => {
  /** The body, with "B" for its boundary. */
  const serialized =
    (...added: Parameters<FormData["append"]>[]) =>
    async ({ FormData, Response }: FetchClasses) => {
      const form = new FormData();
      for (const args of added) form.append(...args);
      const response = new Response(form);
      const [, boundary] = /^multipart\/form-data; boundary=([0-9A-Za-z-]{27,70})$/.exec(
        response.headers.get("content-type") ?? "",
      ) as RegExpExecArray;
      return decode(await response.arrayBuffer())
        .split(String(boundary))
        .join("B");
    };
  const text = (name: string, value: string) =>
    `--B\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n--B--\r\n`;
  const file = (name: string, filename: string, type: string, content: string) =>
    `--B\r\nContent-Disposition: form-data; name="${name}"; filename="${filename}"\r\nContent-Type: ${type}\r\n\r\n${content}\r\n--B--\r\n`;
  const names = {
    "a\nb": "a%0D%0Ab",
    "a\rb": "a%0D%0Ab",
    "a\r\nb": "a%0D%0Ab",
    "a\n\rb": "a%0D%0A%0D%0Ab",
    'a"b': "a%22b",
  };
  const unchanged = ["a'b", "a\\b", "a%0Ab", "áb"];
  const filenames = {
    "b\nc": "b%0Ac",
    "b\rc": "b%0Dc",
    "b\r\nc": "b%0D%0Ac",
    'b"c': "b%22c",
    "b'c": "b'c",
    "ə.txt": "ə.txt",
  };
  const values = {
    "b\nc": "b\r\nc",
    "b\rc": "b\r\nc",
    "b\r\nc": "b\r\nc",
    "b\n\rc": "b\r\n\r\nc",
    'b"c': 'b"c',
    ç: "ç",
  };
  testStandard([
    ["is empty for an empty form", serialized(), "--B--\r\n"],
    [
      "has the entries in their order",
      serialized(["a", "1"], ["b", "2"], ["a", "3"]),
      [
        ["a", "1"],
        ["b", "2"],
        ["a", "3"],
      ]
        .map(([name, value]) => `--B\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`)
        .concat("--B--\r\n")
        .join(""),
    ],
    [
      "has a file",
      serialized(["a", new File(["text"], "b.txt", { type: "text/x" })]),
      file("a", "b.txt", "text/x", "text"),
    ],
    [
      "has a file without a type",
      serialized(["a", new File(["x"], "b")]),
      file("a", "b", "application/octet-stream", "x"),
    ],
    ["has a Blob", serialized(["a", new Blob([], { type: "text/x" })]), file("a", "blob", "text/x", "")],
    [
      "has a Blob with a file name",
      serialized(["a", new Blob(["x"]), "b"]),
      file("a", "b", "application/octet-stream", "x"),
    ],
    ...Object.entries({ ...names, ...Object.fromEntries(unchanged.map((name) => [name, name])) }).map(
      ([name, shown]): StandardCase => [
        `has the name ${JSON.stringify(name)}`,
        serialized([name, "x"]),
        text(shown, "x"),
      ],
    ),
    ...Object.entries(filenames).map(
      ([name, shown]): StandardCase => [
        `has the file name ${JSON.stringify(name)}`,
        serialized(["a", new File(["x"], name, { type: "text/x" })]),
        file("a", shown, "text/x", "x"),
      ],
    ),
    ...Object.entries(values).map(
      ([value, shown]): StandardCase => [
        `has the value ${JSON.stringify(value)}`,
        serialized(["a", value]),
        text("a", shown),
      ],
    ),
    [
      "has another boundary each time",
      ({ FormData, Response }) => {
        const types = [1, 2].map(() => new Response(new FormData()).headers.get("content-type"));
        return new Set(types).size;
      },
      2,
    ],
    [
      "is read as the form that it was made of",
      async ({ FormData, Response }) => {
        const form = new FormData();
        form.append("a", "1");
        form.append("a", "2\r\n3");
        form.append("b", new File(["text"], "b.txt", { type: "text/x" }));
        form.append("c", new Blob(["more"]));
        const read = await new Response(form).formData();
        return [await entries(read), read instanceof FormData];
      },
      [
        [
          ["a", "1"],
          ["a", "2\r\n3"],
          ["b", "b.txt", "text/x", "text"],
          ["c", "blob", "application/octet-stream", "more"],
        ],
        true,
      ],
    ],
    [
      "is a form of other classes too",
      async ({ Request }) => {
        const form = new globalThis.FormData();
        form.append("a", "1");
        return entries(await new Request("https://a.example/", { method: "POST", body: form }).formData());
      },
      [["a", "1"]],
    ],
  ]);
});
