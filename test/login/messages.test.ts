import { describe, expect, it, test } from "vitest";
import { AgentAuthError, type ErrorClass } from "../../src/errors.js";
import * as brief from "../../src/login/brief-messages.js";
import { deviceText } from "../../src/login/browser.js";
import * as pages from "../../src/login/callback-handler.js";
import { commandWords } from "../../src/login/command-words.js";
import * as messages from "../../src/login/messages.js";
import { detectEnvironment } from "../../src/login/platform.js";
import { quote } from "../../src/redact.js";
import { fc } from "../helpers/properties.js";

const URL_OF_LOGIN = "https://login.example/authorize?client_id=c";
const REDIRECT = "http://127.0.0.1:49152/callback";
const RESOURCE = "https://mcp.example/mcp";
const environment = detectEnvironment({ env: { DISPLAY: ":0" }, platform: "linux", exists: () => false });
const prompt = {
  resource: RESOURCE,
  issuer: "https://issuer.example",
  authorizationEndpoint: URL_OF_LOGIN,
  tokenEndpoint: "https://other.example/token",
  signal: new AbortController().signal,
};
const device = { userCode: "ABCD-EFGH", verificationUri: "https://login.example/device", expiresInSeconds: 600 };
const verificationUriComplete = "https://login.example/device?user_code=ABCD-EFGH";
const paste = (isOnly: boolean, isHidden: boolean) => messages.pasteText(REDIRECT, { isOnly, isHidden });
const codeTaker = (promisesIss?: boolean) =>
  messages.codeTakerText(URL_OF_LOGIN, { tokenEndpoint: prompt.tokenEndpoint, promisesIss });

it.each<[string, string | undefined]>([
  ["the address of a login", messages.loginText(RESOURCE, URL_OF_LOGIN)],
  ["a code that another host gets", codeTaker()],
  ["a code that another host gets, which the callback names", codeTaker(true)],
  ["the two hosts of a login", messages.endpointsText(prompt)],
  ["pasting beside a listener", paste(false, false)],
  ["pasting unseen", paste(false, true)],
  ["pasting alone", paste(true, false)],
  ["waiting", messages.waitingText(300)],
  ["wrong callbacks", messages.probeText(REDIRECT)],
  ["an error without a state", messages.statelessErrorText("invalid_scope\u001b[31m")],
  ["a code for another device", deviceText(device as Parameters<typeof deviceText>[0])],
  ["the same in an address", deviceText({ ...device, verificationUriComplete } as Parameters<typeof deviceText>[0])],
  ["the other ways", brief.otherWaysText(URL_OF_LOGIN, REDIRECT, { environment, hasDeviceFlow: true })],
  ["a short link that no longer works", brief.linkWithdrawnText(URL_OF_LOGIN, REDIRECT)],
  ["waiting, in brief", brief.briefWaitingText(300)],
])("a user reads of %s", (_what, text) => {
  expect(text).toMatchSnapshot();
});

it("a user reads of the device flow only where the issuer has it", () => {
  expect(brief.otherWaysText(URL_OF_LOGIN, REDIRECT, { environment })).not.toContain("device");
});

it("a code for the host of the login page is worth no notice", () => {
  expect(messages.codeTakerText(URL_OF_LOGIN, { tokenEndpoint: "https://login.example/token" })).toBeUndefined();
  expect(messages.codeTakerText(URL_OF_LOGIN, {})).toBeUndefined();
});

const { outcomePage } = pages;

const login = { server: "https://mcp.example/mcp", issuer: "https://issuer.example", account: undefined };
/** The text of the page, as a user reads it. */
const textOf = (html: string) =>
  /<body>(.*)<\/body>/
    .exec(html)?.[1]
    ?.replace(/<[^>]+>/g, "|")
    .replace(/\|+/g, "|") ?? "";

describe("the pages of a login", () => {
  const constants = Object.entries(pages).filter(([, page]) => typeof page === "object" && "html" in page);

  it("have their texts, for a small screen and in the language of the texts", () => {
    expect(constants.map(([name, page]) => `${name}: ${textOf((page as pages.BrowserPage).html)}`)).toMatchSnapshot();
    expect(textOf(pages.movedTo("/done").html)).toBe("|One moment|Completing the login.|");
    expect(textOf(pages.movedTo("/link", pages.TO_LOGIN).html)).toBe("|One moment|Opening the login page.|");
    for (const [, page] of constants) {
      expect((page as pages.BrowserPage).html).toMatch(
        /^<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">/,
      );
    }
  });

  it("look alike", () => {
    expect(outcomePage({ ok: true, login }).html).toMatchSnapshot();
  });

  it.each<ErrorClass>(["auth", "refused", "unavailable", "remote", "store", "aborted", "usage", "partial", "internal"])(
    "say why a login failed: %s",
    (kind) => {
      const error = new AgentAuthError("bad_request", "a text of the server", { class: kind });
      expect(textOf(outcomePage({ ok: false, error }).html)).toMatchSnapshot();
    },
  );
});

describe("the last page of a login", () => {
  it("says once who is logged in where", () => {
    const { html } = outcomePage({ ok: true, login: { ...login, account: "ada@example.com" } });
    expect(textOf(html)).toBe(
      "|You are logged in|Server|https://mcp.example/mcp|Issuer|https://issuer.example|Account|ada@example.com|You can close this window.|",
    );
  });

  it("names no account where none was named, and nothing where the program did not say", () => {
    expect(outcomePage({ ok: true, login }).html).not.toContain("Account");
    expect(textOf(outcomePage({ ok: true }).html)).toBe("|You are logged in|You can close this window.|");
  });

  it("leaves it open whether the login succeeds where another program completes it", () => {
    expect(textOf(outcomePage("received").html)).toBe(
      "|Almost done|The response to your login was received. The program that asked you to log in completes it: see " +
        "there whether it succeeded. You can close this window.|",
    );
  });

  it("escapes what servers and users named, and shows no more than 200 characters of it", () => {
    const account = `<img src=x onerror=alert(1)>&'"\u202e${"a".repeat(500)}`;
    const { html } = outcomePage({ ok: true, login: { ...login, account } });
    expect(html).toContain("<bdi>&lt;img src=x onerror=alert(1)&gt;&amp;&#39;&quot;\\u{202e}aaa");
    expect(html).not.toMatch(/<img|\u202e/);
    expect(html).not.toContain("a".repeat(200));
  });

  it.each([
    ["a".repeat(200), "a".repeat(200)],
    ["a".repeat(201), `${"a".repeat(200)}…`],
  ])("cuts what is longer than 200 characters", (account, shown) => {
    expect(outcomePage({ ok: true, login: { ...login, account } }).html).toContain(`<bdi>${shown}</bdi>`);
  });
});

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
