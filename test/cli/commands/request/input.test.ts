import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type RequestFlags, readRequest } from "../../../../src/cli/commands/request/run.js";
import { temporaryFolder } from "../../../helpers/cli.js";
import { failureOf, memoryContext } from "./support.js";

const URL_ = "https://mcp.example/mcp";
const read = (flags: Partial<RequestFlags>, stdin = "") =>
  readRequest({ url: URL_, ...flags }, memoryContext({ stdin }));

const bytesOf = (body = new Uint8Array()) => Buffer.from(body);

describe("a request by its flags", () => {
  it("is a GET, and with a body a POST, unless a method is given", async () => {
    expect(await read({})).toMatchObject({ url: URL_, method: "GET" });
    expect("body" in (await read({}))).toBe(false);
    expect((await read({ data: "" })).method).toBe("POST");
    expect((await read({ data: "x", method: "put" })).method).toBe("PUT");
    expect((await read({ method: "patch" })).method).toBe("PATCH");
  });

  it.each([
    ["JSON", '{"a":1}', "application/json"],
    ["a number", "5", "application/json"],
    ["another text", "a=b", "text/plain;charset=utf-8"],
    ["nothing", "", "text/plain;charset=utf-8"],
  ])("says of %s what it is", async (_what, data, type) => {
    expect((await read({ data })).headers.get("content-type")).toBe(type);
  });

  it("takes the headers that are given before its own", async () => {
    const { headers } = await read({
      data: "{}",
      header: ["Content-Type: a/b", "accept:text/plain", "X-A: 1", "x-a:  two: 3 ", "X-Empty:"],
    });
    expect([...headers].filter(([name]) => name !== "user-agent")).toEqual([
      ["accept", "text/plain"],
      ["content-type", "a/b"],
      ["x-a", "1, two: 3"],
      ["x-empty", ""],
    ]);
    expect((await read({})).headers.get("accept")).toBe("application/json, text/event-stream, */*;q=0.5");
  });

  it("takes a body from a file and from standard input, byte by byte", async () => {
    const path = join(temporaryFolder(), "body");
    writeFileSync(path, Uint8Array.of(0, 255, 10, 13));
    const { body, headers } = await read({ data: `@${path}` });
    expect([...bytesOf(body)]).toEqual([0, 255, 10, 13]);
    expect(headers.get("content-type")).toBe("application/octet-stream");
    for (const data of ["-", "@-"]) {
      expect(bytesOf((await read({ data }, "grüße\n")).body).toString()).toBe("grüße\n");
    }
  });

  it.each<[string, Partial<RequestFlags>, string]>([
    ["an address with a fragment", { url: "https://mcp.example/mcp#x" }, "fragment"],
    ["an address with an empty fragment", { url: "https://mcp.example/mcp#" }, "fragment"],
    ["an address with a password", { url: "https://a:secret@mcp.example/mcp" }, "user name or password"],
    ["an address off this machine without TLS", { url: "http://mcp.example/mcp" }, "https://"],
    ["a method that is none", { method: "A B" }, "--method"],
    ["a method that echoes the token", { method: "trace" }, "TRACE"],
    ["a GET with a body", { method: "get", data: "x" }, "no body"],
    ["a file that is not there", { data: "@/nowhere/at/all" }, "ENOENT"],
    ["a folder for a file", { data: "@/" }, "EISDIR"],
    ["a header without a colon", { header: ["Accept"] }, "name: value"],
    ["a header without a name", { header: [": x"] }, "name: value"],
    ["a blank before the colon", { header: ["Accept : x"] }, "name: value"],
    ["a header of its own behind a line break", { header: ["X-A: b\r\nX-C: d"] }, "X-A"],
    ["a line break in a name", { header: ["X\n-A: b"] }, "name: value"],
    ["a NUL in a header", { header: ["X-A: \0"] }, "X-A"],
    ["a character that is no byte", { header: ["X-A: €"] }, "X-A"],
  ])("is refused for %s", async (_what, flags, part) => {
    expect(await failureOf(read(flags))).toMatchObject({
      code: "usage",
      class: "usage",
      message: expect.stringContaining(part),
    });
  });

  it.each(["Authorization: Bearer s3cret-1", "AUTHORIZATION:Basic s3cret-1", "authorization Bearer s3cret-1"])(
    "is refused for a token of one's own, which is not shown",
    async (header) => {
      const error = await failureOf(read({ header: [header] }));
      expect(error).toMatchObject({ class: "usage", message: expect.stringMatching(/authorization/i) });
      expect(JSON.stringify(error)).not.toContain("s3cret-1");
    },
  );
});
