import { describe, expect, it } from "vitest";
import { type AddressClass, policyFor } from "../../src/http/address-class.js";
import { checkAddress } from "../../src/http/peer-address.js";

/** Checks what a server names that lies so far away itself. */
const check = (value: unknown, server: AddressClass = "public") =>
  checkAddress(value, "token_endpoint", "https://as.example/doc", { bounds: policyFor(server, new Set()) });

describe("checkAddress", () => {
  it.each([
    "https://as.example/token",
    "https://as.example:8443/a?b=c",
    "https://AS.example",
    "https://as.example/%20",
  ])("gives %s back as it was", (value) => {
    expect(check(value)).toBe(value);
  });

  it.each([undefined, null, 7, {}, "", "/token", "as.example/token", "-https://as.example/"])(
    "refuses %j, which is no absolute address",
    (value) => {
      expect(() => check(value)).toThrow("must be an absolute URL");
    },
  );

  it.each([
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "\tjavascript:alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "blob:https://as.example/x",
    "file:///etc/passwd",
    "ftp://as.example/",
    "smb://as.example/",
    "search-ms:x",
    "vscode://as.example/",
    "com.example.app:/cb",
  ])("[41] refuses the scheme of %j: only https, and http on this machine (2026-07-28)", (value) => {
    expect(() => check(value, "loopback")).toThrow("must be an https address");
  });

  it.each(["http://as.example/token", "http://10.0.0.1/", "http://127.0.0.1.example/"])(
    "[31] refuses %s: an endpoint is https, or on this machine (2025-06-18)",
    (value) => {
      expect(() => check(value, "loopback")).toThrow("must be an https address (OAuth 2.1 section 1.5)");
    },
  );

  it.each([
    "http://127.0.0.1/",
    "https://localhost/",
    "https://api.localhost/",
    "https://[::1]/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0177.0.0.1/",
    "https://127.1/",
  ])("[40] refuses %s, this machine, from a server elsewhere, however it is spelled (2026-07-28)", (value) => {
    expect(() => check(value)).toThrow("leads to this machine");
    expect(check(value, "loopback")).toBe(value);
  });

  it.each(["https://login.example@evil.example/", "https://user:pass@as.example/"])(
    "refuses the user in %s",
    (value) => {
      expect(() => check(value)).toThrow("must not contain a user name or password");
    },
  );

  it.each(["https://as.example/#a", "https://as.example/#"])("refuses the fragment in %s", (value) => {
    expect(() => check(value)).toThrow("must not have a fragment");
  });

  it.each([
    "https://as.example/a b",
    "https://as.example\\@evil.example/",
    " https://as.example/",
    "https://as.example/\u202ecod",
    "https://as.exam\u200bple/",
    "https://as.example/\n",
  ])("refuses %j for what cannot be seen in it", (value) => {
    expect(() => check(value)).toThrow(/must/);
  });

  it("names the field, the value made harmless, where it came from, and the rule", () => {
    expect(() => check("ftp://as.example/\u001b[31m")).toThrow(
      expect.objectContaining({
        code: "bad_address",
        class: "refused",
        message: 'token_endpoint "ftp://as.example/\\e[31m" (from "https://as.example/doc") must be an https address',
      }),
    );
  });
});
