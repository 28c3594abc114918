import { describe, expect, it } from "vitest";
import { countText, valueText } from "../../../src/cli/output/value.js";
import { print, TERMINAL } from "./printing.js";

const AT = "2026-01-01T01:00:00.000Z";
const terminal = { reveal: false, now: () => Date.parse("2026-01-01T00:18:30Z") };

describe("a time that came as text", () => {
  it("is relative for a user, and as it was elsewhere", () => {
    expect(valueText("expires_at", AT, "time", terminal)).toBe("in 41 minutes");
    expect(valueText("expires_at", AT, "time", { reveal: false })).toBe(AT);
  });

  it("stays what it is where it is no time, or not the value of such a column", () => {
    expect(valueText("expires_at", "soon", "time", terminal)).toBe("soon");
    expect(valueText("title", AT, "text", terminal)).toBe(AT);
  });
});

it.each([
  [0, "0 devices"],
  [1, "1 device"],
  [999, "999 devices"],
  [1000, "1,000 devices"],
  [1234567, "1,234,567 devices"],
])("the count %i has its noun, and its thousands apart", (count, expected) => {
  expect(countText(count, "device")).toBe(expected);
});

describe("a list of values", () => {
  it.each<[string, unknown, string | undefined, string]>([
    ["of texts and numbers", ["a", 1, true], ", ", "a, 1, true"],
    ["of nothing", [], ", ", ""],
    ["of objects", [{ a: 1 }, "b"], ", ", '[{"a":1},"b"]'],
    ["of lists", [["a"], ["b"]], ", ", '[["a"],["b"]]'],
    ["without a separator", ["a", "b"], undefined, '["a","b"]'],
    ["that is an object", { a: [1] }, ", ", '{"a":[1]}'],
  ])("%s is a text", (_what, value, listSeparator, text) => {
    const style = { reveal: false, ...(listSeparator !== undefined && { listSeparator }) };
    expect(valueText("scopes", value, undefined, style)).toBe(text);
  });
});

describe("a name", () => {
  const columns = [
    { path: "server", header: "SERVER", kind: "name" },
    { path: "issuer", header: "ISSUER" },
  ] as const;
  const flags = { columns, wideColumns: columns, fields: ["server", "issuer"] };
  const item = { server: "https://mcp.example/mcp", issuer: "https://issuer.example/pool" };

  it("is never cut: what is beside it is, and where it has no room come records", async () => {
    const table = await print("table", [item], { io: { ...TERMINAL, columns: 40 }, flags });
    expect(table.out).toBe(`SERVER                   ISSUER\n${item.server}  https://issuer…\n`);
    const records = await print("table", [item], { io: { ...TERMINAL, columns: 25 }, flags });
    expect(records.out).toBe(`server: ${item.server}\nissuer: ${item.issuer}\n`);
  });
});
