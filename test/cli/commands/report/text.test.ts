import stringWidth from "string-width";
import { describe, expect, it } from "vitest";
import type { Report, TimeSeries } from "../../../../src/cli/commands/report/model.js";
import { reportText } from "../../../../src/cli/commands/report/text.js";
import { textStyle } from "../../../../src/cli/commands/report/text-style.js";
import { timeBins } from "../../../../src/cli/commands/report/time-bins.js";
import { createMemoryIo } from "../../../../src/cli/io/io.js";
import { unsafeCharacters } from "../../../helpers/unsafe.js";
import { daysAgo, device, reportOn, TOKYO } from "./report-devices.js";

function textOf(report: Report, columns: number, env: Record<string, string> = {}, tty = false): string {
  return reportText(report, columns, textStyle(createMemoryIo({ tty, color: false }).stdout, env));
}

const HOSTILE = `<img src=x onerror=alert(1)>\u001b[31m\u202eevil\u0000`;

const mixed = reportOn([
  ...Array.from({ length: 30 }, (_, n) => device({ last_seen: { at: daysAgo(n * 12), asn: 64_500 + (n % 11) } })),
  device({
    last_seen: { ...TOKYO, asn: undefined },
    dynamic_client_details: { title: "エージェントエージェントエージェント" },
  }),
  device({
    id: HOSTILE,
    title: HOSTILE,
    status: HOSTILE,
    dynamic_client_details: { title: HOSTILE, pkce_required: false },
  }),
]);

