import { parse } from "jsonc-parser";
import { describe, expect, it } from "vitest";
import { changeServer, merged, serversIn } from "../../../../src/cli/clients/hosts.js";
import { fc } from "../../../helpers/properties.js";

const ENTRY = { command: "agentauth", args: ["mcp", "proxy", "https://mcp.example/mcp"] };
const KEY = "mcpServers";

/** Spaces, line breaks and comments, as they can be between any two words of JSON. */
const gap = fc
  .array(fc.constantFrom(" ", "\t", "\n", "\r\n", '/* a, "b": {} */', "// c, }\n", "/* d\n */"), { maxLength: 3 })
  .map((parts) => parts.join(""));
const value = fc.constantFrom("1", '"x,}"', "null", "[1, {}]", '{"url": "https://a.example"}', "{ }");

/** An object as text, with a comma after its last member or without one. */
function objectText(members: fc.Arbitrary<readonly string[]>): fc.Arbitrary<string> {
  return fc
    .tuple(members, fc.array(gap, { minLength: 14, maxLength: 14 }), fc.boolean())
    .map(([all, gaps, isClosed]) => {
      const lines = all.map((member, at) => gaps[2 * at] + member + gaps[2 * at + 1]);
      const comma = isClosed && all.length > 0 ? `,${gaps[12]}` : "";
      return `{${lines.join(",")}${comma}${gaps[13]}}`;
    });
}

const servers = objectText(
  fc
    .uniqueArray(fc.constantFrom("a", "b", "c"), { maxLength: 3 })
    .chain((names) => fc.tuple(...names.map((name) => value.map((one) => `"${name}": ${one}`)))),
);
const settings = fc
  .tuple(fc.option(servers, { nil: undefined }), fc.boolean(), fc.boolean())
  .chain(([own, isBefore, isAfter]) => {
    const all = [
      isBefore ? ['"first": 1'] : [],
      own === undefined ? [] : [`"mcpServers": ${own}`],
      isAfter ? ['"last": [2]'] : [],
    ];
    return fc.tuple(gap, objectText(fc.constant(all.flat())), gap).map((parts) => parts.join(""));
  });

const commentsOf = (text: string) => text.match(/\/\*[\s\S]*?\*\/|\/\/ c, \}/g);
/** Whether a text has the characters of another one in their order. */
function has(longer: string, shorter: string): boolean {
  let at = 0;
  for (const character of shorter) {
    at = longer.indexOf(character, at) + 1;
    if (at === 0) return false;
  }
  return true;
}

it("a server is added, updated and removed again, and nothing else changes", () => {
  fc.assert(
    fc.property(settings, (text) => {
      const added = changeServer(KEY, text, "own", ENTRY);
      expect(serversIn(KEY, added)["own"]).toEqual(ENTRY);
      expect([commentsOf(added), has(added, text.replace(/\s/g, ""))]).toEqual([commentsOf(text), true]);
      const updated = changeServer(KEY, added, "own", { ...ENTRY, env: { A: "b" } });
      expect(commentsOf(updated)).toEqual(commentsOf(text));
      const removed = changeServer(KEY, updated, "own", undefined);
      const { mcpServers = {}, ...rest } = parse(text);
      expect([parse(removed), commentsOf(removed)]).toEqual([{ ...rest, mcpServers }, commentsOf(text)]);
    }),
    { numRuns: 300 },
  );
});

const OWN = '"own": {\n    "command": "x"\n  }';

describe("a server is written", () => {
  it.each([
    ["into no text", "", '{\n  "mcpServers": {\n    "own": {\n      "command": "x"\n    }\n  }\n}\n'],
    [
      "into settings without servers",
      "{\r\n}",
      '{\r\n  "mcpServers": {\r\n    "own": {\r\n      "command": "x"\r\n    }\r\n  }\r\n}',
    ],
    ["into no servers", '{"mcpServers": {}}', `{"mcpServers": {\n  ${OWN}\n}}`],
    ["before the others", '{"mcpServers": {"a": 1, }, "b": 2}', `{"mcpServers": {\n  ${OWN},"a": 1, }, "b": 2}`],
    [
      "in the place of another value",
      '{"mcpServers": {"a": 1, "own": [1] /* x */}}',
      `{"mcpServers": {"a": 1, "own": {\n  "command": "x"\n} /* x */}}`,
    ],
  ])("%s", (_what, text, expected) => {
    expect(changeServer(KEY, text, "own", { command: "x" })).toBe(expected);
  });
});

describe("a server is removed", () => {
  it.each([
    ['{"mcpServers": {"own": 1}}', '{"mcpServers": {}}'],
    ['{"mcpServers": {"a": 1, "own": 2}}', '{"mcpServers": {"a": 1 }}'],
    ['{"mcpServers": {"own": 2, "a": 1}}', '{"mcpServers": { "a": 1}}'],
    [
      '{\n  "mcpServers": {\n    "a": {}, // x\n    "own": {}, // y\n    /* z */\n  },\n}\n',
      '{\n  "mcpServers": {\n    "a": {}, // x\n    /* z */\n  },\n}\n',
    ],
    [
      '{\n  "mcpServers": {\n    "a": {}, // x\n    "own": {}\n  }\n}\n',
      '{\n  "mcpServers": {\n    "a": {} // x\n  }\n}\n',
    ],
    ['{"a": 1}', '{"a": 1}'],
  ])("from %j", (text, expected) => {
    expect(changeServer(KEY, text, "own", undefined)).toBe(expected);
  });
});

it.each([
  ["[]", "the settings must be an object", 1],
  ['{\n"mcpServers": []}', '"mcpServers" must be an object', 2],
  ['{"mcpServers": null}', '"mcpServers" must be an object', 1],
  ['{"a": 1,\n"a": 2}', 'the key "a" is there twice', 2],
  ['{"mcpServers": {"a": 1,\n\n"a": 2}}', 'the key "a" is there twice', 3],
  ['{\n "a": 1\n "b": 2\n}', "it is not valid JSON", 3],
])("%j has no servers that can be read", (text, message, line) => {
  for (const read of [() => serversIn(KEY, text), () => changeServer(KEY, text, "own", {})])
    expect(read).toThrow(`${message}, in line ${line}`);
});

it.each<[unknown, object, object]>([
  [{ a: 1, b: 2 }, { a: 2 }, { a: 2, b: 2 }],
  [{ env: { MINE: "1", A: "2" } }, { env: { A: "3" } }, { env: { MINE: "1", A: "3" } }],
  [1, { a: 1 }, { a: 1 }],
  [{ env: 5 }, { env: { A: "1" } }, { env: { A: "1" } }],
])("%j with the values %j is %j", (stored, entry, expected) => {
  expect(merged(stored, entry as never)).toEqual(expected);
});
