import { describe, expect, it, onTestFinished, vi } from "vitest";
import { isJqInstalled, jqFilter, printResults } from "../../../src/cli/output/jq.js";
import { createWriter } from "../../../src/cli/output/writer.js";
import { runCli } from "../../helpers/cli.js";
import { createMemoryIo } from "../../helpers/memory-io.js";
import { SampleService } from "../../helpers/service.js";

it("says how to install jq-wasm where it is missing", async () => {
  const missing = Object.assign(new Error("Cannot find package 'jq-wasm'"), { code: "ERR_MODULE_NOT_FOUND" });
  await expect(jqFilter(".", () => Promise.reject(missing))("{}")).rejects.toMatchObject({
    class: "usage",
    message: expect.stringContaining("jq-wasm"),
    hint: expect.stringContaining("npm install jq-wasm@3.0.0-jq-1.8.2"),
    cause: missing,
  });
});

it("names the release of jq-wasm that this package depends on", async () => {
  const { default: manifest } = await import("../../../package.json", { with: { type: "json" } });
  expect(manifest.optionalDependencies["jq-wasm"]).toContain("3.0.0-jq-1.8.2");
});

it("says how an array comes apart where an expression takes it for an item", async () => {
  await expect(jqFilter(".id")('[{"id":"a"}]')).rejects.toMatchObject({
    message: expect.stringContaining("Cannot index array"),
    hint: expect.stringMatching(/'\.\[\] \| \.id'.*-o ndjson/),
  });
  await expect(jqFilter(".id |")("{}")).rejects.toMatchObject({ hint: expect.stringContaining("jqlang.org") });
});

/** A jq that throws. */
const throwing = (error: unknown) => async () => ({
  json: (): never => {
    throw error;
  },
});
const named = (name: string, message: string) => Object.assign(new Error(message), { name });

it.each([
  ["a wasm that aborts", named("RuntimeError", "Aborted(). Build with -sASSERTIONS for more info.")],
  ["a memory that does not grow", new RangeError("WebAssembly.Memory.grow(): Maximum memory size exceeded")],
  ["jq without memory", named("JqError", "jq: error: cannot allocate memory")],
])("is an error of its own with %s, and of the user with a wrong expression", async (_, thrown) => {
  const failed = { code: "jq_failed", class: "store", hint: expect.stringContaining("-o ndjson --jq"), cause: thrown };
  await expect(jqFilter(".", throwing(thrown))("{}")).rejects.toMatchObject(failed);
  const wrong = throwing(named("JqError", "jq: error: syntax error, unexpected end of file"));
  await expect(jqFilter(".[", wrong)("{}")).rejects.toMatchObject({ code: "usage" });
});

it("is an error of its own where the input is too long for one text", async () => {
  const tooLong = () => {
    throw new RangeError("Invalid string length");
  };
  await expect(jqFilter(".")(tooLong)).rejects.toMatchObject({ code: "jq_failed", class: "store" });
});

it("is an error of its own where the package is there and cannot be loaded", async () => {
  const broken = named("CompileError", "expected magic word");
  await expect(jqFilter(".", () => Promise.reject(broken))("{}")).rejects.toMatchObject({
    ...{ code: "jq_failed", class: "store", cause: broken },
    hint: expect.stringContaining("npm install jq-wasm@"),
  });
});

it("is an error of its own with a real jq that recurses without end", async () => {
  const said = vi.spyOn(console, "error");
  onTestFinished(() => said.mockRestore());
  const env = await new SampleService(1).listen();
  const { code, stdout, stderr } = await runCli(["devices", "list", "--pool", "p", "--jq", "def f: f | f; f"], { env });
  expect([code, stdout]).toEqual([8, ""]);
  expect(stderr).toMatch(/^error: --jq: jq failed.*Aborted.*\nhint: -o ndjson --jq /);
  expect(said).not.toHaveBeenCalled();
});

it("gives every output of every input", async () => {
  expect(await jqFilter(".a[] # each")('{"a":[1,2]}\n{"a":["x"]}')).toEqual([1, 2, "x"]);
});

