import { expect, it } from "vitest";
import { newLoginId } from "../../../../src/cli/commands/login/two-step-login.js";

it("begins no id of a login with a dash, which the parser reads as a flag", () => {
  const [dashes, others] = [Buffer.from("-zr1_oJ5gMZa", "base64url"), Buffer.alloc(9, 7)];
  expect(dashes.toString("base64url")).toMatch(/^-/);
  expect([newLoginId(dashes), newLoginId(others)]).toEqual(["_zr1_oJ5gMZa", "BwcHBwcHBwcH"]);
});
