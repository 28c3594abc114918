import { parse } from "jsonc-parser";
import { parse as parseToml } from "smol-toml";
import { describe, expect, it } from "vitest";
import { parse as parseYaml } from "yaml";
import { changeServer, hasValues, serversIn } from "../../../../src/cli/clients/mcp-hosts/edit.js";
import type { McpHost } from "../../../../src/cli/clients/mcp-hosts/host.js";
import { MCP_HOSTS } from "../../../../src/cli/clients/mcp-hosts/hosts.js";
import { originOf, printableUrl } from "../../../../src/cli/commands/mcp/hosts/entry.js";
import { fc } from "../../../helpers/properties.js";

const ENTRY = { command: "agentauth", args: ["mcp", "proxy", "https://mcp.example/mcp"] };

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

describe("a change of settings with comments", () => {
  const host = MCP_HOSTS["cursor"];
  if (host === undefined) throw new Error("there is no such host");

  it("adds a server and removes it again, and changes nothing else", async () => {
    await fc.assert(
      fc.asyncProperty(settings, async (text) => {
        const added = await changeServer(host, text, { name: "own", entry: ENTRY });
        expect((await serversIn(host, added))["own"]).toEqual(ENTRY);
        expect(commentsOf(added)).toEqual(commentsOf(text));
        const updated = await changeServer(host, added, { name: "own", entry: { ...ENTRY, env: { A: "b" } } });
        const removed = await changeServer(host, updated, { name: "own" });
        const { mcpServers = {}, ...rest } = parse(text);
        expect(parse(removed)).toEqual({ ...rest, mcpServers });
      }),
      { numRuns: 300 },
    );
  });
});

/** Parts of a file, in any order. */
const PARTS = {
  codex: {
    parts: [
      '# a\n[mcp_servers.a] # b\ncommand = "x"\n',
      "[first]\nz = 1\n\n# my notes on the next table\n",
      '[mcp_servers.b]\nargs = [\n  "[c]", # d\n]\n\n[mcp_servers.b.env]\nA = "b"\n',
      "[other]\nx = '''\n[y]\n'''\n",
      "\n\n# e\n",
      "[[list]]\ny = 1\n",
    ],
    parse: (text: string) => JSON.parse(JSON.stringify(parseToml(text))),
    key: "mcp_servers",
  },
  goose: {
    parts: [
      "# a\nfirst: 1 # b\n",
      "text: |\n  extensions:\n    own: 1\n\n",
      'extensions:\n  # c\n  a:\n    cmd: "x # y"\n  b: {c: 1} # d\n',
      "\n# e\n",
      "list:\n- a\n- b: >-\n    c\n",
    ],
    parse: (text: string) => parseYaml(text) ?? {},
    key: "extensions",
  },
} as const;

describe.each(["codex", "goose"] as const)("a change of the settings of %s", (name) => {
  const { parts, parse: parseText, key } = PARTS[name];
  const host = MCP_HOSTS[name];
  if (host === undefined) throw new Error("there is no such host");

  it("adds a server and removes it again, and leaves every other line", async () => {
    const eol = fc.constantFrom("\n", "\r\n");
    await fc.assert(
      fc.asyncProperty(fc.shuffledSubarray([...parts]), eol, async (chosen, lineBreak) => {
        const text = chosen.join("").replaceAll("\n", lineBreak);
        const entry = host.proxy("own", { ...ENTRY, env: { A: "b" } });
        const added = await changeServer(host, text, { name: "own", entry });
        for (const line of text.split(/(?<=\n)/)) expect(added).toContain(line);
        expect(parseText(added)[key].own).toEqual(entry);
        const after = `${added}# f${lineBreak}`;
        const updated = await changeServer(host, after, { name: "own", entry: { ...entry, args: ["x"] } });
        expect(parseText(updated)).toEqual({
          ...parseText(added),
          [key]: { ...parseText(added)[key], own: { ...entry, args: ["x"] } },
        });
        for (const line of `${text}# f`.split(/(?<=\n)/)) expect(updated).toContain(line);
        const removed = await changeServer(host, updated, { name: "own" });
        for (const line of text.split(/(?<=\n)/)) expect(removed).toContain(line);
        expect(removed.endsWith(`# f${lineBreak}`)).toBe(true);
        expect({ [key]: {}, ...parseText(removed) }).toEqual({ [key]: {}, ...parseText(text) });
      }),
      { numRuns: 200 },
    );
  });
});

