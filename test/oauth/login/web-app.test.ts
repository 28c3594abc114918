import { describe, expect, it } from "vitest";
import {
  checkRedirectUri,
  checkReturnTo,
  cookieNames,
  readCookie,
  readQueryParameters,
  setCookie,
} from "../../../src/oauth/login/web-app.js";
import { abandonedCookies, readState } from "../../../src/oauth/login/web-login.js";
import { quote } from "../../../src/redact.js";

const usage = (message: string) => expect.objectContaining({ code: "usage", class: "usage", message });

describe("the redirect address of a web app", () => {
  it.each(["https://app.example/callback?a=b", "http://127.0.0.1:3000/cb", "http://localhost/cb", "http://[::1]/cb"])(
    "may be %s",
    (address) => {
      expect(checkRedirectUri(address).href).toBe(address);
    },
  );

  it.each([
    "http://app.example/callback",
    "ftp://127.0.0.1/callback",
    "https://app.example/callback#a",
    "https://app.example/callback#",
    "https://user@app.example/callback",
    "https://:password@app.example/callback",
    "/callback",
    "",
  ])("is not %j", (address) => {
    const rule = "must be an https address, or http on a loopback host, without a fragment";
    expect(() => checkRedirectUri(address)).toThrow(usage(`redirectUri ${quote(address)} ${rule}`));
  });
});

describe("the page to return to", () => {
  const APP = new URL("https://app.example/oauth/callback");

  it.each([
    [undefined, undefined],
    ["/inbox?a=b#c", "https://app.example/inbox?a=b#c"],
    ["done", "https://app.example/oauth/done"],
    ["https://app.example/", "https://app.example/"],
  ])("may be %j", (page, address) => {
    expect(checkReturnTo(page, APP)).toBe(address);
  });

  it.each([
    "https://evil.example/",
    "//evil.example",
    "/\\evil.example",
    "http://app.example/",
    "blob:https://app.example/1",
    "https://user@app.example/",
    "https://:password@app.example/",
    "https://[",
    "javascript:alert(1)",
  ])("is not %j", (page) => {
    const rule = "must be a path or an address on the origin of redirectUri, https://app.example";
    expect(() => checkReturnTo(page, APP)).toThrow(usage(`returnTo ${quote(page)} ${rule}`));
  });
});

describe("the parameters of a callback", () => {
  it.each<[string, [string, string][]]>([
    [
      "https://app.example/cb?state=a&code=b?c",
      [
        ["state", "a"],
        ["code", "b?c"],
      ],
    ],
    ["/cb?state=a#code=b", [["state", "a"]]],
    ["/cb#?state=a", []],
    ["/cb", []],
    ["", []],
  ])("are those of the query of %j", (address, parameters) => {
    expect([...readQueryParameters(address)]).toEqual(parameters);
    if (!URL.canParse(address)) return;
    expect([...readQueryParameters(new URL(address))]).toEqual(parameters);
    expect([...readQueryParameters(new Request(address))]).toEqual(parameters);
  });

  it("are read of at most 64 KB", () => {
    const of = (length: number) => `?a=${"b".repeat(length - 3)}`;
    expect(readQueryParameters(of(64 * 1024)).get("a")).toHaveLength(64 * 1024 - 3);
    const message = "the address of the callback is longer than 65536 characters";
    const refused = expect.objectContaining({ code: "bad_callback", class: "refused", message });
    expect(() => readQueryParameters(of(64 * 1024 + 1))).toThrow(refused);
  });

  it("have one state, of at most 200 characters", () => {
    const longest = "s".repeat(200);
    expect(readState(new URLSearchParams({ state: longest }))).toBe(longest);
    expect(readState(new URLSearchParams("state="))).toBe("");
    const message = "the callback does not belong to this login: its state differs";
    const refused = expect.objectContaining({ code: "state_mismatch", class: "refused", message });
    for (const query of ["", "code=a", "state=a&state=a", `state=${longest}s`])
      expect(() => readState(new URLSearchParams(query))).toThrow(refused);
  });
});

describe("a cookie", () => {
  it("is for this host and no script", () => {
    const rest = "Secure; HttpOnly; SameSite=Lax";
    expect(setCookie("a", "b", 600)).toBe(`a=b; Path=/; Max-Age=600; ${rest}`);
    expect(setCookie("a", "", 0, "/cb")).toBe(`a=; Path=/cb; Max-Age=0; ${rest}`);
  });

  it.each([
    ["a=b", "b"],
    ["x=1; a=b=c ; y=2", "b=c"],
    ["x=1;a=b", "b"],
    ["xa=b", undefined],
    ["ab=c", undefined],
    ["a=", undefined],
    ["a", undefined],
    ["a=b; a=b", undefined],
    ["a=; a=b", undefined],
    ["", undefined],
  ])("is read from %j as %j", (header, value) => {
    expect(readCookie(header, "a")).toBe(value);
  });

  it("is found by the form of its name, the oldest first", () => {
    expect(cookieNames("b2=x; a=y;b1 ; ; =b3; cb1=b1", /^b\d$/)).toEqual(["b2", "b1"]);
    expect(cookieNames("", /^$/)).toEqual([""]);
  });

  it("of a login that is not among the newest is abandoned, with that of its sealed login", () => {
    const ids = ["0123456789abcdef", "ABCDEFGHIJKLMNO_", "----------------"];
    const header = ["a=b", ...ids.map((id) => `__Host-agentauth-${id}=1`), "__Host-agentauth-short=1"].join("; ");
    const both = ids.map((id) => ({ browser: `__Host-agentauth-${id}`, saved: `__Secure-agentauth-${id}-saved` }));
    for (const newest of [0, 1, 2, 3, 4]) {
      expect(abandonedCookies(header, newest)).toEqual(both.slice(0, Math.max(0, 3 - newest)));
    }
    expect(abandonedCookies(`${header}; x__Host-agentauth-0123456789abcdef=1`, 3)).toEqual([]);
    expect(abandonedCookies(`${header}; __Host-agentauth-0123456789abcdefg=1`, 3)).toEqual([]);
  });
});
