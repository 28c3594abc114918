import { describe } from "vitest";
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
