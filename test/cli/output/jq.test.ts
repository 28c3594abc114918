import { expect, it } from "vitest";
import { isJqInstalled, jqFilter, printResults, refuseJqWith } from "../../../src/cli/output/jq.js";
import { createMemoryIo } from "../../helpers/memory-io.js";

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

it("loads jq once", async () => {
  let loads = 0;
  const filter = jqFilter(".", async () => {
    loads++;
    return { json: (input) => [input] };
  });
  expect([await filter("1"), await filter("2"), loads, isJqInstalled()]).toEqual([["1"], ["2"], 1, true]);
});

it.each(["csv", "id"] as const)("is refused with -o %s", (format) => {
  expect(() => refuseJqWith(format)).toThrow(
    expect.objectContaining({
      ...{ code: "usage", message: `--jq does not work with -o ${format}` },
      hint: "use -o json (the expression runs on the whole array) or -o ndjson (it runs on each item)",
    }),
  );
});

it("prints nothing for no results", async () => {
  const io = createMemoryIo();
  await printResults([], io);
  await printResults(["", 1], io);
  expect(io.out()).toBe("\n1\n");
});
