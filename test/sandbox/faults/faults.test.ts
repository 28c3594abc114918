import { describe, expect, it } from "vitest";
import { EmptyPages, FaultController } from "../../../src/sandbox/faults/controller.js";
import { FAULT_KINDS, type Fault, type FaultKind, parseFault } from "../../../src/sandbox/index.js";
import { fc } from "../../helpers/properties.js";

const DEVICE = { path: "/api/v1/device", resource: "device", offset: 0 } as const;
const KINDS = Object.keys(FAULT_KINDS) as FaultKind[];

function strikes(
  fault: Fault,
  count: number,
  target: Parameters<FaultController["select"]>[0] = DEVICE,
  seed = 1,
): number[] {
  const faults = new FaultController(seed);
  faults.add(fault);
  return Array.from({ length: count }, (_, i) => i + 1).filter(() => faults.select(target).length > 0);
}

describe("FaultController", () => {
  it("strikes once by default, for ever with times 0, every or probability", () => {
    expect(strikes({ kind: "html" }, 5)).toEqual([1]);
    expect(strikes({ kind: "html", times: 2, after: 1 }, 5)).toEqual([2, 3]);
    expect(strikes({ kind: "html", times: 0 }, 4)).toEqual([1, 2, 3, 4]);
    expect(strikes({ kind: "html", every: 3 }, 9)).toEqual([3, 6, 9]);
    expect(strikes({ kind: "html", every: 2, after: 1, times: 2 }, 9)).toEqual([3, 5]);
    expect(strikes({ kind: "html", probability: 1 }, 3)).toEqual([1, 2, 3]);
    expect(strikes({ kind: "html", probability: 0 }, 3)).toEqual([]);
  });

  it("fits some kinds to what is asked for, by endpoint and operation", () => {
    const refresh = { path: "/pool_x/token", endpoint: "token", operation: "refresh_token" } as const;
    const code = { ...refresh, operation: "authorization_code" } as const;
    const call = { path: "/mcp", endpoint: "mcp", operation: "tools/call" } as const;
    const jwks = { path: "/pool_x/jwks", endpoint: "jwks" } as const;
    const hits = (fault: Fault) =>
      [refresh, code, call, jwks, DEVICE].map((target) => strikes(fault, 2, target).length);
    expect(hits({ kind: "refuse-refresh" })).toEqual([1, 0, 0, 0, 0]);
    expect(hits({ kind: "step-up", scope: "x" })).toEqual([0, 0, 2, 0, 0]);
    expect(hits({ kind: "reset-after", path: "token" })).toEqual([1, 1, 0, 0, 0]);
    expect(hits({ kind: "html" })).toEqual([1, 1, 1, 1, 1]);
  });

  it("draws from the seed", () => {
    const draw = (seed: number) => strikes({ kind: "html", probability: 0.3 }, 1000, DEVICE, seed);
    expect(draw(1)).toEqual(draw(1));
    expect(draw(1)).not.toEqual(draw(2));
    expect(draw(1).length).toBeGreaterThan(230);
    expect(draw(1).length).toBeLessThan(370);
  });

  it("selects by resource, path and offset", () => {
    const pool = { path: "/api/v1/pool", resource: "pool", offset: 50 } as const;
    const other = { path: "/mcp" };
    const hits = (fault: Fault) => [DEVICE, pool, other].map((target) => strikes(fault, 1, target).length);
    expect(hits({ kind: "html" })).toEqual([1, 1, 1]);
    expect(hits({ kind: "html", path: "device" })).toEqual([1, 0, 0]);
    expect(hits({ kind: "html", path: "/api/" })).toEqual([1, 1, 0]);
    expect(hits({ kind: "html", offset: 50 })).toEqual([0, 1, 0]);
    expect(hits({ kind: "extra-fields" })).toEqual([1, 1, 0]);
    expect(hits({ kind: "cycling-offset" })).toEqual([0, 1, 0]);
    expect(hits({ kind: "insert" })).toEqual([0, 0, 0]);
    expect(strikes({ kind: "insert" }, 1, { ...DEVICE, offset: 50 })).toEqual([1]);
    expect(strikes({ kind: "insert", offset: 0 }, 1)).toEqual([1]);
  });

  it("lets the first fault that replaces the answer have it, and spends no other on it", () => {
    const faults = new FaultController(1);
    faults.add([
      { kind: "status", status: 503 },
      { kind: "html" },
      { kind: "extra-fields" },
      { kind: "slow-headers", ms: 1 },
    ]);
    expect(faults.select(DEVICE).map(({ kind }) => kind)).toEqual(["status", "slow-headers"]);
    expect(faults.select(DEVICE).map(({ kind }) => kind)).toEqual(["html"]);
    expect(faults.select(DEVICE).map(({ kind }) => kind)).toEqual(["extra-fields"]);
    expect(faults.list().map(({ id, matched, fired }) => [id, matched, fired])).toEqual([
      [1, 3, 1],
      [2, 2, 1],
      [3, 1, 1],
      [4, 3, 1],
    ]);
    faults.clear();
    expect(faults.list()).toEqual([]);
  });

  it("adds none when one is wrong", () => {
    const faults = new FaultController(1);
    expect(() => faults.add([{ kind: "html" }, { kind: "html", times: -1 }])).toThrow(/times/);
    expect(faults.list()).toEqual([]);
  });

  it("cannot be changed through what it was given or gave", () => {
    const faults = new FaultController(1);
    const fault: Fault = { kind: "page-size", size: 7 };
    faults.add(fault);
    fault.size = 0;
    for (const state of faults.list()) state.fault.times = 0;
    expect(faults.list()[0]?.fault).toEqual({ kind: "page-size", size: 7 });
  });
});

it("EmptyPages lose no item and none twice, wherever they are", () => {
  const gap = fc.record({ at: fc.nat(80), length: fc.integer({ min: 1, max: 20 }) });
  fc.assert(
    fc.property(fc.array(gap, { maxLength: 5 }), fc.nat(60), fc.integer({ min: 1, max: 15 }), (gaps, count, size) => {
      const pages = new EmptyPages();
      for (const { at, length } of gaps) pages.add(at, length);
      const read: number[] = [];
      for (let offset = 0; offset < pages.end(count); offset += size) {
        const end = Math.min(count, pages.position(offset + size));
        for (let i = pages.position(offset); i < end; i++) read.push(i);
      }
      expect(read).toEqual(Array.from({ length: count }, (_, i) => i));
    }),
  );
});

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
