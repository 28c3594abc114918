import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

// cli.md and cli-*.md show the help, which is written for sh.
const PAGES = [
  "README.md",
  ...readdirSync("docs")
    .filter((name) => name.endsWith(".md") && !name.startsWith("cli"))
    .map((name) => `docs/${name}`),
];
/** What PowerShell reads in another way, 5.1 of Windows included. */
const DIFFERS: readonly [what: string, form: RegExp][] = [
  ["$(…)", /\$\(/],
  ["a variable", /\$\{?[A-Za-z_]/],
  ["export", /^export /m],
  ["a variable before a command", /^[A-Z_]+=\S* \S/m],
  ["a line that is continued", /\\$/m],
  ["&& or ||", /&&|\|\|/],
  ["a command in the background", / &$/m],
  ["an argument with double quotes", /'[^'\n]*"[^'\n]*'/],
  ["a word that begins with @", /\s@[\w.-]/],
  ["< as input", /\s<<?<?\s/],
];
/** Said before a block of commands that are for sh alone, with the reason. */
const MARK = /<!-- sh only: \S.*-->\s*$/;

/** What each block of commands for sh has that PowerShell reads in another way, unless a block for it follows. */
function unpaired(text: string): string[] {
  return [...text.matchAll(/^```sh\n(.*?)^```$/gms)].flatMap(({ 0: block, 1: commands = "", index }) => {
    const after = text.slice(index + block.length);
    if (/^\s*(?:[^`#\n][^\n]*\n\s*){0,4}```powershell\n/.test(after) || MARK.test(text.slice(0, index))) return [];
    const [what] = DIFFERS.find(([, form]) => form.test(commands)) ?? [];
    return what === undefined ? [] : [`${what}: ${commands}`];
  });
}

describe("commands of the documentation", () => {
  it.each(PAGES)("are shown for PowerShell too where it differs, in %s", (page) => {
    expect(unpaired(readFileSync(page, "utf8"))).toEqual([]);
  });

  it.each([
    ...["export A=b", 'agentauth a "$(b)"', "A=b agentauth c", "a \\\n  b", "a && b", `a '{"b":1}'`, "a @b.json"],
    ...["a < b"],
  ])("differ: %s", (command) => {
    const block = `\`\`\`sh\n${command}\n\`\`\`\n`;
    expect(unpaired(block)).toHaveLength(1);
    expect(unpaired(`<!-- sh only: why -->\n\n${block}`)).toEqual([]);
    expect(unpaired(`${block}\nIn PowerShell:\n\n\`\`\`powershell\na\n\`\`\`\n`)).toEqual([]);
  });

  it("for PowerShell have nothing of sh", () => {
    const blocks = PAGES.flatMap((page) => [
      ...readFileSync(page, "utf8").matchAll(/^```powershell\n(.*?)^```$/gms),
    ]).map(([, commands = ""]) => commands);
    expect(blocks.length).toBeGreaterThan(3);
    for (const commands of blocks) expect(commands).not.toMatch(/^export |\\$|&&|\s@\w+\.|^[A-Z_]+=|^curl |<</m);
  });
});
