import { describe, expect, it } from "vitest";
import { createCounter } from "../../../../src/cli/commands/report/run.js";
import { daysAgo, device, findingOf, reportOn } from "./report-devices.js";

/** How one device is judged: found with its detail, found not, or not to be judged. */
function judged(code: string, fields: Record<string, unknown>): string {
  const { count, judged, not_judged, examples } = findingOf(reportOn([device({ id: "dev_x", ...fields })]), code);
  expect(judged + not_judged).toBe(1);
  if (not_judged === 1) return "cannot be judged";
  return count === 0 ? "fine" : `found: ${examples[0]?.id} ${examples[0]?.detail}`;
}

describe("a device with nothing worth a look", () => {
  it("is judged by every rule and found by none", () => {
    const { findings } = reportOn([device()]);
    expect(findings.map(({ code, count, judged, not_judged }) => [code, count, judged, not_judged])).toEqual([
      ["insecure_redirect", 0, 1, 0],
      ["pkce_optional", 0, 1, 0],
      ["shared_fingerprint", 0, 1, 0],
      ["stale_active", 0, 1, 0],
    ]);
  });
});

describe("a device that is nothing but holes", () => {
  const nothings = [
    {},
    { first_seen: null, last_seen: null, dynamic_client_details: null, status: null },
    { first_seen: [], last_seen: "yesterday", dynamic_client_details: 7, status: {}, id: 7 },
    {
      first_seen: { at: "1", country_code: "de", lat_long: [1], asn: 0, remote_ip: 1, ja4_fingerprint: null },
      last_seen: {
        at: Number.NaN,
        country_code: "DEU",
        lat_long: [91, 0],
        asn: 1.5,
        remote_ip: "",
        ja4_fingerprint: "",
      },
      dynamic_client_details: { pkce_required: "false", redirect_uris: "http://evil.example", title: 5 },
    },
  ];

  it.each(nothings)("cannot be judged by any rule: %j", (nothing) => {
    const { findings, devices } = reportOn([nothing]);
    expect(devices.counted).toBe(1);
    expect(findings.map(({ count, judged, not_judged }) => [count, judged, not_judged])).toEqual(
      findings.map(() => [0, 0, 1]),
    );
  });

  it("is counted as not saying, and never as a value", () => {
    const report = reportOn(nothings);
    const { status, session_type, networks, clients, countries, fingerprints } = report;
    for (const tally of [status, session_type, networks, clients, countries, fingerprints])
      expect(tally).toEqual({ distinct: 0, unknown: 4, top: [], others: 0 });
  });
});

describe("redirects", () => {
  it.each([
    ["https://app.example/callback", "fine"],
    ["http://127.0.0.1:1234/callback", "fine"],
    ["http://127.1/callback", "fine"],
    ["http://[::1]:1234/callback", "fine"],
    ["http://localhost:1234/callback", "fine"],
    ["com.example.app:/callback", "fine"],
    ["cursor://anysphere/callback", "fine"],
    ["not an address", "fine"],
    ["http://app.example/callback?code=1", "found: dev_x http://app.example"],
    ["http://user:word@app.example:8080/callback", "found: dev_x http://app.example:8080"],
    ["http://127.0.0.1.evil.example/callback", "found: dev_x http://127.0.0.1.evil.example"],
    ["http://localhost.evil.example/callback", "found: dev_x http://localhost.evil.example"],
    ["http://192.168.1.2/callback", "found: dev_x http://192.168.1.2"],
    ["JavaScript:alert(1)", "found: dev_x javascript:"],
    ["data:text/html,hello", "found: dev_x data:"],
    ["ws://app.example/callback", "found: dev_x ws:"],
    ["ftp://app.example/callback", "found: dev_x ftp:"],
    ["file:///callback", "found: dev_x file:"],
    ["blob:https://app.example/1", "found: dev_x blob:"],
    ["vbscript:x", "found: dev_x vbscript:"],
    ["about:blank", "found: dev_x about:"],
  ])("%s: %s", (address, verdict) => {
    const redirect_uris = ["https://app.example/other", address];
    expect(judged("insecure_redirect", { dynamic_client_details: { redirect_uris } })).toBe(verdict);
  });

  it("are none in an empty list, and not known in a list of something else", () => {
    const of = (redirect_uris: unknown) => judged("insecure_redirect", { dynamic_client_details: { redirect_uris } });
    expect([of([]), of([1, null]), of(undefined)]).toEqual(["fine", "cannot be judged", "cannot be judged"]);
  });
});

