import stringWidth from "string-width";
import { describe, expect, it } from "vitest";
import { doctorText } from "../../../../src/cli/commands/doctor/run.js";
import { createMemoryIo } from "../../../helpers/memory-io.js";

const REPORT = {
  version: "0.1.0",
  node: "v20.20.2",
  platform: "linux x64 6.18.44",
  checks: [
    { name: "node", state: "ok", found: "v20.20.2, at least 20.19 is needed" },
    {
      name: "settings file",
      state: "warning",
      found: "others can read it, which lets them see where the API token is kept",
      hint: "agentauth doctor --fix takes the permission away from everybody else on this machine",
    },
  ],
  settings: [{ name: "output", value: "table on a terminal, plain in a pipe", source: "default" }],
} satisfies Parameters<typeof doctorText>[0];

const { colors } = createMemoryIo().stdout;
const words = (text: string) => text.split(/\s+/).filter(Boolean);

describe("what doctor says", () => {
  it.each([120, 80, 60])("is broken between words on a terminal of %i columns", (columns) => {
    const text = doctorText(REPORT, colors, columns);
    expect(text.split("\n").filter((line) => stringWidth(line) > columns)).toEqual([]);
    for (const { found, hint = "" } of REPORT.checks as readonly { found: string; hint?: string }[]) {
      expect(words(text).join(" ")).toContain(words(found).join(" "));
      expect(words(text).join(" ")).toContain(words(hint).join(" "));
    }
  });

  it("is beside the names", () => {
    expect(doctorText(REPORT, colors, 80)).toContain(
      "\nwarning  settings file  others can read it, which lets them see where the API\n                        token is kept\n",
    );
    expect(doctorText(REPORT, colors, 60)).toContain("\noutput  table on a terminal, plain in a pipe (default)\n");
  });

  it("is as it was approved: painted, with every state, wide and narrow, and without a check", () => {
    const states = (["ok", "warning", "failed", "skipped"] as const).map((state) => ({
      name: `a ${state}`,
      state,
      found: `it is \u001b ${state}`,
    }));
    const settings = [...REPORT.settings, { name: "pool", value: null, source: "default" }];
    const report = { ...REPORT, checks: [...REPORT.checks, ...states], settings };
    const painted = createMemoryIo({ tty: true, color: true }).stdout.colors;
    for (const columns of [undefined, 90, 20]) {
      expect(doctorText(report, painted, columns).replaceAll("\u001b", "\\e")).toMatchSnapshot(`${columns}`);
    }
    expect(doctorText({ ...report, checks: [] }, colors)).toMatchSnapshot("no check");
  });

  it("has last what failed, and before it what it warns of", () => {
    const states = ["failed", "ok", "warning", "skipped", "failed", "warning"] as const;
    const checks = states.map((state, at) => ({ name: `check ${at}`, state, found: "x" }));
    const text = doctorText({ ...REPORT, checks }, colors);
    const order = text.match(/check \d|output /g);
    const [settings, warnings, failures] = ["output ", ["check 2", "check 5"], ["check 0", "check 4"]];
    expect(order).toEqual(["check 1", "check 3", settings, ...warnings, ...failures]);
    expect(text.endsWith("failed   check 4  x\n")).toBe(true);
    expect(doctorText({ ...REPORT, settings: [] }, colors)).not.toContain("output");
  });

  it("is never broken in a pipe", () => {
    const lines = doctorText(REPORT, colors).split("\n");
    expect(lines).toContain(`warning  settings file  ${REPORT.checks[1]?.found}`);
  });
});
