import { describe, expect, it } from "vitest";
import { newKeys, readKeys } from "../../src/profile/store-keys.js";

const read = (text: string) => readKeys({ read: () => text, source: "AGENTAUTH_STORE_KEYS" }, "the store");
const KEY = "A".repeat(43);

describe("store_keys", () => {
  it("is needed by a store that seals, which says how to make a key ring", () => {
    expect(() => readKeys(undefined, "the store redis")).toThrow(
      expect.objectContaining({
        code: "usage",
        message: "the store redis needs a key ring, and store_keys is not set",
        hint: "make one with agentauth store keys <path>, then set AGENTAUTH_STORE_KEYS=file:<path>; none stores logins unsealed",
      }),
    );
  });

  it("may be none, and is what newKeys() makes, each time with other keys", () => {
    expect(read("none")).toBe("none");
    expect(read(newKeys())).not.toBe("none");
    expect(newKeys()).not.toBe(newKeys());
    const key = '"[\\w-]{43}"';
    expect(newKeys()).toMatch(
      new RegExp(`^{\n  "current": "k1",\n  "keys": {\n    "k1": ${key}\n  },\n  "name_key": ${key}\n}\n$`),
    );
  });

  it("hides the text and each key", () => {
    const hidden: string[] = [];
    const text = newKeys();
    readKeys({ read: () => text, source: "x" }, "the store", (secret) => hidden.push(secret));
    const { keys, name_key } = JSON.parse(text) as { keys: Record<string, string>; name_key: string };
    expect(hidden).toEqual([text, keys["k1"], name_key]);
  });

  it.each([
    ["{", "is not valid JSON"],
    [`{"current":"k1","current":"k1"}`, "is not valid JSON"],
    ["[]", "must be a JSON object"],
    [`{"nameKey":"${KEY}"}`, 'has an unknown member "nameKey"; known are current, keys, name_key'],
    [`{"keys":{"k1":"${KEY}"},"name_key":"${KEY}"}`, "has no current: the id of the key that seals"],
    [`{"current":"k1","name_key":"${KEY}"}`, "has no keys: an object with each key by its id"],
    [`{"current":"k1","keys":[],"name_key":"${KEY}"}`, "has no keys: an object with each key by its id"],
    [`{"current":"k1","keys":{"k1":"${KEY}","k2":7},"name_key":"${KEY}"}`, 'has a key "k2" that is not a string'],
    [`{"current":"k1","keys":{"k1":"${KEY}"}}`, "has no name_key"],
  ])("as %s is refused, with the command that makes one, and without a key", (text, problem) => {
    expect(() => read(text)).toThrow(
      expect.objectContaining({
        code: "usage",
        message: `store_keys (AGENTAUTH_STORE_KEYS) ${problem}`,
        hint: "agentauth store keys <path> makes a key ring",
      }),
    );
  });

  it.each([
    [{ current: "k2", keys: { k1: KEY }, name_key: KEY }, /^store_keys \(AGENTAUTH_STORE_KEYS\): .*current/],
    [
      { current: "k1", keys: { k1: KEY }, name_key: "short" },
      /^store_keys \(AGENTAUTH_STORE_KEYS\): (?!.*nameKey).*name_key/,
    ],
  ])("names what a key ring refuses: %j", (ring, message) => {
    expect(() => read(JSON.stringify(ring))).toThrow(
      expect.objectContaining({ code: "usage", message: expect.stringMatching(message), hint: expect.any(String) }),
    );
  });
});