describe("the other rules", () => {
  it.each([
    ["pkce_optional", { dynamic_client_details: { pkce_required: false } }, "found: dev_x mcp"],
    ["pkce_optional", { dynamic_client_details: { pkce_required: null } }, "cannot be judged"],
    ["stale_active", { last_seen: { at: daysAgo(91) } }, "found: dev_x last seen 2025-11-01"],
    ["stale_active", { last_seen: { at: daysAgo(90) } }, "fine"],
    ["stale_active", { last_seen: { at: daysAgo(400) }, status: "revoked" }, "fine"],
    ["stale_active", { last_seen: { at: undefined }, status: "revoked" }, "fine"],
    ["stale_active", { last_seen: { at: undefined } }, "cannot be judged"],
    ["stale_active", { status: undefined }, "cannot be judged"],
  ])("%s of %j: %s", (code, fields, verdict) => {
    expect(judged(code, fields)).toBe(verdict);
  });

  it("name ten devices at the most", () => {
    const open = { dynamic_client_details: { pkce_required: false } };
    const devices = Array.from({ length: 12 }, () => device(open));
    const { count, examples } = findingOf(reportOn(devices), "pkce_optional");
    expect([count, examples.length]).toEqual([12, 10]);
    expect(examples.map(({ id }) => id)).toEqual(devices.slice(0, 10).map(({ id }) => id));
    const unnamed = findingOf(reportOn([device({ ...open, id: undefined })]), "pkce_optional");
    expect([unnamed.count, unnamed.examples]).toEqual([1, []]);
  });
});

describe("many devices from one fingerprint", () => {
  const from = (remote_ip: string, ja4_fingerprint: string, count: number) =>
    Array.from({ length: count }, () => device({ last_seen: { remote_ip, ja4_fingerprint } }));

  it("needs five from the same address: a fingerprint alone is a program that thousands use", () => {
    const shared = (...devices: object[]) => findingOf(reportOn(devices), "shared_fingerprint").count;
    expect(shared(...from("192.0.2.1", "a", 7))).toBe(3);
    expect(shared(...from("192.0.2.1", "a", 4))).toBe(0);
    expect(shared(...from("192.0.2.1", "a", 4), ...from("192.0.2.2", "a", 4))).toBe(0);
    expect(shared(...from("192.0.2.1", "a", 4), ...from("192.0.2.1", "b", 4))).toBe(0);
  });

  it("names those from the fifth on, with their origin", () => {
    const devices = from("192.0.2.2", "b", 6);
    const { examples } = findingOf(reportOn(devices), "shared_fingerprint");
    expect(examples).toMatchObject([
      { id: devices[4]?.["id"], detail: "device 5 from 192.0.2.2 with b" },
      { id: devices[5]?.["id"], detail: "device 6 from 192.0.2.2 with b" },
    ]);
  });
});

describe("the findings", () => {
  it("each say what can be done, and name the title of a device where the service sent one", () => {
    const dynamic_client_details = { pkce_required: false };
    const report = reportOn([
      device({ id: "dev_a", title: "nightly", dynamic_client_details }),
      { id: "dev_b", dynamic_client_details },
    ]);
    for (const { action } of report.findings) expect(action).toMatch(/\.$/);
    expect(findingOf(report, "pkce_optional").examples).toMatchObject([
      { id: "dev_a", title: "nightly" },
      { id: "dev_b", title: null },
    ]);
  });
});

describe("counting", () => {
  it("is exact up to the cap, and counts together what came after it", () => {
    const counter = createCounter(2);
    for (const value of ["a", "b", "b", "c", undefined, "a", "b", "c"]) counter.add(value);
    expect(counter.tally(1)).toEqual({ distinct: 2, unknown: 1, top: [{ value: "b", count: 3 }], others: 4 });
  });

  it("stays bounded where every device invents a client, and loses none", () => {
    const aggregate = Array.from({ length: 10_005 }, (_, n) => ({ dynamic_client_details: { title: `c${n}` } }));
    const { clients } = reportOn(aggregate);
    expect([clients.distinct, clients.top.length, clients.others]).toEqual([10_000, 50, 9955]);
  });

  it("never looks at a client secret", () => {
    const details = Object.defineProperty({ title: "Agent" }, "client_secret", {
      enumerable: true,
      get() {
        throw new Error("the secret was read");
      },
    });
    expect(reportOn([{ id: "dev_1", dynamic_client_details: details }]).clients.top).toEqual([
      { value: "Agent", count: 1 },
    ]);
    expect(JSON.stringify(reportOn([device()]))).not.toContain("planted-secret");
  });

  it("cuts a text that is too long to be kept", () => {
    const { clients } = reportOn([device({ dynamic_client_details: { title: "x".repeat(100_000) } })]);
    expect(clients.top[0]?.value).toBe(`${"x".repeat(200)}…`);
  });
});