it("sets a variable in the entry of codex beside those of the user, in its own table or in a new one", async () => {
  const host = MCP_HOSTS["codex"];
  if (host === undefined) throw new Error("there is no such host");
  const entry = { ...ENTRY, env: { A: "2", B: "3" } };
  const head = '[mcp_servers.own]\ncommand = "x" # c\n# d';
  const after = "\n# e\n[[mcp_servers.other.list]]\ny = 9007199254740993\n";
  const args = `args = ["${ENTRY.args.join('", "')}"]\n`;
  const update = (text: string) => changeServer(host, text, { name: "own", entry });
  const changed = head.replace('"x" # c\n', `"agentauth" # c\n${args}`);
  const env = '\n[mcp_servers.own.env]\nA = "2"\nB = "3"\n';
  expect(await update(`${head}\n${after}`)).toBe(`${changed.replace(args, args + env)}\n${after}`);
  const table = (values: string) => `\n[mcp_servers.own.env] # f\n# g\nMINE = "[#]"\n${values}`;
  expect(await update(`${head}\n${table("A = '''\n[1]'''\n")}${after}`)).toBe(
    `${changed}\n${table('A = "2"\nB = "3"\n')}${after}`,
  );
  for (const form of ['env = { MINE = "1" }', 'env.MINE = "1"']) {
    await expect(update(`${head}\n${form}\n`)).rejects.toThrow(/"own" is written in a form/);
  }
  const quoted = (command: string, args: string) =>
    `[mcp_servers."own"]\n"command" = "${command}"\n'args' = ["${args}"]\n[mcp_servers."own".'env']\n"A" = "2"\n`;
  expect(await update(`${quoted("x", "y")}B = "3"\n`)).toBe(`${quoted("agentauth", ENTRY.args.join('", "'))}B = "3"\n`);
  await expect(update("mcp_servers = { a = 1 }\n")).rejects.toThrow(/the servers are written in a form/);
});

it("adds a server beside tables that are named like a prototype, and changes no object", async () => {
  const host = MCP_HOSTS["codex"];
  if (host === undefined) throw new Error("there is no such host");
  const text = "[__proto__]\na = 1\n[mcp_servers.__proto__]\nb = 1\n[constructor.prototype]\nc = 1\n";
  const added = await changeServer(host, text, { name: "own", entry: ENTRY });
  const updated = await changeServer(host, added, { name: "own", entry: { ...ENTRY, args: ["x"] } });
  expect(await changeServer(host, updated, { name: "own" })).toBe(text);
  expect(["a", "b", "c"].filter((name) => name in {})).toEqual([]);
});

const ALIASES = ["a: &a [x, x, x, x, x, x, x, x, x]", ..."bcdefgh"].map((line, at, all) =>
  at === 0
    ? line
    : `${line}: &${line} [${Array(9)
        .fill(`*${at === 1 ? "a" : all[at - 1]}`)
        .join(", ")}]`,
);

it.each([
  ["extensions: [a]\n", "must have the servers by their names"],
  ["- a\n", "the settings must be a map"],
  [`${ALIASES.join("\n")}\n`, "Excessive alias count"],
])("no servers are read in the settings of goose: %#", async (text, message) => {
  await expect(serversIn(MCP_HOSTS["goose"] as McpHost, text)).rejects.toThrow(message);
});

it("an entry names a server only by an address, and nothing else of it is printed", () => {
  const entry = { command: "agentauth", args: ["mcp", "proxy", "no address"] };
  expect(originOf(entry)).toEqual({ url: undefined, isByAgentauth: false });
  expect(originOf({ ...entry, args: ["mcp", "proxy", "https://mcp.example/mcp"] }).isByAgentauth).toBe(true);
  expect(printableUrl("a secret")).toBe("***");
});

/** The text with a server added, updated and removed; a refusal has its line. */
async function changed(host: string, text: string, change: { name: string; entry?: object }): Promise<string> {
  const row = MCP_HOSTS[host] as McpHost;
  return changeServer(row, text, change as never).catch((error: Error & { line?: number }) => {
    return `refused: ${error.message} (line ${error.line})`;
  });
}

const ENV = { command: "agentauth", args: ["x"], env: { A: "b" } };

