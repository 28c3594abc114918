import { describe, expect, it } from "vitest";
import { FAULT_KINDS, type Fault, type FaultKind, parseFault } from "../../../src/sandbox/index.js";
import { fc } from "../../helpers/properties.js";

const KINDS = Object.keys(FAULT_KINDS) as FaultKind[];

describe("parseFault", () => {
  it.each<[string, Fault]>([
    ["503", { kind: "status", status: 503 }],
    ["status=503", { kind: "status", status: 503 }],
    [
      "429:times=3,retry-after=2,path=device",
      { kind: "status", status: 429, times: 3, retryAfter: "2", path: "device" },
    ],
    ["status:status=500,body=html", { kind: "status", status: 500, body: "html" }],
    ["reset-mid-body:probability=0.2", { kind: "reset-mid-body", probability: 0.2 }],
    ["slow-headers=2000:every=3,after=1", { kind: "slow-headers", ms: 2000, every: 3, after: 1 }],
    ["slow-body:bytes=1,ms=5", { kind: "slow-body", bytes: 1, ms: 5 }],
    ['bad-offset="10"', { kind: "bad-offset", value: "10" }],
    ["bad-offset=null:offset=50", { kind: "bad-offset", value: null, offset: 50 }],
    ['wrong-envelope={"a":[1,2]}:times=0', { kind: "wrong-envelope", body: { a: [1, 2] }, times: 0 }],
    [
      "redirect=https://evil.example:8443/x?a=1,2:status=307",
      { kind: "redirect", location: "https://evil.example:8443/x?a=1,2", status: 307 },
    ],
    ["missing-fields=title+last_seen", { kind: "missing-fields", fields: ["title", "last_seen"] }],
    ["insert=3:position=7", { kind: "insert", count: 3, position: 7 }],
    ["empty-page=2:offset=100", { kind: "empty-page", pages: 2, offset: 100 }],
    ["html:path=/api/v1/", { kind: "html", path: "/api/v1/" }],
    ["503:path=token", { kind: "status", status: 503, path: "token" }],
    ["step-up=reports:read", { kind: "step-up", scope: "reports:read" }],
    [' {"kind":"page-size","size":7} ', { kind: "page-size", size: 7 }],
  ])("reads %s", (text, expected) => {
    expect(parseFault(text)).toEqual(expected);
  });

  it.each([
    ["teapot", ["kind", "teapot", "reset-mid-body"]],
    ["", ["fault", "503"]],
    ["429:times=often", ["times", "often", "whole number"]],
    ["429:times=-1", ["times", "-1"]],
    ["429:times=", ["times"]],
    ["html:colour=red", ['unknown field "colour" of html', "probability"]],
    ["503:tmes=3", ['unknown field "tmes"; did you mean times?']],
    ['{"kind":"status","status":503,"tmes":3}', ['unknown field "tmes"; did you mean times?']],
    ["html:constructor=1", ['unknown field "constructor" of html']],
    ["html=5", ['unknown field "value" of html']],
    ["99", ["status", "99", "200 to 599"]],
    ["slow-headers", ["ms", "missing"]],
    ["bad-offset={", ["value", "{", "JSON"]],
    ["reset-before:probability=1.5", ["probability", "1.5"]],
    ["reset-before:path=devices", ["path", "devices", "pool, domain, device"]],
    ['{"kind":"page-size","size":"7"}', ["size", "7"]],
    ['{"kind":"constructor"}', ["kind", "constructor"]],
    ["{kind", ["fault", "JSON"]],
    ["status=503:retry-after=2\u0007", ["retry-after"]],
  ])("refuses %j and says what, and what to do", (text, parts) => {
    let error: unknown;
    try {
      parseFault(text);
    } catch (caught) {
      error = caught;
    }
    expect(error).toMatchObject({ name: "AgentAuthError", code: "usage", class: "usage", hint: expect.any(String) });
    const { message, hint } = error as { message: string; hint: string };
    for (const part of parts) expect(`${message} ${hint}`).toContain(part);
  });

  it("never fails otherwise, whatever it is given", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.constantFrom(...KINDS).chain((kind) => fc.string().map((rest) => kind + rest)),
        ),
        (text) => {
          try {
            expect(KINDS).toContain(parseFault(text).kind);
          } catch (error) {
            expect(error).toMatchObject({ code: "usage" });
          }
        },
      ),
    );
  });
});
