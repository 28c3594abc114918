import { describe, expect, test } from "vitest";
import { openBrowser } from "../../src/login/browser.js";

const open = (command: string | undefined, env: Record<string, string | undefined> = process.env) =>
  openBrowser("https://a.example/authorize?state=x&scope=a%20b", { command, env });

describe("a browser command", () => {
  test.each(["/nowhere/no-such-browser", "no-such-browser-at-all -x", "''", "'unfinished", "/", "a\0b"])(
    "%j that cannot be started has failed",
    async (command) => {
      expect(await open(command)).toBe("failed");
    },
  );
});

describe("$BROWSER", () => {
  test("that is none, like the command, wants no browser", async () => {
    expect(await open(undefined, { BROWSER: "none" })).toBe("skipped");
    expect(await open("none", { BROWSER: "no-such-browser-at-all" })).toBe("skipped");
  });
});
