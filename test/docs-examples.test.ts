import { readdirSync, readFileSync } from "node:fs";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { startSandbox } from "../src/sandbox/index.js";
import { runCli, temporaryFolder } from "./helpers/cli.js";

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

describe("the first commands of docs/grants.md", () => {
  it("get a token of the sandbox that they start", async () => {
    const block = /^```sh\n(.*?)^```$/ms.exec(readFileSync("docs/grants.md", "utf8"))?.[1] ?? "";
    const [start = "", , token = ""] = block.split("\n");
    expect(start).toBe("agentauth sandbox start --machine-grants --port 4000 &");
    const sandbox = await startSandbox({ machineGrants: true });
    try {
      const [, ...args] = token.replaceAll("http://127.0.0.1:4000", sandbox.origin).split(" ");
      const env = {
        AGENTAUTH_CLIENT_SECRET: sandbox.machine?.secretClient.clientSecret,
        AGENTAUTH_HOME: temporaryFolder(),
      };
      const { stdout, stderr, code } = await runCli(args, { env });
      expect({ stderr, code }).toEqual({ stderr: "", code: 0 });
      expect(stdout).toMatch(/^eyJ[\w-]+\.[\w-]+\.[\w-]+\n$/);
    } finally {
      await sandbox.close();
    }
  });
});
