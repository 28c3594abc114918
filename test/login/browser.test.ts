import { describe, expect, test } from "vitest";
import { isAgentAuthError } from "../../src/errors.js";
import { checkBrowserUrl, openBrowser } from "../../src/login/browser.js";
import { fc } from "../helpers/properties.js";

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

const check = (url: string) => checkBrowserUrl(url, "authorization_endpoint", "https://issuer.example/metadata");

describe("an address for a browser", () => {
  test.each([
    ["https://a.example/x?y=z&w=1", "https://a.example/x?y=z&w=1"],
    ["HTTPS://A.Example:443/x", "https://a.example/x"],
    ["http://127.0.0.1:8080/x", "http://127.0.0.1:8080/x"],
    ["http://localhost/x", "http://localhost/x"],
    ["http://[::1]:80/x", "http://[::1]/x"],
    ["https://bücher.example/ä?ö", "https://xn--bcher-kva.example/%C3%A4?%C3%B6"],
    ["https://a.example/?q=$(x)`y`;|&z'", "https://a.example/?q=$%28x%29%60y%60;%7C&z%27"],
    ["https://a.example/'?q=a^b{c}\\\"<>", "https://a.example/%27?q=a%5Eb%7Bc%7D%5C%22%3C%3E"],
    ["https://a.example/%PATH%?%USERNAME%", "https://a.example/%25PATH%25?%25USERNAME%25"],
    ["https://a.example/%41%zz%4", "https://a.example/%41%25zz%254"],
  ])("%s is opened as %s", (given, written) => {
    expect(check(given)).toBe(written);
    expect(check(written)).toBe(written);
  });

  test.each([
    ["javascript:alert(1)", "https"],
    ["JaVaScRiPt:alert(1)", "https"],
    ["\tjavascript:alert(1)", "control"],
    ["data:text/html,x", "https"],
    ["vbscript:x", "https"],
    ["blob:https://a.example/x", "https"],
    ["file:///etc/passwd", "https"],
    ["smb://a.example/x", "https"],
    ["search-ms:query=x", "https"],
    ["ms-settings:", "https"],
    ["vscode://x/y", "https"],
    ["ftp://a.example/", "https"],
    ["\\\\host\\share", "absolute"],
    ["--help", "absolute"],
    ["-a", "absolute"],
    ["", "absolute"],
    ["/x", "absolute"],
    ["http://a.example/", "https"],
    ["http://127.0.0.1.a.example/", "https"],
    ["http://10.0.0.1/", "https"],
    ["https://a.example/\u202egpj.exe", "bidirectional"],
    ["https://a\u200b.example/", "invisible"],
    ["https://a.example/x\ny", "control"],
    ["https://a.example/x\0y", "control"],
    ["https://a.example/\u2028", "control"],
    ["https://a.example/\u001b]0;x\u0007", "control"],
    ["https://a'b.example/", "host"],
    ["https://$(x).example/", "host"],
    [`https://a.example/${"x".repeat(8 * 1024)}`, "8192"],
    [`https://a.example/${"ä".repeat(3_000)}`, "8192"],
  ])("%j is refused", (given, rule) => {
    expect(() => check(given)).toThrow(expect.objectContaining({ code: "bad_address", class: "refused" }));
    expect(() => check(given)).toThrow(rule);
    expect(() => check(given)).toThrow("authorization_endpoint");
  });

  test("with a user or password is refused without repeating it", () => {
    for (const url of ["https://login.example@evil.example/", "https://a:hunter22@evil.example/"]) {
      expect(() => check(url)).toThrow("authorization_endpoint must not contain a user name or password");
    }
  });

  test("of any kind comes out as one harmless word, or not at all", () => {
    const text = fc.string({ unit: "binary", maxLength: 60 });
    const nasty = fc.stringMatching(/^[ -~]{0,60}$/);
    fc.assert(
      fc.property(fc.oneof(text, nasty), fc.oneof(text, nasty), (path, query) => {
        let written: string;
        try {
          written = check(`https://a.example/${path}?${query}`);
        } catch (error) {
          expect(isAgentAuthError(error)).toBe(true);
          return;
        }
        expect(written).toMatch(/^https:\/\/a\.example\/(?:[\w\-.~:/?#[\]@!$&*+,;=]|%[0-9a-f]{2})*$/i);
        expect(check(written)).toBe(written);
      }),
      { numRuns: 2_000 },
    );
  });
});
