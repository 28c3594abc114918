import { describe, expect, it } from "vitest";
import { grantTags, nameIn, sealedName, splitSummary } from "../../../src/store/driver/tenant-records.js";

const nameOf = async (...parts: string[]) => parts.join(" ");

// What an engine holds, which other versions of this program read.
describe("the tags of a grant", () => {
  const profile = { profile: "ann" };
  const server = { server: "https://mcp.example" };
  const issuer = { issuer: "https://as.example" };
  const one = { profile: "tag profile ann" };
  const other = { server: "tag server https://mcp.example" };

  it.each<[string, Parameters<typeof grantTags>[1], Record<string, string>]>([
    ["nothing", {}, {}],
    ["a profile", profile, one],
    ["a server", server, other],
    ["both", { ...profile, ...server }, { ...one, ...other, login: "tag login ann https://mcp.example" }],
    ["an issuer", issuer, { issuer: "tag issuer https://as.example" }],
    ["a login that is needed", { state: "needs_login" }, { state: "tag state needs_login" }],
    ["a refresh that was lost", { state: "lost_refresh" }, { state: "tag state lost_refresh" }],
    ["a state that a clock decides", { state: "expired" }, {}],
  ])("are named by %s", async (_what, query, expected) => {
    expect(await grantTags(nameOf, query)).toEqual(expected);
  });
});

describe("what is stored of a record", () => {
  it("has the name of its partition", async () => {
    const sealing = { nameOf: async (text: string) => `<${text}>` };
    expect(await nameIn(sealing, "p", ["grant", undefined, "x"])).toBe('<["p","grant",null,"x"]>');
    expect(sealedName({ kind: "grant", partition: "p", id: "i" })).toBe("grant:p:i");
  });

  it.each([
    ["3:sumvalue", { summary: "sum", value: "value" }],
    ["12:twelve chars", { summary: "twelve chars", value: "" }],
    ["{3:}", { value: "{3:}" }],
    ["3", { value: "3" }],
    ["", { value: "" }],
  ])("is divided: %j", (stored, parts) => {
    expect(splitSummary(stored)).toEqual(parts);
  });
});
