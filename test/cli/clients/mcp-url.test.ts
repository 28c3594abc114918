import { expect, it } from "vitest";
import { parseMcpUrlArgument } from "../../../src/cli/clients/login-first.js";

it("an address is taken as it is meant, and one that is none is a mistake of the caller", () => {
  expect(parseMcpUrlArgument("https://MCP.example:443/mcp")).toBe("https://mcp.example/mcp");
  for (const text of ["mcp.example", "http://mcp.example/mcp", "https://u:p@mcp.example/"]) {
    const expected = { code: "usage", class: "usage", cause: expect.any(TypeError) };
    expect(() => parseMcpUrlArgument(text)).toThrow(expect.objectContaining(expected));
  }
});