describe.each([
  [
    "cursor",
    [
      "",
      " \r\n",
      "{}",
      "{\n}",
      '{ "a": 1 }',
      '{\n\t"a": 1\n}\n',
      '{"mcpServers": {}}',
      '{\n  "mcpServers": {\n  },\n}',
      '{"mcpServers": {"a": 1, }, "b": 2}',
      '{"mcpServers": {"a": 1 /* x */ , /* y */ "b": 2}}',
      '{\n    "mcpServers": {\n        "a": {}, // x\n        "own": { "command": "y", "keep": [1] }\n    }\n}',
      '{\n    "mcpServers": {\n        "own": { "command": "y" }, // x\n        /* z */\n        "b": {}\n    }\n}',
      '{"mcpServers": {"own": 1}}',
      '{"mcpServers": {"a": 1, "own": {"env": {"MINE": "1"}}}}',
      '{"mcpServers": {"own": {"command": "agentauth", "args": ["x"], "env": {"A": "b"}}}}',
      '// a\r\n{\r\n  "mcpServers": {\r\n    "own": {},\r\n  }\r\n}\r\n',
      "[]",
      "1",
      "{",
      '{"mcpServers": 1}',
      '{"a": 1,\n"a": 2}',
    ],
  ],
  [
    "goose",
    [
      "",
      "# a\n",
      "a: 1",
      "extensions:\n",
      "extensions: # b\nc: 1\n",
      "extensions: {} # b\nc: 1\n",
      "extensions: null\n",
      "extensions: ~   # b\n",
      "extensions: {a: 1}\n",
      "extensions: 5\n",
      "extensions:\n    a: {b: 1} # c\n",
      "extensions:\n  a:\n    b: |\n      text\n\nc: 1\n",
      "extensions:\n  own:\n    command: y # c\n    keep: 1\n  b:\n    c: 1\n",
      "extensions:\n  own: # c\n    command: y\n    env:\n      MINE: '1' # d\n",
      "extensions:\n  own: {command: y}\n",
      "extensions:\n  own: 1\n  b:\n    c: 1\n",
      "extensions:\n  own:\n",
      '"extensions":\n  "own":\n    "command": y\n',
      "extensions:\r\n  own:\r\n    command: y\r\n",
      "{extensions: {}}\n",
      "[a\n",
      "a: 1\n a: 2\n",
      "- a\n",
    ],
  ],
  [
    "codex",
    [
      "",
      "a = 1",
      "[mcp_servers.a]\nb = 1",
      '[mcp_servers.own]\ncommand = "y" # c\nkeep = 1\n\n[mcp_servers.own.tools]\na = 1\n\n[z]\na = 1\n',
      '[z]\na = 1\n\n  # d\n[mcp_servers.own] # c\ncommand = "y"\n',
      '[z]\r\na = 1\r\n\r\n[mcp_servers.own]\r\ncommand = "y"\r\n',
      '[mcp_servers.own.env]\nA = "c"\nMINE = "1"\n',
      '[mcp_servers]\nown = { command = "y" }\n',
      "[[mcp_servers.own]]\na = 1\n",
      "mcp_servers = 1\n",
      "a = \n",
      "a = 1\na = 2\n",
    ],
  ],
] as const)("settings of %s in each form", (host, texts) => {
  it.each(texts)("%j", async (text) => {
    const results = [
      await changed(host, text, { name: "own", entry: ENV }),
      await changed(host, text, { name: "own", entry: { command: "z" } }),
      await changed(host, text, { name: "own" }),
    ];
    expect(results.map((result) => JSON.stringify(result).slice(1, -1))).toMatchSnapshot();
  });
});

it.each([
  '{"mcpServers": {"own": {"command": "x", "args": ["y"], "env": {"A": "b"}, "keep": 1}}}',
  '{"mcpServers": {"own": {"keep": 1, "command": "x", "args": ["y"], "env": {"A": "b", "MINE": "1"}}}}',
  '{\n  "mcpServers": {\n    "own": {\n      "type": "stdio", // t\n      "command": "x", // c\n      "args": [\n        "y"\n      ],\n      // last\n      "env": {"A": "b"} // e\n    }\n  }\n}\n',
  '{\r\n  "mcpServers": {\r\n    "own": {\r\n      "command": "x",\r\n      "args": [],\r\n    }\r\n  }\r\n}\r\n',
  '{"mcpServers": {"own": {"command": "x"}}}',
])("another style takes the keys of the first one away: %j", async (text) => {
  const otherStyles = { type: "", command: "", args: "", env: { A: "" } };
  const entry = { type: "http", url: "u" };
  const result = await changed("claude-code", text, { name: "own", entry, otherStyles } as never);
  expect(result.replaceAll("\r", "<cr>")).toMatchSnapshot();
});

it.each<[unknown, object, object | undefined, boolean]>([
  [{ a: 1, b: 2 }, { a: 1 }, undefined, true],
  [{ a: 1 }, { a: 2 }, undefined, false],
  [{ a: { b: 1, c: 2 } }, { a: { b: 1 } }, undefined, true],
  [{ a: { b: 1 } }, { a: { b: 1, c: 2 } }, undefined, false],
  [{ a: 5 }, { a: { b: 1 } }, undefined, false],
  [{}, { enabled: true, disabled: false, timeout: 1, tools: [] }, undefined, true],
  [{}, { a: 1 }, undefined, false],
  [{ a: 1, o: 2 }, { a: 1 }, { o: "" }, false],
  [{ a: 1, o: 2 }, { a: 1, o: 2 }, { o: "" }, true],
  [{ a: 1, o: { mine: 1 } }, { a: 1 }, { o: { A: "" } }, true],
  [{ a: 1, o: { mine: 1, A: 2 } }, { a: 1 }, { o: { A: "" } }, false],
  [{ a: 1, o: { mine: 1 } }, { a: 1 }, { o: "" }, false],
  [1, {}, undefined, false],
  [[], {}, undefined, false],
  [null, {}, undefined, false],
])("%j has the values %j, beside those of other styles %j: %s", (stored, entry, otherStyles, expected) => {
  expect(hasValues(stored, entry as never, otherStyles as never)).toBe(expected);
});
