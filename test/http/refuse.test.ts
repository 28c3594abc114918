import { expect, it } from "vitest";
import { allowing } from "../../src/http/refuse.js";

it.each([
  ["allowPrivateNetwork", undefined, "allowPrivateNetwork"],
  ["resource", "none", 'resource: "none"'],
  ["dpop", undefined, 'dpop: "auto"'],
] as const)("the hint to disable a check names the option %s and its value %s", (option, value, setting) => {
  expect(allowing(option, value).hint).toBe(`if you trust this server, ${setting} disables this check for it`);
});
