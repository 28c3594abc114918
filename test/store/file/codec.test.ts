import { expect, it } from "vitest";
import { Secret } from "../../../src/redact.js";
import { decodeGrant, encodeGrant } from "../../../src/store/file/codec.js";
import { madeGrant } from "../../helpers/grant.js";

it("writes the value of a secret whose class is another copy of ours", () => {
  class OtherSecret {
    readonly #value = "a secret";
    reveal() {
      return this.#value;
    }
    toJSON() {
      return "********";
    }
  }
  const grant = madeGrant();
  const proofKey = new OtherSecret() as unknown as Secret;
  const read = decodeGrant(encodeGrant({ ...grant, proofKey }));
  expect(read.proofKey).toBeInstanceOf(Secret);
  expect(read.proofKey?.reveal()).toBe("a secret");
});
