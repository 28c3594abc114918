import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeKey, decodeName, encodeKey, encodeName, namesWith } from "../../../src/store/redis/names.js";

/** Any text, half surrogate pairs included. */
const anyText = fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units));

describe("the names of keys in Redis", () => {
  it("encode each text as another one, without what has a meaning in a key", () => {
    fc.assert(
      fc.property(anyText, (text) => {
        const name = encodeName(text);
        expect(name).toMatch(/^[\w\-.!~*'()%]*$/);
        expect(decodeName(name)).toBe(text);
      }),
    );
  });

  it("keep half of a surrogate pair apart from what a client would send for it", () => {
    expect(encodeName("\ud800")).not.toBe(encodeName("\ufffd"));
    expect(encodeName("\ud800")).not.toBe(encodeName("%ud800"));
  });

  it("of one partition have one hash tag, which is its name", () => {
    const names = namesWith("aa");
    const key = { kind: "grant", partition: "{}:\0", id: "}{" } as const;
    const { kind, partition } = key;
    const all = [names.record(key), names.records(kind, partition), names.index(kind, partition), names.lease(key)];
    all.push(names.leases(partition), names.state(partition), ...names.tags(kind, partition, { "{": "}" }));
    // The rule of Redis Cluster: what is between the first brace and the first closing one after it.
    for (const name of all) expect(/\{(.*?)\}/.exec(name)?.[1]).toBe("%7B%7D%3A%00");
    expect(new Set(all).size).toBe(all.length);
  });

  it("say what they are", () => {
    const names = namesWith("aa");
    const key = { kind: "grant", partition: "p", id: "i" } as const;
    expect([
      ...[names.records("grant", "p"), names.record(key), names.index("grant", "p"), names.lease(key)],
      ...[names.leases("p"), names.state("p"), names.partitions("grant"), names.probe, names.channel],
      ...[...names.tags("grant", "p", { t: "v" }), ...names.tags("grant", "p")],
    ]).toEqual([
      ...["aa:{p}:r:grant:", "aa:{p}:r:grant:i", "aa:{p}:i:grant", "aa:{p}:l:grant:i"],
      ...["aa:{p}:l", "aa:{p}:seq", "aa:p:grant", "aa:probe", "aa:ch"],
      ...["aa:{p}:t:grant:t=v"],
    ]);
  });

  it("of tags never run into one another", () => {
    const names = namesWith("aa");
    expect(names.tags("grant", "p", { "a=b": "c" })).not.toEqual(names.tags("grant", "p", { a: "b=c" }));
  });

  it("in a message are read again, and another message is not a change", () => {
    const key = { kind: "grant", partition: "a b\0", id: "{}" } as const;
    expect(decodeKey(encodeKey(key))).toEqual(key);
    for (const text of ["", "grant", "grant p", "GRANT p id", "grant % id", "grant p id more"]) {
      expect(decodeKey(text)).toBeUndefined();
    }
  });
});
