import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { devNull } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { html } from "../../../../src/cli/commands/report/html/markup.js";
import { reportPage } from "../../../../src/cli/commands/report/html/page.js";
import { countryShapes, equalEarth } from "../../../../src/cli/commands/report/html/world.js";
import { checkHtmlFile, writeHtmlFile } from "../../../../src/cli/commands/report/html-file.js";
import { temporaryFolder } from "../../../helpers/folder.js";
import { fc } from "../../../helpers/properties.js";
import { ON_WINDOWS } from "../../../helpers/systems.js";
import { everyText, unsafeCharacters } from "../../../helpers/unsafe.js";
import { BERLIN, daysAgo, device, reportOn, TOKYO } from "./report-devices.js";

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
  return { ...reportOn(devicesThatSay(text), [text]), pool_id: text, pool_title: text };
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

  it("describes each picture in words, and has its numbers in a table", () => {
    const page = reportPage(reportOn([device(), device({ last_seen: TOKYO })]));
    const pictures = [...page.matchAll(/<svg [^>]*role="img" aria-labelledby="(\S+) (\S+)">/g)];
    expect(pictures).toHaveLength(5);
    for (const [, title, description] of pictures) {
      expect(page).toMatch(
        new RegExp(`<title id="${title}">[^<]{5,}</title><desc id="${description}">[^<]{20,}</desc>`),
      );
    }
    expect(page).toMatch(/<th scope="row">2026-01-30<\/th><td class="n">0<\/td><td class="n">2<\/td>/);
    expect(page).toMatch(/Japan <small>JP<\/small>/);
  });

  it("names the pool by its title, and by its id where the service does not say the title", () => {
    const report = reportOn([device()]);
    expect(reportPage(report)).toContain("<title>Devices of pool pool_1</title>");
    const page = reportPage({ ...report, pool_title: "Laptops & more" });
    expect(page).toContain("<title>Devices of pool Laptops &amp; more</title>");
    expect(page).toContain("<h1>Pool <bdi>Laptops &amp; more</bdi></h1>");
    expect(page).toContain('<p class="sub"><bdi>pool_1</bdi>, 1 device, read');
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
    expect(ids.length).toBeGreaterThan(8);
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("draws a country in the shade of its count, and a line between the places of a device that moved", () => {
    const still = reportPage(reportOn([device()]));
    const moved = reportPage(reportOn([device(), device({ last_seen: TOKYO })]));
    const lines = (page: string) => page.match(/stroke="var\(--route\)"/g)?.length ?? 0;
    const shaded = (page: string) => page.match(/<path [^>]*fill="var\(--shade-1\)"/g)?.length ?? 0;
    expect([lines(still), lines(moved)]).toEqual([0, 1]);
    expect([shaded(still), shaded(moved) > shaded(still)]).toEqual([1, true]);
  });

  it("says on its face what is missing, and does not where nothing is", () => {
    const report = reportOn([device()], ["the list ended early: 1 device could be read"]);
    expect(reportPage(report)).not.toContain("Incomplete");
    const page = reportPage({ ...report, complete: false });
    expect(page).toContain('<p class="incomplete">Incomplete: not all of the devices are in these numbers.</p>');
    expect(page).toContain("the list ended early: 1 device could be read");
  });

  it("can be made of no device, and of devices that say nothing", () => {
    for (const devices of [[], [{}, {}]]) {
      const page = reportPage(reportOn(devices));
      expect(page).toContain("No device has a time when it was seen.");
      expect(page).not.toMatch(/NaN|undefined|Infinity/);
    }
  });

  it("is of one size whether there are few places or many", () => {
    const many = Array.from({ length: 5000 }, (_, n) => {
      const [latitude, longitude] = [((n * 7) % 170) - 85, ((n * 13) % 360) - 180];
      const last_seen = { lat_long: [latitude, longitude], at: daysAgo(n % 900) };
      return device({ first_seen: { lat_long: [-latitude, longitude] }, last_seen });
    });
    expect(reportPage(reportOn(many)).length).toBeLessThan(400_000);
  });
});

