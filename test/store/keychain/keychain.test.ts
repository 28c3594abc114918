import { describe, expect, it } from "vitest";
import { keychainError, limitKeychain } from "../../../src/store/keychain/keychain.js";
import { heldError } from "../../helpers/told.js";

describe("a keychain without a time limit", () => {
  const never = () => new Promise<never>(() => undefined);

  it("times out", async () => {
    const limited = limitKeychain({ get: never, set: never }, 20);
    expect(await heldError(limited.get())).toMatchObject({
      code: "store_failed",
      message: "the keychain did not answer within 0.02 s",
    });
    expect(await heldError(limited.set("x"))).toMatchObject({ code: "store_failed" });
  });

  it("answers as it did", async () => {
    const written: string[] = [];
    const limited = limitKeychain({ get: async () => "x", set: async (value) => void written.push(value) });
    expect(await limited.get()).toBe("x");
    await limited.set("y");
    expect(written).toEqual(["y"]);
  });
});

describe("what a keychain throws", () => {
  it("becomes an error of ours, once", () => {
    const cause = new Error("no");
    const error = keychainError(cause);
    expect(error).toMatchObject({
      code: "store_failed",
      class: "store",
      message: expect.stringContaining('"no"'),
      cause,
    });
    expect(keychainError(error)).toBe(error);
  });
});
