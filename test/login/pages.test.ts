import { describe, expect, it } from "vitest";
import { AgentAuthError, type ErrorClass } from "../../src/errors.js";
import * as pages from "../../src/login/pages.js";

const { outcomePage } = pages;

const login = { server: "https://mcp.example/mcp", issuer: "https://issuer.example", account: undefined };
/** The text of the page, as a user reads it. */
const textOf = (html: string) =>
  /<body>(.*)<\/body>/
    .exec(html)?.[1]
    ?.replace(/<[^>]+>/g, "|")
    .replace(/\|+/g, "|") ?? "";

describe("the pages of a login", () => {
  const constants = Object.entries(pages).filter(([, page]) => typeof page === "object");

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
