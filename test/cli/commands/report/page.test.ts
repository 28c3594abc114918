import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import { reportPage } from "../../../../src/cli/commands/report/page.js";
import { everyText, unsafeCharacters } from "../../../helpers/unsafe.js";
import { device, reportOn, TOKYO } from "./report-devices.js";

const HOSTILE = `"'><script>alert(1)</script><img src=x onerror=alert(1)>&lt;</style></title>\u202e\u001b[31m\u0000`;

/** The tags of a page with their attributes, as a parser that trusts nothing but quotes and brackets reads them. */
function tagsOf(page: string): string[] {
  return page.replace(/<style>.*?<\/style>/s, "<style></style>").match(/<[a-z!][^>]*>/gi) ?? [];
}

/** Devices that say one text wherever they can say any. */
function devicesThatSay(text: string): object[] {
  const moment = { country_code: text, ja4_fingerprint: text, remote_ip: text, city: text, user_agent: text };
  const client = { title: text, auth_profile: text, redirect_uris: ["http://app.example", text], pkce_required: false };
  const fields = { title: text, status: text, session_type: text, first_seen: moment, last_seen: moment };
  return Array.from({ length: 6 }, (_, n) => device({ ...fields, id: `${text}${n}`, dynamic_client_details: client }));
}

/** A report whose every text is one. */
function reportThatSays(text: string) {
  return { ...reportOn(devicesThatSay(text), [text]), pool_id: text };
}

const tame = tagsOf(reportPage(reportThatSays("harmless")));

describe("the page of a report", () => {
  it("has the same tags and attributes whatever the devices say", () => {
    const page = reportPage(reportThatSays(HOSTILE));
    expect(page).toContain("&lt;script&gt;alert(1)&lt;/script&gt;");
    expect(tagsOf(page)).toEqual(tame);
    expect(unsafeCharacters(page, "\n")).toEqual([]);
  });

  it("shows no character of all Unicode raw that hides or turns what is beside it", () => {
    const report = reportOn([device()], everyText(1024));
    expect(unsafeCharacters(reportPage(report), "\n")).toEqual([]);
  });

  it("has a policy for its one style, and needs nothing that the policy forbids", () => {
    const page = reportPage(reportOn([device(), device({ last_seen: TOKYO })]));
    const style = /<style>(.*?)<\/style>/s.exec(page)?.[1] ?? "";
    const hash = createHash("sha256").update(style).digest("base64");
    const policy = `default-src 'none'; style-src 'sha256-${hash}'; img-src data:; base-uri 'none'; form-action 'none'`;
    expect(page).toContain(`<meta http-equiv="Content-Security-Policy" content="${policy.replaceAll("'", "&#39;")}">`);
    expect(page.indexOf("Content-Security-Policy")).toBeLessThan(page.indexOf("<style>"));
    for (const forbidden of [/ style=/, /<script/i, /\son\w+=/i, /<img/i, /<iframe/i, /url\(/, /@import/]) {
      expect(page).not.toMatch(forbidden);
    }
    const addresses = [...page.matchAll(/\b(?:href|src|action)="([^"]*)"/g)].map(([, address]) => address);
    expect(addresses).toEqual(["data:,"]);
  });

  it("names each value in a table, with its bar, its count and its share", () => {
    const page = reportPage(reportOn([device(), device({ last_seen: TOKYO })]));
    const row = (name: string) =>
      new RegExp(`<bdi>${name}</bdi></th><td><svg .*?</svg></td>(.*?)</tr>`).exec(page)?.[1];
    expect(row("JP")).toBe('<td class="n">1</td><td class="n">50%</td>');
    expect(page).toContain("<title>Devices of pool pool_1</title>");
  });

  it("shows twelve values of a field, and counts the others together", () => {
    const codes = Array.from({ length: 20 }, (_, n) => `A${String.fromCharCode(65 + n)}`);
    const page = reportPage(reportOn(codes.map((country_code) => device({ last_seen: { country_code } }))));
    expect(page).toContain('<th scope="row">8 others</th><td></td><td class="n">8</td>');
    expect(codes.filter((code) => page.includes(`<bdi>${code}</bdi>`))).toHaveLength(12);
  });

  it("draws each bar as long as its count is beside the greatest, over nothing that looks like the whole", () => {
    const statuses = ["active", "active", "active", "revoked"];
    const page = reportPage(reportOn(statuses.map((status) => device({ status }))));
    const rows = (name: string) => page.match(new RegExp(`<bdi>${name}</bdi></th><td>(.*?)</td>`))?.[1];
    expect(rows("active")?.match(/<rect [^>]*>/g)).toEqual(['<rect class="bar" width="100%" height="8" rx="4"/>']);
    expect(rows("revoked")?.match(/<rect [^>]*>/g)).toEqual(['<rect class="bar" width="33.3%" height="8" rx="4"/>']);
  });

  it("has one element for an id", () => {
    const ids = [...reportPage(reportOn([device()])).matchAll(/ id="([^"]*)"/g)].map(([, id]) => id);
    expect(ids).toEqual(["findings", "numbers"]);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("says on its face what is missing, and does not where nothing is", () => {
    const report = reportOn([device()], ["the list ended early: 1 device could be read"]);
    expect(reportPage(report)).not.toContain("Incomplete");
    const page = reportPage({ ...report, complete: false });
    expect(page).toContain('<p class="warn">Incomplete: not all of the devices are in these numbers.</p>');
    expect(page).toContain("the list ended early: 1 device could be read");
  });

  it("can be made of no device, and of devices that say nothing", () => {
    for (const devices of [[], [{}, {}]]) {
      const page = reportPage(reportOn(devices));
      expect(page).toContain(devices.length === 0 ? "none</th>" : "unknown</th>");
      expect(page).not.toMatch(/NaN|undefined|Infinity/);
    }
  });
});
