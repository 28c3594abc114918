import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import {
  changingMode,
  moveAway,
  removeCommand,
  runnableFileText,
  settingVariable,
  shellSyntax,
  takingOwnership,
  wakingUp,
  writePrivatelyCommand,
} from "../../src/platform.js";
import { storingToken } from "../../src/profile/service-settings.js";
import { shellWord, wordFor } from "../../src/redact.js";
import { onSystem } from "./support.js";

const PATH = "C:\\Users\\A B\\it's 100%.json";

describe("a word of a command", () => {
  it.each([
    ["plain", "plain", "plain"],
    ["C:\\dir\\x.json", "C:\\dir\\x.json", "C:\\dir\\x.json"],
    ["https://x/?a=1&b=%TEMP%", "'https://x/?a=1&b=%TEMP%'", '"https://x/?a=1&b="^%"TEMP"^%""'],
    ["it's", "'it''s'", '"it\'s"'],
    ["it\u2019s $(calc)", "'it\u2019\u2019s $(calc)'", '"it\u2019s $(calc)"'],
    ['a"b c\\', `'a"b c\\'`, '"a""b c\\\\"'],
    ["a,@b", "'a,@b'", '"a,@b"'],
    ["x\u001b$y`", '"x$([char]::ConvertFromUtf32(0x1b))`$y``"', '"x\\e$y`"'],
    ["", "''", '""'],
  ])("%j is %s in PowerShell and %s in cmd.exe", (word, powershell, cmd) => {
    expect([wordFor("powershell", word), wordFor("cmd", word)]).toEqual([powershell, cmd]);
  });

  it("is for the shell that messages are for, unless one is named", () => {
    onSystem({ name: "win32" }, "powershell");
    expect([shellWord("it's"), wordFor("sh", "it's")]).toEqual(["'it''s'", "'it'\\''s'"]);
  });
});

describe("the commands of hints", () => {
  const all = () => [
    moveAway(PATH, `${PATH}.old`),
    removeCommand(PATH),
    changingMode("700", PATH),
    changingMode("u+w", PATH),
    takingOwnership(PATH),
    wakingUp(42),
    settingVariable("NAME", "file:C:\\x"),
    writePrivatelyCommand("openssl"),
    shellSyntax(),
    runnableFileText(),
    storingToken(),
  ];
  const POSIX = /\b(?:chmod|chown|mv|rm|kill|umask|sh|export)\b|</;

  it("are those of a POSIX shell elsewhere", () => {
    onSystem({ name: "linux" }, "sh");
    for (const command of all()) expect(command).toMatch(POSIX);
  });

  it("are those of PowerShell", () => {
    onSystem({ name: "win32" }, "powershell");
    const word = "'C:\\Users\\A B\\it''s 100%.json'";
    expect(all()).toEqual([
      `Move-Item -LiteralPath ${word} -Destination 'C:\\Users\\A B\\it''s 100%.json.old'`,
      `Remove-Item -LiteralPath ${word}`,
      `icacls ${word} /inheritance:r /grant:r "${"$"}{env:USERNAME}:(OI)(CI)F"`,
      `attrib -r ${word}`,
      `takeown /f ${word}`,
      "if it hangs, end it: taskkill /f /pid 42",
      "$env:NAME = 'file:C:\\x'",
      "openssl",
      "powershell -Command '...'",
      "a file with an extension of PATHEXT, such as .exe or .cmd",
      "Get-Content token.txt | agentauth config set api_token -",
    ]);
  });

  it("are those of cmd.exe", () => {
    onSystem({ name: "win32" }, "cmd");
    const word = '"C:\\Users\\A B\\it\'s 100"^%".json"';
    expect(all()).toEqual([
      `move ${word} "C:\\Users\\A B\\it's 100"^%".json.old"`,
      `del ${word}`,
      `icacls ${word} /inheritance:r /grant:r "%USERNAME%:(OI)(CI)F"`,
      `attrib -r ${word}`,
      `takeown /f ${word}`,
      "if it hangs, end it: taskkill /f /pid 42",
      'set "NAME=file:C:\\x"',
      "openssl",
      "cmd /c ...",
      "a file with an extension of PATHEXT, such as .exe or .cmd",
      "agentauth config set api_token - < token.txt",
    ]);
  });

  it("are written nowhere else", () => {
    const OTHERWISE =
      /(?:^|[^\w-])(?:chmod|chown|umask|mv|rm -r|kill -\w+|sh -c|export [A-Z]\w*=)(?:\s|$)|< token\.txt/;
    // The sandbox describes servers, `command.ts` has the examples of the help, and the completions are scripts of shells.
    const ELSEWHERE = /^(?:platform\.ts|sandbox\/)|\/(?:command|bash|zsh|powershell)\.ts$|\.gen\.ts$/;
    const paths = readdirSync("src", { recursive: true, encoding: "utf8" });
    const found = paths
      .filter((path) => path.endsWith(".ts") && !ELSEWHERE.test(path))
      .flatMap((path) => literalsOf(join("src", path)).map((text) => `${path}: ${text}`))
      .filter((line) => OTHERWISE.test(line));
    expect(found).toEqual([]);
  });
});

/** The texts of a module, without its comments. */
function literalsOf(path: string): string[] {
  const texts: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node) || ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node))
      texts.push(node.text);
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(path, readFileSync(path, "utf8"), ts.ScriptTarget.Latest, true));
  return texts;
}
