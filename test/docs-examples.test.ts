import { readdirSync, readFileSync } from "node:fs";
import ts from "typescript";
import { describe, expect, it } from "vitest";

const PAGES = ["README.md", ...readdirSync("docs").flatMap((name) => (name.endsWith(".md") ? [`docs/${name}`] : []))];

/** The programs that a page shows. */
function programs(page: string): string[] {
  const blocks = readFileSync(page, "utf8").matchAll(/^```(?:js|ts)\n(.*?)^```$/gms);
  return [...blocks].map(([, program = ""]) => program);
}

/** The declarations that Node 20 and 22 take for a mistake: `using` and `await using`. */
function disposals(program: string): string[] {
  const source = ts.createSourceFile("example.ts", program, ts.ScriptTarget.ESNext, true);
  const found: string[] = [];
  const look = (node: ts.Node): void => {
    if (ts.isVariableDeclarationList(node)) {
      const kind = node.flags & ts.NodeFlags.BlockScoped;
      if (kind === ts.NodeFlags.Using || kind === ts.NodeFlags.AwaitUsing) found.push(node.getText());
    }
    ts.forEachChild(node, look);
  };
  look(source);
  return found;
}

describe("the programs that the pages show", () => {
  it("are there to be looked at", () => {
    expect(programs("README.md").length).toBeGreaterThan(3);
    expect(programs("docs/sandbox.md").length).toBeGreaterThan(0);
    expect(disposals("await using a = b(); using c = d(); const e = f();")).toHaveLength(2);
  });

  it.each(PAGES)("%s has none that the oldest supported Node cannot read", (page) => {
    expect(programs(page).flatMap(disposals)).toEqual([]);
  });
});
