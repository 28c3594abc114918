import { expect, it } from "vitest";
import { jqFilter } from "../../../src/cli/output/jq.js";

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
