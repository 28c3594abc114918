import { expect, it } from "vitest";
import { exceptionsOf } from "../../src/oauth/agent-inspection.js";
import { madeGrant } from "../helpers/grant.js";

it("lists what a login was made with, with values", () => {
  expect(exceptionsOf(madeGrant())).toEqual([]);
  const overrides = ["legacyDiscovery", "allowPrivateNetwork", "resource"];
  expect(exceptionsOf(madeGrant({ overrides, resource: "none", acceptedTokenType: "user" }))).toEqual([
    { option: "legacyDiscovery" },
    { option: "allowPrivateNetwork" },
    { option: "resource", value: "none" },
    { option: "acceptTokenType", value: "user" },
  ]);
  const grant = madeGrant();
  expect(exceptionsOf({ ...grant, namedIssuer: "https://named.example" })).toEqual([
    { option: "issuer", value: grant.issuer },
  ]);
});
