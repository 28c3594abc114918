import { describe, expect, it } from "vitest";
import { mimeTypeOf, serializeMimeType } from "../../src/http/multipart.js";
import { decode, type FetchClasses, type StandardCase, testStandard } from "../helpers/fetch-classes.js";

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

const lines = (...all: string[]) => all.join("\r\n");
const DISPOSITION = 'Content-Disposition: form-data; name="a"';
const FILE = `${DISPOSITION}; filename="f"`;
/** A part with these headers. */
const part = (...headers: string[]) => lines("--boundary", ...headers, "", "value", "--boundary--", "");

// The facts of the web platform's tests, fetch/api/body/formdata-parsing and fetch/api/response/response-form-data.
describe("a multipart body", () => {
  const EVERY = [20, 22, 24, 26];
  const read =
    (body: unknown, boundary = "boundary") =>
    async ({ Response }: FetchClasses) => {
      const type = boundary === "" ? "multipart/form-data" : `multipart/form-data; boundary=${boundary}`;
      return entries(await new Response(body, { headers: { "content-type": type } }).formData());
    };
  const forms: [name: string, body: string, entries: string[][], differing?: number[]][] = [
    ["a text", part(DISPOSITION), [["a", "value"]]],
    ["a file without a type", part(FILE), [["a", "f", "text/plain", "value"]]],
    ["a file with a type", part(FILE, "Content-Type: image/png"), [["a", "f", "image/png", "value"]]],
    ["a file whose type comes first", part("CONTENT-type: \t image/PNG \t", FILE), [["a", "f", "image/png", "value"]]],
    [
      "a file whose type comes twice",
      part(FILE, "Content-Type: a/b", "Content-Type: c/d"),
      [["a", "f", "c/d", "value"]],
    ],
    ["a file whose type is none", part(FILE, "Content-Type: text"), [["a", "f", "", "value"]], EVERY],
    ["a file whose type is empty", part(FILE, "Content-Type:"), [["a", "f", "", "value"]]],
    [
      "a file whose type has parameters",
      part(FILE, 'Content-Type: a/b;;x="y"'),
      [["a", "f", "a/b;x=y", "value"]],
      EVERY,
    ],
    ["an empty file name", part(`${DISPOSITION}; filename=""`), [["a", "", "text/plain", "value"]]],
    ["percent signs", part('Content-Disposition: form-data; name="a%0Ab%22%25"'), [["a%0Ab%22%25", "value"]], EVERY],
    [
      "names that are not ASCII",
      part('Content-Disposition: form-data; name="é"; filename="中文"'),
      [["é", "中文", "text/plain", "value"]],
    ],
    ["other headers", part(DISPOSITION, "X-Custom: 1", "Content-Transfer-Encoding: base64"), [["a", "value"]], EVERY],
    ["space around the name of a header", part(' Content-Disposition \t: form-data; name="a"'), [["a", "value"]]],
    ["_charset_", part('Content-Disposition: form-data; name="_charset_"'), [["_charset_", "value"]]],
    [
      "two parts of one name",
      lines("--boundary", DISPOSITION, "", "1", "--boundary", DISPOSITION, "", "", "--boundary--"),
      [
        ["a", "1"],
        ["a", ""],
      ],
    ],
    [
      "the boundary as text",
      lines("--boundary", DISPOSITION, "", "x--boundary", "y", "--boundary--"),
      [["a", "x--boundary\r\ny"]],
      EVERY,
    ],
    [
      "space after delimiters",
      lines("--boundary \t", DISPOSITION, "", "x", "--boundary-- \t", ""),
      [["a", "x"]],
      EVERY,
    ],
    ["an epilogue", `${part(DISPOSITION)}epilogue\r\n--boundary\r\n`, [["a", "value"]], [20, 22]],
    ["no part", "--boundary--\r\n", []],
  ];
  const malformed: [name: string, body: string, boundary?: string | undefined, differing?: number[]][] = [
    ["is empty", ""],
    ["begins with a preamble", `preamble\r\n${part(DISPOSITION)}`, undefined, [24, 26]],
    [
      "has junk after the last delimiter",
      lines("--boundary", DISPOSITION, "", "value", "--boundary--junk", ""),
      undefined,
      [24, 26],
    ],
    ["has a part without headers", part()],
    ["has a part without a disposition", part("Content-Type: text/plain")],
    ["has a part without a name", part("Content-Disposition: form-data")],
    ["has another disposition", part('Content-Disposition: form-data-x; name="a"')],
    ["has a header without a colon", part('Content-Disposition form-data; name="a"')],
    ["has a header name that is no token", part(DISPOSITION, "Cont ent-Type: text/plain")],
    ["has a folded header", part("Content-Disposition: form-data;", ' name="a"')],
    ["has a NUL in a header", part(DISPOSITION, "X-Custom: a\0b"), undefined, EVERY],
    ["has a line feed in a name", part('Content-Disposition: form-data; name="a\nb"')],
    ["has a carriage return in a name", part('Content-Disposition: form-data; name="a\rb"')],
    ["has a line feed in a header", part(FILE, "Content-Type: text/\nhtml")],
    ["does not end", lines("--boundary", DISPOSITION, "", "value")],
    ["ends inside a line", lines("--boundary", DISPOSITION, "", "value--boundary--", "")],
    ["ends after its first delimiter", "--boundary"],
    ["ends after its first line", "--boundary\r\n"],
    ["has a boundary twice in a line", "--boundary--boundary--\r\n", undefined, [24, 26]],
    ["has a line feed after a delimiter", "--boundary\n--boundary--\r\n"],
    ["has text after a delimiter", lines("--boundary x", DISPOSITION, "", "value", "--boundary--"), undefined, EVERY],
    ["has text before the line end of its last delimiter", "--boundary-- x\r\n", undefined, EVERY],
    ["has dashes after a delimiter", "--boundary- ---boundary--\r\n"],
    ["has the boundary that another has", "--boundary--\r\n", "boundary--"],
    ["has no boundary", part(DISPOSITION), ""],
    ["has an empty boundary", lines("--", DISPOSITION, "", "value", "----", ""), '""'],
  ];
  testStandard([
    ...forms.map(
      ([name, body, expected, differing = []]): StandardCase => [`may have ${name}`, read(body), expected, differing],
    ),
    ...malformed.map(
      ([name, body, boundary, differing = []]): StandardCase => [
        `is none that ${name}`,
        read(body, boundary),
        TypeError,
        differing,
      ],
    ),
    [
      "may have a quoted boundary",
      read(lines("--a.b(c)", DISPOSITION, "", "value", "--a.b(c)--"), '"a.b(c)"'),
      [["a", "value"]],
    ],
    [
      "may have bytes that are not UTF-8",
      async ({ Response }) => {
        const body = new Blob([
          `--boundary\r\n${FILE}\r\n\r\n`,
          new Uint8Array([0, 128, 255, 13, 10, 45, 45]),
          "\r\n--boundary--",
        ]);
        const form = await new Response(body, {
          headers: { "content-type": "multipart/form-data; boundary=boundary" },
        }).formData();
        const file = form.get("a") as File;
        return [...new Uint8Array(await file.arrayBuffer())];
      },
      [0, 128, 255, 13, 10, 45, 45],
    ],
    [
      "may have text that is not UTF-8",
      read(new Blob([`--boundary\r\n${DISPOSITION}\r\n\r\nb`, new Uint8Array([255]), "\r\n--boundary--"])),
      [["a", "b\ufffd"]],
    ],
  ]);
});

