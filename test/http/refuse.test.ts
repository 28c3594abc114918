import { expect, it } from "vitest";
import { explainOverride } from "../../src/http/refuse.js";

it.each([
  ["allowPrivateNetwork", undefined, "policy.allowPrivateNetwork"],
  ["resource", "none", 'resource: "none"'],
  ["dpop", undefined, 'dpop: "auto"'],
] as const)("the hint to disable a check names the option %s and its value %s", (option, value, setting) => {
  expect(explainOverride(option, value).hint).toBe(`if you trust this server, ${setting} disables this check for it`);
});