describe("templates of HTML", () => {
  it("escape every text so that it is text again, inside quotes too", () => {
    fc.assert(
      fc.property(fc.string(), (text) => {
        const { markup } = html`<b title="${text}">${text}</b>`;
        expect(markup.match(/[<>"]/g)?.join("")).toBe('<""><>');
      }),
    );
  });
});

describe("the map of the world", () => {
  it("knows the countries by the codes that devices have", () => {
    const names = countryShapes().features.map(({ properties }) => properties.name);
    for (const code of ["US", "DE", "JP", "BR", "ZA", "AU", "RU", "FJ"]) expect(names).toContain(code);
    expect(names.filter((name) => !/^(?:[A-Z]{2})?$/.test(name))).toEqual([]);
  });

  it("has no edge that leaps across the map at the date line", () => {
    const leaps = countryShapes().features.flatMap(({ geometry }) =>
      geometry.coordinates
        .flat()
        .flatMap((ring) => ring.slice(1).filter(([x = 0], at) => Math.abs(x - (ring[at]?.[0] ?? x)) > 180)),
    );
    expect(leaps).toEqual([]);
  });

  it("keeps areas true: a band of latitudes has its share of the globe", () => {
    const width = (latitude: number) => equalEarth([180, latitude])[0] - equalEarth([-180, latitude])[0];
    let area = 0;
    for (let latitude = 30; latitude < 60; latitude += 0.01) {
      area += width(latitude + 0.005) * (equalEarth([0, latitude])[1] - equalEarth([0, latitude + 0.01])[1]);
    }
    expect(area / (4 * Math.PI)).toBeCloseTo((Math.sin(Math.PI / 3) - Math.sin(Math.PI / 6)) / 2, 3);
    expect(equalEarth([0, 50])[1]).toBeLessThan(equalEarth([0, 0])[1]);
  });

  it("shows Berlin to the west of Tokyo", () => {
    const x = ({ lat_long: [latitude = 0, longitude = 0] }: { lat_long: number[] }) =>
      equalEarth([longitude, latitude])[0];
    expect(x(BERLIN)).toBeLessThan(x(TOKYO));
  });
});

describe("the file of a page", () => {
  it("is written whole, for everyone to read, and leaves nothing beside it", () => {
    const folder = temporaryFolder();
    const path = join(folder, "out.html");
    checkHtmlFile(path, false);
    writeHtmlFile(path, "page", false);
    expect(readFileSync(path, "utf8")).toBe("page");
    expect(statSync(path).mode & 0o777).toBe(0o644 & ~process.umask());
    expect(readdirSync(folder)).toEqual(["out.html"]);
  });

  it("takes the place of no other file, not even of one that has just been created", () => {
    const folder = temporaryFolder();
    const path = join(folder, "out.html");
    checkHtmlFile(path, false);
    writeFileSync(path, "somebody's");
    for (const attempt of [() => checkHtmlFile(path, false), () => writeHtmlFile(path, "page", false)]) {
      expect(attempt).toThrow(
        expect.objectContaining({ class: "usage", message: expect.stringMatching(/already exists$/) }),
      );
    }
    expect([readFileSync(path, "utf8"), readdirSync(folder)]).toEqual(["somebody's", ["out.html"]]);
  });

  it("takes the place of another one with --force, and of a link but not of what it leads to", () => {
    const folder = temporaryFolder();
    const path = join(folder, "out.html");
    writeFileSync(join(folder, "other"), "somebody's");
    symlinkSync("other", path);
    checkHtmlFile(path, true);
    writeHtmlFile(path, "page", true);
    expect([readFileSync(path, "utf8"), readFileSync(join(folder, "other"), "utf8")]).toEqual(["page", "somebody's"]);
  });

  it("is refused by name before anything is read where it cannot be", () => {
    const folder = temporaryFolder();
    mkdirSync(join(folder, "sub"));
    writeFileSync(join(folder, "file"), "");
    const refused = (path: string) => {
      try {
        checkHtmlFile(path, true);
      } catch (error) {
        return (error as Error).message.replaceAll(folder, "");
      }
      return "taken";
    };
    expect(refused(join(folder, "sub"))).toBe('--html "/sub" is a folder');
    if (!ON_WINDOWS) expect(refused(devNull)).toBe('--html "/dev/null" is not a file');
    expect(refused("")).toBe('--html "" is not a file name');
    expect(refused(join(folder, "gone", "out.html"))).toBe(
      '--html "/gone/out.html" is in a folder that does not exist',
    );
    expect(refused(join(folder, "file", "out.html"))).toBe('--html "/file/out.html" is in a folder that is a file');
  });
});
