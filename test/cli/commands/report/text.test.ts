import stringWidth from "string-width";
import { describe, expect, it } from "vitest";
import { type Report, shareText } from "../../../../src/cli/commands/report/findings.js";
import { reportText } from "../../../../src/cli/commands/report/run.js";
import { createMemoryIo } from "../../../helpers/memory-io.js";
import { unsafeCharacters } from "../../../helpers/unsafe.js";
import { daysAgo, device, reportOn, TOKYO } from "./report-devices.js";

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
    expect(text).toMatch(/^active +3 +60%$/m);
    expect(text).toMatch(/^revoked +1 +20%$/m);
    expect(text).toMatch(/^unknown +1 +20%$/m);
  });

  it("uses ASCII alone where the terminal or the locale has no more", () => {
    const plain = reportOn([device({ dynamic_client_details: { pkce_required: false, title: "x".repeat(90) } })]);
    for (const env of [{ TERM: "dumb" }, { LANG: "C" }, { LC_ALL: "POSIX", LANG: "de_DE.UTF-8" }]) {
      expect(textOf(plain, 80, env)).toMatch(/^[\n\x20-\x7e]+$/);
    }
    for (const env of [{}, { LANG: "de_DE.UTF-8" }, { LC_ALL: "C.UTF-8", LANG: "C" }]) {
      expect(textOf(plain, 80, env)).toContain(" · Laptop · mcp");
    }
  });

  it("says what is worth a look, why, and on which devices", () => {
    const text = textOf(reportOn([device({ id: "dev_a", dynamic_client_details: { pkce_required: false } }), {}]), 80);
    expect(text).toContain("PKCE not required: 1 device (1 of 2 lack the data to check)\n");
    expect(text).toMatch(/^ {2}dev_a · Laptop · mcp$/m);
    expect(text).toContain("\n  What to do: Register the client again as one that requires PKCE.\n");
    expect(text).toMatch(/^not found: Redirect without https \(1 of 2 lack the data to check\)$/m);
  });

  it("isolates right-to-left text on a terminal, also where it is cut, and in a pipe prints it as it is", () => {
    const [title, client] = ["מחשב נייד", `عميل ${"ا".repeat(100)}`];
    const details = { title: client, pkce_required: false };
    const report = { ...reportOn([device({ id: "dev_a", title, dynamic_client_details: details })]), pool_id: title };
    const text = textOf(report, 80, {}, true);
    expect(text).toContain(`Devices of pool \u2068${title}\u2069\n`);
    expect(text).toContain(` · \u2068${title}\u2069 · `);
    expect(text.match(/^\u2068عميل ا*…\u2069 /m)).not.toBeNull();
    for (const line of text.split("\n")) {
      expect(line.split("\u2068")).toHaveLength(line.split("\u2069").length);
      expect(stringWidth(line)).toBeLessThanOrEqual(80);
    }
    expect(textOf(report, 80)).not.toMatch(/[\u2068\u2069]/);
  });

  it("can be made of no device at all", () => {
    const text = textOf(reportOn([]), 80);
    expect(text).toContain("0 devices");
    expect(text).toMatch(/^CLIENTS\nnone +0 +0%$/m);
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
