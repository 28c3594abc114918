import { describe, expect, test } from "vitest";
import { commandWords } from "../../src/login/command-words.js";
import { quote } from "../../src/redact.js";
import { fc } from "../helpers/properties.js";

describe("a browser command", () => {
  test.each([
    ["firefox", ["firefox"]],
    ["  firefox\t-P  work ", ["firefox", "-P", "work"]],
    ['"/opt/My Browser/run" --a', ["/opt/My Browser/run", "--a"]],
    ["open -a 'Google Chrome'", ["open", "-a", "Google Chrome"]],
    ["C:\\Programs\\b.exe --x", ["C:\\Programs\\b.exe", "--x"]],
    [`a"b c"'d "e'`, ['ab cd "e']],
    ["a ''", ["a", ""]],
    ["sh -c 'x $HOME `y` $(z) ; | & > *'", ["sh", "-c", "x $HOME `y` $(z) ; | & > *"]],
    ["", []],
    ["  ", []],
  ])("%j is split into %j", (command, words) => {
    expect(commandWords(command)).toEqual(words);
  });

  test.each([
    ["firefox 'x", "has an unterminated '"],
    ['a "', 'has an unterminated "'],
    ["'' x", "has an empty program name"],
    ['""', "has an empty program name"],
  ])("%j is refused", (command, reason) => {
    expect(() => commandWords(command)).toThrow(
      expect.objectContaining({
        code: "usage",
        class: "usage",
        message: `the browser command ${quote(command)} ${reason}`,
        hint: "pass a program and its arguments; the address is added as the last one",
        remedy: { action: "configure", option: "browser" },
      }),
    );
  });

  test.each([
    ["C:\\Program Files\\Mozilla\\firefox.exe", ["C:\\Program Files\\Mozilla\\firefox.exe"]],
    ["C:\\Program Files\\Mozilla\\firefox.exe -P work", ["C:\\Program Files\\Mozilla\\firefox.exe", "-P", "work"]],
    ["/opt/My Browser/run --a", ["/opt/My Browser/run", "--a"]],
    ["/opt/My", ["/opt/My"]],
    ["/opt/My  Browser/run", ["/opt/My", "Browser/run"]],
    ["  /opt/My Browser/run  --a ", ["/opt/My Browser/run", "--a"]],
    ["/opt/My Browser/run 'a b'", ["/opt/My Browser/run", "a b"]],
    ["/opt/Your Browser/run", ["/opt/Your", "Browser/run"]],
    ["c:/Program Files/run.exe", ["c:/Program Files/run.exe"]],
    ["My Browser/run", ["My", "Browser/run"]],
    ["'/opt/My Browser/run' --a", ["/opt/My Browser/run", "--a"]],
  ])("%j begins with the longest path that is a file", (command, words) => {
    const files = [
      "C:\\Program Files\\Mozilla\\firefox.exe",
      "C:\\Program",
      "c:/Program Files/run.exe",
      "/opt/My",
      "/opt/My Browser/run",
      "My Browser/run",
    ];
    expect(commandWords(command, (path) => files.includes(path))).toEqual(words);
  });

  test("of quoted words gives the words back", () => {
    const word = fc.string({ unit: "grapheme" }).map((text) => text.replaceAll("'", ""));
    fc.assert(
      fc.property(fc.array(word), (words) => {
        const command = ["browser", ...words.map((text) => `'${text}'`)].join(" ");
        expect(commandWords(command)).toEqual(["browser", ...words]);
      }),
    );
  });
});