describe("the media type of a header", () => {
  it.each<[string | null, string]>([
    [null, ""],
    ["", ""],
    ["text", ""],
    ["text/", ""],
    ["/plain", ""],
    ["te xt/plain", ""],
    ["text/pl ain", ""],
    ["Text/Plain", "text/plain"],
    ["\t text/plain \n", "text/plain"],
    ["text/plain;charset=UTF-8", "text/plain;charset=UTF-8"],
    ["text/plain; CHARSET=utf-8 \t ", "text/plain;charset=utf-8"],
    ["text/plain;a=1;A=2", "text/plain;a=1"],
    ["text/plain;a=;b", "text/plain"],
    ['text/plain;a=""', 'text/plain;a=""'],
    ['text/plain;a="b\\"c\\\\";d=1', 'text/plain;a="b\\"c\\\\";d=1'],
    ['text/plain;a="b;c"junk;d=1', 'text/plain;a="b;c";d=1'],
    ['text/plain;a="b', "text/plain;a=b"],
    ["text/plain;a b=1;c=2", "text/plain;c=2"],
    ["text/plain;a=\u20ac", "text/plain"],
    ["text/plain;a=\u00e9", 'text/plain;a="\u00e9"'],
    ["text/plain, */*", "text/plain"],
    ["text/plain, text", "text/plain"],
    ["text/plain;charset=a, text/html", "text/html"],
    ["text/plain;charset=a, text/plain", "text/plain;charset=a"],
    ["text/plain;charset=a, text/plain;b=1", "text/plain;b=1;charset=a"],
    ["text/plain;charset=a, text/plain;charset=b", "text/plain;charset=b"],
    ['text/plain;a="b,c"', 'text/plain;a="b,c"'],
  ])("%j is %j", (header, type) => expect(serializeMimeType(mimeTypeOf(header))).toBe(type));
});
