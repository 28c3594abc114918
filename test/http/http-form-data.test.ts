import { describe } from "vitest";
import { type FetchClasses, testStandard } from "../helpers/fetch-classes.js";

const entries = (form: FormData) =>
  Promise.all(
    [...form].map(async ([name, value]) =>
      typeof value === "string" ? [name, value] : [name, value.name, value.type, await value.text()],
    ),
  );

// The facts of the web platform's tests, xhr/formdata.
describe("form data", () => {
  const filled = ({ FormData }: FetchClasses) => {
    const form = new FormData();
    for (const [name, value] of [
      ["a", "1"],
      ["b", "2"],
      ["a", "3"],
    ])
      form.append(String(name), value);
    return form;
  };
  testStandard([
    [
      "keeps its entries in their order",
      (classes) => {
        const form = filled(classes);
        const seen: unknown[] = [];
        form.forEach((value, name, all) => void seen.push([name, value, all === form]));
        return [
          [...form.entries()],
          [...form.keys()],
          [...form.values()],
          seen,
          [form.get("a"), form.getAll("a"), form.has("b"), form.get("none"), form.getAll("none"), form.has("none")],
        ];
      },
      [
        [
          ["a", "1"],
          ["b", "2"],
          ["a", "3"],
        ],
        ["a", "b", "a"],
        ["1", "2", "3"],
        [
          ["a", "1", true],
          ["b", "2", true],
          ["a", "3", true],
        ],
        ["1", ["1", "3"], true, null, [], false],
      ],
    ],
    [
      "replaces the first entry of a name, and removes the others",
      (classes) => {
        const form = filled(classes);
        form.set("a", 4);
        form.set("c", "5");
        return entries(form);
      },
      [
        ["a", "4"],
        ["b", "2"],
        ["c", "5"],
      ],
    ],
    [
      "removes all entries of a name",
      (classes) => {
        const form = filled(classes);
        form.delete("a");
        return entries(form);
      },
      [["b", "2"]],
    ],
    [
      "makes a file of a Blob",
      async ({ FormData }) => {
        const form = new FormData();
        const file = new File(["text"], "own", { type: "a/b", lastModified: 5 });
        form.append("blob", new Blob(["text"], { type: "a/b" }));
        form.append("named", new Blob(["text"]), "name");
        form.append("file", file);
        form.append("renamed", file, "name");
        const files = [...form.values()];
        return [await entries(form), files.map((value) => value instanceof File), files[2] === file];
      },
      [
        [
          ["blob", "blob", "a/b", "text"],
          ["named", "name", "", "text"],
          ["file", "own", "a/b", "text"],
          ["renamed", "name", "a/b", "text"],
        ],
        [true, true, true, true],
        true,
      ],
    ],
    [
      "converts what it is given",
      ({ FormData }) => {
        const form = new FormData();
        form.append("\ud800", null);
        form.append(1 as never, undefined);
        form.append("a", "b\udc00");
        return entries(form);
      },
      [
        ["\ufffd", "null"],
        ["1", "undefined"],
        ["a", "b\ufffd"],
      ],
    ],
    ["names no file that is text", ({ FormData }) => new FormData().append("a", "b", "c"), TypeError],
    ["is made of no element", ({ FormData }) => new FormData({}), TypeError],
    ["calls back only a function", ({ FormData }) => new FormData().forEach(1 as never), TypeError],
    ["has the name of its interface", ({ FormData }) => String(new FormData()), "[object FormData]"],
  ]);
});

describe("a urlencoded body", () => {
  const read =
    (body: unknown, type = "application/x-www-form-urlencoded") =>
    async ({ Response }: FetchClasses) =>
      entries(await new Response(body, { headers: { "content-type": type } }).formData());
  testStandard([
    [
      "is read as a form",
      read("a=1+%C3%BC&b&a=2%"),
      [
        ["a", "1 ü"],
        ["b", ""],
        ["a", "2%"],
      ],
    ],
    ["is read as a form with a charset", read("a=1", "application/X-www-form-urlencoded; charset=x"), [["a", "1"]]],
    ["is an empty form where it is absent", read(null), []],
    ["is no form with another type", read("a=1", "text/plain"), TypeError],
  ]);
});
