import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import {
  filesOf,
  isMap,
  lineAt,
  lineBreakOf,
  lineEnd,
  lineStart,
  type McpHost,
  SettingsSyntaxError,
  settingsPath,
  spliceLines,
} from "../../../../src/cli/clients/mcp-hosts/host.js";
import { temporaryFolder } from "../../../helpers/folder.js";

describe("the lines of a text", () => {
  const text = "ab\ncd\n\nef";

  it.each([
    [0, 1, 0, 3],
    [1, 1, 0, 3],
    [2, 1, 0, 3],
    [3, 2, 3, 6],
    [6, 3, 6, 7],
    [7, 4, 7, 9],
    [9, 4, 7, 9],
  ])("at %i: the line %i, from %i to %i", (offset, line, start, end) => {
    expect([lineAt(text, offset), lineStart(text, offset), lineEnd(text, offset)]).toEqual([line, start, end]);
  });

  it.each([
    ["", "\n"],
    ["a", "\n"],
    ["a\nb\r\n", "\n"],
    ["a\r\nb\n", "\r\n"],
    ["\r\n", "\r\n"],
  ])("%j has the line break %j", (given, eol) => {
    expect(lineBreakOf(given)).toBe(eol);
  });

  it.each([
    ["a\nb\n", 2, 4, "c\nd\n", "a\nc\nd\n"],
    ["a\nb\n", 2, 2, "c\n", "a\nc\nb\n"],
    ["a", 1, 1, "c\n", "a\nc\n"],
    ["", 0, 0, "c\n", "c\n"],
    ["a\r\nb", 4, 4, "c\nd\n", "a\r\nb\r\nc\r\nd\r\n"],
  ])("of %j from %i to %i are replaced by %j", (given, from, to, lines, expected) => {
    expect(spliceLines(given, from, to, lines)).toBe(expected);
  });
});

it.each([
  [{}, true],
  [Object.create(null), true],
  [[], false],
  [null, false],
  ["a", false],
  [undefined, false],
  [new Date(0), false],
])("is an object with keys (%#): %s", (value, expected) => {
  expect(isMap(value)).toBe(expected);
});

it("a path that begins with ? counts once the folder of its file is there, also before the file is", () => {
  const folder = temporaryFolder();
  const host = { settingsPaths: { user: ["?~/package/a", "~/b"] } } as unknown as McpHost;
  const machine = { platform: "linux", env: {}, home: folder, folder };
  expect(filesOf(host, "user", machine)).toEqual([join(folder, "b")]);
  writeFileSync(join(folder, "b"), "");
  expect(settingsPath(host, "user", machine)).toBe(join(folder, "b"));
  mkdirSync(join(folder, "package"));
  expect(filesOf(host, "user", machine)).toEqual([join(folder, "package", "a"), join(folder, "b")]);
  expect(settingsPath(host, "user", machine)).toBe(join(folder, "b"));
  rmSync(join(folder, "b"));
  expect(settingsPath(host, "user", machine)).toBe(join(folder, "package", "a"));
});

it("the file to change is the first that exists, else the preferred one", () => {
  const folder = temporaryFolder();
  const host = {
    settingsPaths: { user: ["~/a", "~/b", "~c", "{X|~/d}/e"], project: { linux: ["p"] } },
  } as unknown as McpHost;
  const machine = { platform: "linux", env: { X: "" }, home: folder, folder };
  const at = (scope: "user" | "project", over = {}) => settingsPath(host, scope, { ...machine, ...over });
  expect(at("user")).toBe(join(folder, "a"));
  expect([at("project"), at("project", { platform: "win32" })]).toEqual([join(folder, "p"), undefined]);
  writeFileSync(join(folder, "~c"), "");
  expect(at("user")).toBe(join(folder, "~c"));
  writeFileSync(join(folder, "b"), "");
  expect(at("user")).toBe(join(folder, "b"));
  expect(new SettingsSyntaxError("wrong", 3)).toMatchObject({ message: "wrong", line: 3 });
});
