import stringWidth from "string-width";
import { describe, expect, it } from "vitest";
import { chartsOf, shareText } from "../../../../src/cli/commands/report/charts.js";
import type { Report } from "../../../../src/cli/commands/report/model.js";
import { reportText } from "../../../../src/cli/commands/report/text.js";
import { createMemoryIo } from "../../../helpers/memory-io.js";
import { unsafeCharacters } from "../../../helpers/unsafe.js";
import { daysAgo, device, reportOn, TOKYO, variousDevices } from "./report-devices.js";

function textOf(report: Report, columns: number, env: Record<string, string> = {}, tty = false): string {
  const { isTTY, colors } = createMemoryIo({ tty, color: false }).stdout;
  return reportText(report, { isTTY, colors, columns }, env);
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
  it("is as it was approved: narrow and plain, wide and painted", () => {
    const various = reportOn(variousDevices(), [
      "the list ended early: 24 devices of the 4,321 of the pool could be read",
    ]);
    expect(textOf(various, 60)).toMatchSnapshot();
    const { isTTY, colors } = createMemoryIo({ tty: true, color: true }).stdout;
    const painted = { ...various, complete: false, pool_title: "Laptops" };
    const text = reportText(painted, { isTTY, colors, columns: 100 }, {});
    expect(text.replaceAll("\u001b", "\\e")).toMatchSnapshot();
  });

  it.each([40, 60, 79, 80, 99, 100, 120, 140])("fits %i columns", (columns) => {
    const lines = textOf(mixed, columns).split("\n");
    expect(lines.filter((line) => stringWidth(line) > columns)).toEqual([]);
  });

  it("uses no more than 100 columns of a wider terminal", () => {
    const widest = Math.max(
      ...textOf(mixed, 1000)
        .split("\n")
        .map((line) => stringWidth(line)),
    );
    expect(widest).toBe(100);
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
    expect(text).toMatch(/^FIRST SEEN\nnone +0 +0%$/m);
    expect(text).toContain("FINDINGS\nnone\n");
  });

  it("says on its face what is missing", () => {
    const text = textOf({ ...reportOn([device()], [`begun at \u001b[2J`]), complete: false }, 80);
    expect(text).toContain("INCOMPLETE");
    expect(text).toContain("note: begun at \\e[2J");
  });
});

it.each([
  [0, 0, "0%"],
  [0, 9, "0%"],
  [1, 101, "<1%"],
  [1, 100, "1%"],
  [1, 8, "13%"],
  [99, 100, "99%"],
  [199, 200, ">99%"],
  [7, 7, "100%"],
])("the share of %i of %i is %s", (part, whole, text) => {
  expect(shareText(part, whole)).toBe(text);
});

describe("devices over time", () => {
  const rowsOf = (...dates: string[]) => {
    const report = reportOn(dates.map((date) => device({ last_seen: { at: Date.parse(date) / 1000 } })));
    const last = chartsOf(report)
      .flatMap(([, charts]) => charts)
      .find(({ title }) => title === "Last seen");
    return [last?.about, last?.top.map(({ value, count }) => `${value} ${count}`)];
  };

  it.each([
    ["day", ["2026-01-30", "2026-01-28"], ["2026-01-30 1", "2026-01-29 0", "2026-01-28 1"]],
    ["month", ["2026-01-30", "2025-11-02", "2025-11-30"], ["2026-01 1", "2025-12 0", "2025-11 2"]],
  ])("are counted by %s", (unit, dates, rows) => {
    expect(rowsOf(...dates)).toEqual([`Devices by ${unit}, UTC`, rows]);
  });

  it("lose no device, whatever the days", () => {
    const days = Array.from({ length: 400 }, (_, n) => new Date(n * 37 * 86_400_000 + 1e9).toISOString());
    const [, rows] = rowsOf(...days);
    expect([...(rows ?? [])].reduce((sum, row) => sum + Number(row.split(" ")[1]), 0)).toBe(400);
  });
});
