import { describe, expect, test } from "vitest";
import { commandWords } from "../../src/login/command-words.js";
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

  test.each(["firefox 'x", 'a "', "'' x", '""'])("%j is refused", (command) => {
    expect(() => commandWords(command)).toThrow(
      expect.objectContaining({ code: "usage", class: "usage", remedy: { action: "configure", option: "browser" } }),
    );
  });

  test.each([
    ["C:\\Program Files\\Mozilla\\firefox.exe", ["C:\\Program Files\\Mozilla\\firefox.exe"]],
    ["C:\\Program Files\\Mozilla\\firefox.exe -P work", ["C:\\Program Files\\Mozilla\\firefox.exe", "-P", "work"]],
    ["/opt/My Browser/run --a", ["/opt/My Browser/run", "--a"]],
    ["/opt/My", ["/opt/My"]],
    ["My Browser/run", ["My", "Browser/run"]],
    ["'/opt/My Browser/run' --a", ["/opt/My Browser/run", "--a"]],
  ])("%j begins with the longest path that is a file", (command, words) => {
    const files = [
      "C:\\Program Files\\Mozilla\\firefox.exe",
      "C:\\Program",
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