describe("the text of a report", () => {
  it.each([40, 60, 79, 80, 99, 100, 120, 140])("fits %i columns", (columns) => {
    const lines = textOf(mixed, columns).split("\n");
    expect(lines.filter((line) => stringWidth(line) > columns)).toEqual([]);
  });

  it("uses no more than 140 columns of a wider terminal", () => {
    const widest = Math.max(
      ...textOf(mixed, 1000)
        .split("\n")
        .map((line) => stringWidth(line)),
    );
    expect(widest).toBeGreaterThan(100);
    expect(widest).toBeLessThanOrEqual(140);
  });

  it("has nothing that a terminal would act on, whatever the devices are called", () => {
    const text = textOf(mixed, 120);
    expect(unsafeCharacters(text, "\n")).toEqual([]);
    expect(text).toContain("\\e[31m\\u{202e}evil");
  });

  it("shows counts and shares that add up", () => {
    const text = textOf(
      reportOn([...Array.from({ length: 3 }, () => device()), device({ status: "revoked" }), {}]),
      60,
    );
    expect(text).toMatch(/^active +█+ +3 +60%$/m);
    expect(text).toMatch(/^revoked +█*.? +1 +20%$/m);
    expect(text).toMatch(/^unknown +1 +20%$/m);
  });

  it("draws with ASCII alone where the terminal or the locale has no more", () => {
    const plain = reportOn([device(), device({ last_seen: TOKYO, status: "revoked" })]);
    for (const env of [
      { TERM: "dumb" },
      { LANG: "C" },
      { LC_ALL: "POSIX", LANG: "de_DE.UTF-8" },
      { LANG: "de_DE.ISO-8859-1" },
    ]) {
      const text = textOf(plain, 80, env);
      expect(text).toMatch(/^[\n\x20-\x7e]+$/);
      expect(text).toMatch(/^active +#+ /m);
      expect(text).toContain("DE -> JP");
    }
    for (const env of [{}, { LANG: "de_DE.UTF-8" }, { LC_ALL: "C.UTF-8", LANG: "C" }]) {
      expect(textOf(plain, 80, env)).toMatch(/^active +█+ /m);
    }
  });

  it("says what is worth a look, why, and on which devices", () => {
    const text = textOf(reportOn([device({ id: "dev_a", dynamic_client_details: { pkce_required: false } }), {}]), 80);
    expect(text).toContain("PKCE not required: 1 device, all of them active (1 of 2 lack");
    expect(text).toMatch(/^ {2}dev_a {2}Laptop · Agent · DE · mcp$/m);
    expect(text).toContain("\n  What to do: Register the client again as one that requires PKCE.\n");
    expect(text).toMatch(/^not found: Redirect without https \(1 of 2 lack the data to check\)$/m);
  });

  it("isolates right-to-left text on a terminal, also where it is cut, and in a pipe prints it as it is", () => {
    const [title, client] = ["מחשב נייד", `عميل ${"ا".repeat(100)}`];
    const details = { title: client, pkce_required: false };
    const report = {
      ...reportOn([device({ id: "dev_a", title, dynamic_client_details: details })]),
      pool_title: title,
    };
    const text = textOf(report, 80, {}, true);
    expect(text).toContain(`Devices of pool \u2068${title}\u2069\n`);
    expect(text).toContain(`  dev_a  \u2068${title}\u2069 · \u2068عميل `);
    expect(text.match(/^\u2068عميل ا*…\u2069 /m)).not.toBeNull();
    for (const line of text.split("\n")) {
      expect(line.split("\u2068")).toHaveLength(line.split("\u2069").length);
      expect(stringWidth(line)).toBeLessThanOrEqual(80);
    }
    expect(textOf(report, 80)).not.toMatch(/[\u2068\u2069]/);
  });

  it("names the pool by its title, and by its id where the service does not say the title", () => {
    const report = reportOn([device()]);
    expect(textOf(report, 80)).toMatch(/^Devices of pool pool_1\n1 device · .* UTC$/m);
    const titled = textOf({ ...report, pool_title: `Laptops\u001b[2J` }, 90, {}, true);
    expect(titled).toMatch(/^Devices of pool Laptops\\e\[2J\n1 device · .* UTC · pool_1$/m);
    const long = textOf({ ...report, pool_title: "a title ".repeat(30) }, 60).split("\n");
    expect(long.filter((line) => stringWidth(line) > 60)).toEqual([]);
  });

  it("can be made of no device at all", () => {
    const text = textOf(reportOn([]), 80);
    expect(text).toContain("0 devices");
    expect(text).toContain("no device has a time when it was seen");
    expect(text).toContain("FINDINGS\nnone\n");
  });

  it("says on its face what is missing", () => {
    const text = textOf({ ...reportOn([device()], [`begun at \u001b[2J`]), complete: false }, 80);
    expect(text).toContain("INCOMPLETE");
    expect(text).toContain("note: begun at \\e[2J");
  });
});

describe("stretches of time", () => {
  const seen = (...dates: string[]): TimeSeries => ({
    earliest: dates[0] ?? null,
    latest: dates.at(-1) ?? null,
    unknown: 0,
    days: dates.map((date) => ({ date, count: 1 })),
  });

  it.each([
    ["2026-01-30", "2026-02-02", 10, "day", ["2026-01-30", "2026-01-31", "2026-02-01", "2026-02-02"]],
    ["2026-01-01", "2026-01-12", 3, "week", ["2025-12-29", "2026-01-05", "2026-01-12"]],
    ["2025-12-31", "2026-03-01", 4, "month", ["2025-12-01", "2026-01-01", "2026-02-01", "2026-03-01"]],
    ["2025-11-30", "2026-04-01", 3, "quarter", ["2025-10-01", "2026-01-01", "2026-04-01"]],
    ["2023-12-31", "2026-01-01", 4, "year", ["2023-01-01", "2024-01-01", "2025-01-01", "2026-01-01"]],
    ["1999-12-31", "2020-01-01", 4, "decade", ["1990-01-01", "2000-01-01", "2010-01-01", "2020-01-01"]],
  ])("from %s to %s in at most %i are of a %s", (from, to, most, unit, starts) => {
    const bins = timeBins(seen(from), seen(from, to), most);
    expect([bins?.unit, bins?.starts]).toEqual([unit, starts]);
    const rest = starts.slice(1).map(() => 0);
    expect(bins?.first_seen).toEqual([1, ...rest]);
    expect(bins?.last_seen).toEqual([1, ...rest.slice(1), 1]);
  });

  it("lose no device, whatever the days", () => {
    const days = Array.from({ length: 400 }, (_, n) => new Date(n * 37 * 86_400_000 + 1e9).toISOString().slice(0, 10));
    for (const most of [10, 54, 60, 500, 20_000]) {
      const bins = timeBins(seen(...days), seen(), most);
      expect(bins?.first_seen.reduce((sum, count) => sum + count, 0)).toBe(400);
    }
  });
});