it.each([
  [
    ".id",
    '[{"id":"a"}]',
    'Cannot index array with string ("id")',
    "split the array with .[] as in '.[] | .id'; a list is one array, or with -o ndjson item by item",
  ],
  [
    ".a.b",
    '{"a":1}',
    'Cannot index number with string ("b")',
    "the syntax is that of jq 1.8: https://jqlang.org/manual/v1.8/",
  ],
  ['error("a\\u001b\\nb")', "{}", "a\\u{1b}", "the syntax is that of jq 1.8: https://jqlang.org/manual/v1.8/"],
])("says what is wrong with %s", async (expression, input, message, hint) => {
  const thrown = await jqFilter(expression)(input).catch((error: unknown) => error);
  expect(thrown).toMatchObject({
    code: "usage",
    message: expect.stringContaining("--jq: "),
    hint,
    cause: expect.any(Error),
  });
  expect((thrown as Error).message).not.toMatch(/jq: error|\p{Cc}/u);
  if (expression.startsWith(".")) expect((thrown as Error).message).toBe(`--jq: ${message}`);
});

describe("a list in pages", () => {
  /** What is printed before the list has ended, and at the end. */
  async function printed(expression: string, ...pages: object[][]) {
    const io = createMemoryIo();
    const writer = createWriter("json", { columns: [], wideColumns: [], fields: [], jq: expression }, io);
    for (const items of pages) await writer.write(items);
    const before = io.out();
    await writer.end();
    return [before, io.out().slice(before.length)];
  }

  it.each([
    ".[]",
    ".[].a",
    '.[]["a"]?',
    ' .[]."a" | tostring',
    ".[] | .a, length",
    ".[] | .a |= 3 | .a",
    ".[] | [.a, (.b // 7)] | add",
  ])("is filtered page by page by %s, with the same outputs", async (expression) => {
    const [before, after] = await printed(expression, [{ a: 1 }, { a: 2 }], [{ a: 3 }]);
    expect([before, after]).toEqual([(await printed(`(${expression})`, [{ a: 1 }, { a: 2 }, { a: 3 }]))[1], ""]);
    expect(before).not.toBe("");
  });

  it.each(["map(.a)", ' map(select(.a != 2) | {a, b: (.b // ")")}) ', "map(.a, [.a, (.a | tostring)])", "map(empty)"])(
    "is one array by %s, page by page",
    async (expression) => {
      const pages = [[{ a: 1 }, { a: 2 }], [{ a: 2 }], [{ a: 3 }]];
      const [before = "", after] = await printed(expression, ...pages);
      expect(before + after).toBe((await printed(`(${expression})`, ...pages))[1]);
      expect(after).toBe(expression.includes("empty") ? "[]\n" : "]\n");
    },
  );

  it.each([
    ...["length", "map(.a) | add", "map(.a) + (1 | [.])", "map(halt)", 'map("\\(.a)")', ".[] |= .a", ".[].a, length"],
    ...[".[] as $x | length", ".[][length]?", ".[] // 1", "[.[] | .a]", ".[].a | halt"],
  ])("is filtered as a whole by %s", async (expression) => {
    expect((await printed(expression, [{ a: 1 }], [{ a: 2 }]).catch(() => [""]))[0]).toBe("");
  });

  it("is refused before jq is without memory, and filtered page by page however long it is", async () => {
    const page = Array.from({ length: 25 }, () => ({ a: "x".repeat(1024 * 1024) }));
    await expect(printed("length", page, page)).rejects.toMatchObject({
      ...{ code: "jq_failed", message: expect.stringContaining("48 MB"), hint: expect.stringContaining(".[] | …") },
    });
    expect((await printed(".[] | .a | length", page, page))[0]).toBe("1048576\n".repeat(50));
    expect((await printed("map(.a | length)", page, page))[0]).toBe(`[${Array(50).fill(1048576)}`);
  });
});

it("loads jq once", async () => {
  let loads = 0;
  const filter = jqFilter(".", async () => {
    loads++;
    return { json: (input) => [input] };
  });
  expect([await filter("1"), await filter("2"), loads, isJqInstalled()]).toEqual([["1"], ["2"], 1, true]);
});

it("prints nothing for no results", async () => {
  const io = createMemoryIo();
  await printResults([], io);
  await printResults(["", 1], io);
  expect(io.out()).toBe("\n1\n");
});
