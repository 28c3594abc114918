import { describe, expect, it } from "vitest";
import { coversServer, parseMcpUrl, resourceParameter } from "../../../src/oauth/model/resource.js";

describe("parseMcpUrl", () => {
  it.each([
    ["https://mcp.example/mcp", "https://mcp.example/mcp"],
    ["HTTPS://MCP.Example/Mcp", "https://mcp.example/Mcp"],
    ["https://mcp.example", "https://mcp.example"],
    ["https://mcp.example/", "https://mcp.example"],
    ["https://mcp.example:443/mcp", "https://mcp.example/mcp"],
    ["https://mcp.example:8443/mcp", "https://mcp.example:8443/mcp"],
    ["https://mcp.example/mcp/", "https://mcp.example/mcp/"],
    ["https://mcp.example/mcp?team=a", "https://mcp.example/mcp?team=a"],
    ["https://mcp.example/mcp#part", "https://mcp.example/mcp"],
    ["https://mcp.example/mcp?", "https://mcp.example/mcp"],
    ["https://mcp.example/?", "https://mcp.example"],
    ["https://mcp.example/?team=a", "https://mcp.example/?team=a"],
    ["http://127.0.0.1:3000/mcp", "http://127.0.0.1:3000/mcp"],
  ])("[21] names %s canonically, whatever the case, without fragment or idle slash (2025-06-18)", (value, resource) => {
    expect(parseMcpUrl(value).resource).toBe(resource);
  });

  it.each([
    ["mcp.example/mcp", 'has no scheme; did you mean "https://mcp.example/mcp"?'],
    ["", "is not an absolute URL such as https://mcp.example/mcp"],
    ["ftp://mcp.example/", "must begin with https://"],
    ["javascript:alert(1)", "must begin with https://"],
    ["http://mcp.example/mcp", "must begin with https:// (http:// only for this machine)"],
  ])("refuses %s and says why", (value, why) => {
    expect(() => parseMcpUrl(value)).toThrow(new TypeError(`the MCP server's address "${value}" ${why}`));
  });

  it("keeps the whole address for requests, and only its identity for the resource", () => {
    expect(parseMcpUrl("https://MCP.example/?#part")).toEqual({
      url: "https://mcp.example/",
      resource: "https://mcp.example",
      loopback: false,
    });
  });

  it.each(["ftp://me:secret@mcp.example", "http://:secret@mcp.example", "https://me@mcp.example"])(
    "does not show the password in %s",
    (url) => {
      expect(() => parseMcpUrl(url)).toThrow("must not contain a user name or password");
    },
  );

  it("refuses a user name or password, and does not show it", () => {
    expect(() => parseMcpUrl("https://user:canary-password@mcp.example/")).toThrow(
      new TypeError("the MCP server's address must not contain a user name or password"),
    );
  });

  it.each([
    ["http://localhost:1/", true],
    ["http://[::1]:1/", true],
    ["https://127.9.9.9/", true],
    ["https://mcp.example/", false],
    ["https://127.0.0.1.example/", false],
  ])("knows whether %s is this machine: %s", (value, loopback) => {
    expect(parseMcpUrl(value).loopback).toBe(loopback);
  });
});

describe("coversServer", () => {
  const server = "https://mcp.example/team/mcp";

  it.each<[string, string, boolean, boolean]>([
    ["https://mcp.example/team/mcp", server, true, true],
    ["https://mcp.example/team/mcp/", server, true, false],
    ["https://mcp.example/team/mcp?", server, true, false],
    ["https://mcp.example/team/mcp", "https://mcp.example/team/mcp/", true, false],
    ["https://mcp.example/team/mcp", "https://mcp.example/team/mcp?", true, false],
    ["https://MCP.example:443/team/mcp", server, true, true],
    ["https://mcp.example/team", server, true, false],
    ["https://mcp.example/team/", server, true, false],
    ["https://mcp.example", server, true, false],
    ["https://mcp.example/", server, true, false],
    ["https://mcp.example/team/mc", server, false, false],
    ["https://mcp.example/tea", server, false, false],
    ["https://mcp.example/team/mcp/deeper", server, false, false],
    ["https://mcp.example/other", server, false, false],
    ["https://mcp.example/team?x=1", server, false, false],
    ["https://mcp.example:8443/team/mcp", server, false, false],
    ["http://mcp.example/team/mcp", server, false, false],
    ["https://evil.example/team/mcp", server, false, false],
    ["https://sub.mcp.example/team/mcp", server, false, false],
    ["https://mcp.example", "https://mcp.example/", true, true],
    ["https://mcp.example/mcp", "https://mcp.example/mcp?x=1", true, false],
    ["https://mcp.example/mcp?x=1", "https://mcp.example/mcp?x=1", true, true],
  ])("%s for %s: %s, and %s where it must be the very address", (resource, requested, covers, strictly) => {
    expect(coversServer(new URL(resource), new URL(requested), false)).toBe(covers);
    expect(coversServer(new URL(resource), new URL(requested), true)).toBe(strictly);
  });
});

it("the parameter resource is sent unless there is none", () => {
  expect([undefined, "none", "https://mcp.example"].map(resourceParameter)).toEqual([
    {},
    {},
    { resource: "https://mcp.example" },
  ]);
});
