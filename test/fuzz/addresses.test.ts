import { describe, expect, it } from "vitest";
import { isLoopbackHost, parseBaseUrl } from "../../src/http/address.js";
import { checkAddress, classifyHost, policyFor } from "../../src/http/address-class.js";
import { checkBrowserUrl } from "../../src/login/browser.js";
import { coversServer, parseMcpUrl } from "../../src/oauth/model/resource.js";
import { fc } from "../helpers/properties.js";
import { unsafeCharacters } from "../helpers/unsafe.js";
import { edited, SETTINGS, textLike, tried } from "./inputs.js";

const HOSTS = fc.constantFrom(
  "mcp.example",
  "127.0.0.1",
  "127.1",
  "0x7f000001",
  "2130706433",
  "017700000001",
  "localhost",
  "localhost.",
  "a.localhost",
  "[::1]",
  "[::ffff:127.0.0.1]",
  "[::ffff:a9fe:a9fe]",
  "169.254.169.254",
  "0xA9FEA9FE",
  "2852039166",
  "0251.0376.0251.0376",
  "[fd00:ec2::254]",
  "metadata.google.internal",
  "10.0.0.1",
  "192.168.1.1",
  "172.16.0.1",
  "100.64.0.1",
  "0.0.0.0",
  "[::]",
  "[fe80::1]",
  "[fc00::1]",
  "[64:ff9b::a9fe:a9fe]",
  "[2002:7f00:1::]",
  "xn--mcp-bla.example",
  "mcp.example.",
);
const PARTS = fc.tuple(
  fc.constantFrom(
    "https://",
    "http://",
    "HTTPS://",
    "https:/",
    "https:\\\\",
    "ftp://",
    "file://",
    "javascript:",
    "\thttps://",
    "",
  ),
  fc.constantFrom("", "", "", "user:pass@", "@", "a@b@"),
  HOSTS,
  fc.constantFrom("", ":443", ":80", ":0", ":65536", ":"),
  fc.constantFrom(
    "",
    "/",
    "/mcp",
    "/a/../b",
    "/%2e%2e/x",
    "//x",
    "/x?y=1",
    "/x#y",
    "/?",
    "/#",
    "/\u202e",
    "/$(id)",
    "/a b",
  ),
);
const addresses = fc.oneof(
  { weight: 3, arbitrary: PARTS.map((parts) => parts.join("")) },
  { weight: 2, arbitrary: edited(PARTS.map((parts) => parts.join(""))) },
  { weight: 1, arbitrary: fc.webUrl({ withQueryParameters: true, withFragments: true }) },
  { weight: 1, arbitrary: textLike("https://mcp.example/mcp") },
);
const isTypeError = (error: unknown) => error instanceof TypeError;

/** What holds of every address that anything may be sent to. */
function checkSafe(value: string): URL {
  const url = new URL(value);
  expect(url.protocol === "https:" || (url.protocol === "http:" && isLoopbackHost(url.hostname))).toBe(true);
  expect([url.username, url.password]).toEqual(["", ""]);
  return url;
}

describe("an address", () => {
  it.each(["public", "private", "loopback"] as const)(
    "that a server names (itself %s) is far enough, plain and safe",
    (near) => {
      const policy = { bounds: policyFor(near, new Set<string>()) };
      fc.assert(
        fc.property(addresses, (value) => {
          const outcome = tried(() => checkAddress(value, "field", "a test", policy));
          if (!("value" in outcome)) return;
          const url = checkSafe(outcome.value);
          expect(outcome.value).toBe(value);
          expect([url.hash, unsafeCharacters(value, "")]).toEqual(["", []]);
          const reach = classifyHost(url.hostname);
          expect(reach).not.toBe("forbidden");
          if (near === "public") expect([undefined, "public"]).toContain(reach);
          if (near === "private") expect(reach).not.toBe("loopback");
        }),
        SETTINGS,
      );
    },
  );

  it("that a browser is sent to has nothing in it that an opener or a shell takes for its own", () => {
    fc.assert(
      fc.property(addresses, (value) => {
        const outcome = tried(() => checkBrowserUrl(value, "field", "a test"));
        if (!("value" in outcome)) return;
        checkSafe(outcome.value);
        expect(outcome.value).toMatch(/^https?:\/\/[^\s'"`()^|\\{}<>]+$/);
        expect(outcome.value.replace(/%[\da-f]{2}/gi, "")).not.toContain("%");
        expect(outcome.value).toMatch(/^[\x21-\x7e]+$/);
      }),
      SETTINGS,
    );
  });

  it("of the service is an origin and a path", () => {
    fc.assert(
      fc.property(addresses, (value) => {
        const outcome = tried(() => parseBaseUrl(value, "base_url"), isTypeError);
        if (!("value" in outcome)) return;
        const url = checkSafe(outcome.value);
        expect([url.search, url.hash, outcome.value.endsWith("/")]).toEqual(["", "", false]);
      }),
      SETTINGS,
    );
  });

  it("of an MCP server has one canonical form, which covers itself", () => {
    fc.assert(
      fc.property(addresses, (value) => {
        const outcome = tried(() => parseMcpUrl(value), isTypeError);
        if (!("value" in outcome)) return;
        const { url, resource } = outcome.value;
        checkSafe(url);
        expect(parseMcpUrl(resource).resource).toBe(resource);
        expect(coversServer(new URL(resource), new URL(url), true)).toBe(true);
      }),
      SETTINGS,
    );
  });
});
