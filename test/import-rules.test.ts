import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { cruise, type ICruiseOptions, type ICruiseResult } from "dependency-cruiser";
import extractDepcruiseOptions from "dependency-cruiser/config-utl/extract-depcruise-options";
import extractTSConfig from "dependency-cruiser/config-utl/extract-ts-config";
import ts from "typescript";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const tsConfig = extractTSConfig(join(root, "tsconfig.json"));
let options: ICruiseOptions;
const made: string[] = [];

beforeAll(async () => {
  options = await extractDepcruiseOptions(join(root, ".dependency-cruiser.cjs"));
});

afterAll(async () => {
  for (const folder of made) await rm(folder, { recursive: true, force: true });
});

/** Files by their paths; the shortest notation for a file is the list of what it imports. */
type Tree = Record<string, readonly string[] | string>;

function textOf(content: readonly string[] | string): string {
  if (typeof content === "string") return content;
  return `${content.map((from, at) => `import { x as x${at} } from "${from}";\n`).join("")}export const x = [${content.map((_, at) => `x${at}`).join(", ")}];\n`;
}

/** The rules that a made-up tree breaks. */
async function rulesBrokenBy(tree: Tree): Promise<string[]> {
  const folder = await mkdtemp(join(tmpdir(), "agentauth-imports-"));
  made.push(folder);
  const manifest = { name: "made-up", dependencies: { allowed: "1", jose: "6" }, devDependencies: { tool: "1" } };
  const packages = ["allowed", "jose", "tool"].flatMap((name) => [
    [`node_modules/${name}/package.json`, JSON.stringify({ name, version: "1.0.0", main: "index.js" })],
    [`node_modules/${name}/index.js`, "export const x = 1;\n"],
  ]);
  const files: Tree = { "package.json": JSON.stringify(manifest), ...Object.fromEntries(packages), ...tree };
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), textOf(content));
  }
  return brokenRules(["src", ...(Object.keys(tree).some((path) => path.startsWith("bin/")) ? ["bin"] : [])], folder);
}

async function brokenRules(folders: string[], baseDir: string): Promise<string[]> {
  const { output } = await cruise(folders, { ...options, baseDir }, {}, { tsConfig });
  const { violations } = (output as ICruiseResult).summary;
  return [...new Set(violations.map(({ rule }) => rule.name))].sort();
}

/** A rule with trees that break it, and one that it accepts. */
interface Case {
  rule: string;
  broken: readonly Tree[];
  fine: Tree;
}

/** The cases of the folders of a room, each with one that it may not import and those below it. */
function floors(room: string, top: string, folders: Readonly<Record<string, [string, readonly string[]]>>): Case[] {
  return Object.entries(folders).map(([folder, [above, below]], nth) => {
    const from = `src/${room}/${folder}/a.ts`;
    const ofType = {
      [from]: `import type { X } from "../${above}/b.js";\nexport type Y = X;\n`,
      [`src/${room}/${above}/b.ts`]: "export type X = 1;\n",
    };
    return {
      rule: `${room}-${folder}`,
      broken: [
        { [from]: [`../${top.replace(/ts$/, "js")}`], [`src/${room}/${top}`]: [] },
        { [from]: [`../${above}/b.js`], [`src/${room}/${above}/b.ts`]: [] },
        // That types count is a setting of all rules.
        ...(nth === 0 ? [ofType] : []),
      ],
      fine: {
        [`src/${room}/${top}`]: [`./${folder}/a.js`],
        [from]: ["./b.js", ...below.map((one) => `../${one}/b.js`)],
        ...Object.fromEntries([folder, ...below].map((one) => [`src/${room}/${one}/b.ts`, []])),
      },
    };
  });
}

/** For each rule, trees that break it and no other, and a tree close by that breaks none. */
const CASES: readonly Case[] = [
  {
    rule: "base-stands-alone",
    broken: [
      { "src/errors.ts": ["./http/a.js"], "src/http/a.ts": [] },
      { "src/redact.ts": ["./errors.js"], "src/errors.ts": [] },
      { "src/remedy.ts": ["./errors.js"], "src/errors.ts": [] },
      { "src/error-codes.ts": ["./http/a.js"], "src/http/a.ts": [] },
      {
        "src/redact.ts": 'import type { X } from "./errors.js";\nexport type Y = X;\n',
        "src/errors.ts": "export type X = 1;\n",
      },
    ],
    fine: {
      "src/errors.ts": ["allowed", "./error-codes.js", "./remedy.js"],
      "src/error-codes.ts": [],
      "src/remedy.ts": [],
    },
  },
  {
    rule: "http-below-features",
    broken: [
      { "src/http/a.ts": ["../api/b.js"], "src/api/b.ts": [] },
      { "src/http/a.ts": ["../cli/b.js"], "src/cli/b.ts": [] },
      {
        "src/http/a.ts": 'import type { X } from "../oauth/b.js";\nexport type Y = X;\n',
        "src/oauth/b.ts": "export type X = 1;\n",
      },
    ],
    fine: {
      "src/http/a.ts": ["./b.js", "../errors.js", "../remedy.js"],
      "src/http/b.ts": ["../redact.js"],
      "src/errors.ts": ["./error-codes.js"],
      "src/error-codes.ts": [],
      "src/remedy.ts": [],
      "src/redact.ts": [],
    },
  },
  {
    rule: "features-below-runtime",
    broken: [
      { "src/api/a.ts": ["../sandbox/b.js"], "src/sandbox/b.ts": [] },
      { "src/oauth/a.ts": ["../store/store.js"], "src/store/store.ts": [] },
      { "src/resource-server/a.ts": ["../cli/b.js"], "src/cli/b.ts": [] },
    ],
    fine: { "src/api/a.ts": ["../http/b.js", "../errors.js"], "src/http/b.ts": [], "src/errors.ts": [] },
  },
  {
    rule: "telemetry-below-features",
    broken: [
      { "src/telemetry/a.ts": ["../oauth/b.js"], "src/oauth/b.ts": [] },
      { "src/telemetry/a.ts": ["../store/b.js"], "src/store/b.ts": [] },
    ],
    fine: {
      "src/oauth/a.ts": ["../telemetry/b.js"],
      "src/broker/a.ts": ["../telemetry/b.js"],
      "src/telemetry/b.ts": ["../http/c.js", "../errors.js"],
      "src/http/c.ts": [],
      "src/errors.ts": [],
    },
  },
  {
    rule: "platform-below-runtime",
    broken: [{ "src/platform/a.ts": ["../store/b.js"], "src/store/b.ts": [] }],
    fine: { "src/store/a.ts": ["../platform/b.js"], "src/platform/b.ts": ["../errors.js"], "src/errors.ts": [] },
  },
  {
    rule: "runtime-below-cli",
    broken: [
      ...["profile", "sandbox", "mcp", "login", "store"].map((folder) => ({
        [`src/${folder}/a.ts`]: ["../cli/b.js"],
        "src/cli/b.ts": [],
      })),
      { "src/node.ts": ["./cli/b.js"], "src/cli/b.ts": [] },
    ],
    fine: { "src/node.ts": ["./api/b.js", "./login/c.js"], "src/api/b.ts": [], "src/login/c.ts": [] },
  },
  {
    rule: "packages-hold-packages",
    broken: [{ "src/packages/a.ts": ["../redact.js"], "src/redact.ts": [] }],
    fine: { "src/packages/a.ts": ["tool"], "src/login/b.ts": ["../packages/a.js"] },
  },
  {
    rule: "cli-below-bin",
    broken: [{ "src/cli/a.ts": ["../../bin/b.js"], "bin/b.js": ["../dist/cli/main.cjs"], "dist/cli/main.cjs": [] }],
    fine: {
      "src/cli/a.ts": ["../sandbox/b.js", "../api/c.js"],
      "src/sandbox/b.ts": ["../api/c.js"],
      "src/api/c.ts": [],
    },
  },
  {
    rule: "bin-only-starts",
    broken: [
      { "bin/a.js": ["../src/cli/b.js"], "src/cli/b.ts": ["allowed"] },
      { "bin/a.js": ["node:fs"], "src/cli/b.ts": ["allowed"] },
    ],
    fine: { "bin/a.js": ["../dist/cli/main.cjs"], "dist/cli/main.cjs": [], "src/cli/b.ts": ["allowed"] },
  },
  {
    rule: "api-not-oauth",
    broken: [{ "src/api/a.ts": ["../oauth/b.js"], "src/oauth/b.ts": [] }],
    fine: { "src/api/a.ts": ["./b.js"], "src/api/b.ts": [] },
  },
  {
    rule: "oauth-not-api",
    broken: [{ "src/oauth/a.ts": ["../api/b.js"], "src/api/b.ts": [] }],
    fine: { "src/oauth/a.ts": ["./b.js"], "src/oauth/b.ts": [] },
  },
  {
    rule: "resource-server-alone",
    broken: [
      { "src/resource-server/a.ts": ["../oauth/b.js"], "src/oauth/b.ts": [] },
      { "src/resource-server/a.ts": ["../api/b.js"], "src/api/b.ts": [] },
      {
        "src/resource-server/a.ts": 'import type { X } from "../oauth/b.js";\nexport type Y = X;\n',
        "src/oauth/b.ts": "export type X = 1;\n",
      },
    ],
    fine: {
      "src/resource-server/a.ts": ["./b.js", "../http/c.js", "../errors.js"],
      "src/resource-server/b.ts": [],
      "src/http/c.ts": [],
      "src/errors.ts": [],
    },
  },
  {
    rule: "jose-on-demand",
    broken: [
      { "src/resource-server/a.ts": 'import { compactVerify } from "jose";\nexport { compactVerify };\n' },
      { "src/resource-server/a.ts": 'export { base64url } from "jose";\n' },
    ],
    fine: {
      "src/resource-server/a.ts":
        'import type { x } from "jose";\nexport const load = (): Promise<{ x: typeof x }> => import("jose");\n',
    },
  },
  {
    rule: "index-for-outsiders",
    broken: [
      { "src/cli/a.ts": 'export const load = () => import("../sandbox/index.js");\n', "src/sandbox/index.ts": [] },
      { "src/cli/a.ts": ["../index.js"], "src/index.ts": [] },
    ],
    fine: { "src/index.ts": ["./api/a.js"], "src/api/a.ts": [] },
  },
  {
    rule: "cli-commands-apart",
    broken: [
      { "src/cli/commands/x/run.ts": ["../y/run.js"], "src/cli/commands/y/run.ts": [] },
      {
        "src/cli/commands/x/run.ts": 'import type { X } from "../y/deep/a.js";\nexport type Y = X;\n',
        "src/cli/commands/y/deep/a.ts": "export type X = 1;\n",
      },
    ],
    fine: {
      "src/cli/commands/x/run.ts": ["./deep/a.js"],
      "src/cli/commands/x/deep/a.ts": ["../b.js"],
      "src/cli/commands/x/b.ts": [],
    },
  },
  {
    rule: "cli-commands-use-the-context",
    broken: [
      { "src/cli/commands/x/run.ts": ["../../../profile/resolve-settings.js"], "src/profile/resolve-settings.ts": [] },
      { "src/cli/commands/x/run.ts": ["../../clients/agent.js"], "src/cli/clients/agent.ts": [] },
      { "src/cli/commands/x/run.ts": ["../../../profile/network.js"], "src/profile/network.ts": [] },
    ],
    fine: {
      "src/cli/commands/x/run.ts": ["../../clients/mcp-url.js"],
      "src/cli/clients/mcp-url.ts": [],
      "src/cli/commands/doctor/a.ts": ["../../../profile/resolve-settings.js"],
      "src/profile/resolve-settings.ts": [],
    },
  },
  {
    rule: "cli-commands-below-program",
    broken: [
      { "src/cli/commands/x/run.ts": ["../../program.js"], "src/cli/program.ts": [] },
      { "src/cli/commands/x/run.ts": ["../../fast-path/a.js"], "src/cli/fast-path/a.ts": [] },
    ],
    fine: { "src/cli/program.ts": ["./commands/all.gen.js"], "src/cli/commands/all.gen.ts": [] },
  },
  {
    rule: "cli-commands-declared-by-program",
    broken: [
      { "src/cli/execute.ts": ["./commands/x/command.js"], "src/cli/commands/x/command.ts": [] },
      { "src/cli/program.ts": ["./commands/x/command.js"], "src/cli/commands/x/command.ts": [] },
    ],
    fine: {
      "src/cli/commands/all.gen.ts": ["./x/command.js"],
      "src/cli/commands/x/command.ts": ["./y/command.js"],
      "src/cli/commands/x/y/command.ts": [],
    },
  },
  {
    rule: "cli-fast-path-apart",
    broken: [
      { "src/cli/fast-path/a.ts": ["../commands/x/b.js"], "src/cli/commands/x/b.ts": [] },
      { "src/cli/fast-path/a.ts": ["../program.js"], "src/cli/program.ts": [] },
    ],
    fine: { "src/cli/fast-path/a.ts": ["../clients/b.js"], "src/cli/clients/b.ts": [] },
  },
  ...floors("oauth", "agent.ts", {
    model: ["http", []],
    http: ["discovery", ["model"]],
    discovery: ["client", ["http", "model"]],
    client: ["token", ["discovery", "http", "model"]],
    dpop: ["discovery", ["http", "model"]],
    token: ["grant", ["client", "dpop", "discovery", "http", "model"]],
    grant: ["login", ["token", "client", "dpop", "discovery", "http", "model"]],
    machine: ["login", ["grant", "token", "client", "dpop", "discovery", "http", "model"]],
    login: ["machine", ["grant", "token", "client", "dpop", "discovery", "http", "model"]],
    "mcp-sdk": ["login", ["grant", "model"]],
  }),
  ...floors("sandbox", "sandbox.ts", {
    http: ["data", []],
    data: ["faults", ["http"]],
    faults: ["management", ["data", "http"]],
    management: ["oauth", ["faults", "data", "http"]],
    oauth: ["mcp", ["faults", "data", "http"]],
    mcp: ["management", ["oauth", "faults", "data", "http"]],
  }),
  ...floors("store", "top.ts", {
    private: ["leases", []],
    leases: ["file", ["private"]],
    seal: ["driver", []],
    file: ["keychain", ["leases", "private", "seal"]],
    keychain: ["driver", ["file", "leases", "private", "seal"]],
    driver: ["redis", ["seal"]],
    redis: ["postgres", ["driver"]],
    postgres: ["redis", ["driver"]],
  }),
  ...floors("cli", "execute.ts", {
    io: ["flags", []],
    flags: ["runtime", ["io"]],
    runtime: ["output", ["flags", "io"]],
    config: ["output", ["runtime", "flags", "io"]],
    output: ["listing", ["runtime", "flags", "io"]],
    clients: ["listing", ["config", "runtime", "flags", "io"]],
    listing: ["commands/x", ["output", "runtime", "flags", "io"]],
  }),
  ...[
    { name: "commander", home: "src/cli/deep/a.ts", elsewhere: "src/sandbox/a.ts" },
    { name: "@opentelemetry/api", home: "src/telemetry/otel.ts", elsewhere: "src/oauth/a.ts" },
    { name: "cli-table3", home: "src/packages/a.ts", elsewhere: "src/cli/a.ts" },
    { name: "cross-spawn", home: "src/packages/a.ts", elsewhere: "src/platform/a.ts" },
    { name: "openapi-fetch", home: "src/api/client.ts", elsewhere: "src/api/listing.ts" },
    { name: "oauth4webapi", home: "src/oauth/a.ts", elsewhere: "src/cli/a.ts" },
    { name: "oidc-provider", home: "src/packages/a.ts", elsewhere: "src/sandbox/a.ts" },
    { name: "open", home: "src/packages/a.ts", elsewhere: "src/login/a.ts" },
    { name: "jsonc-parser", home: "src/packages/a.ts", elsewhere: "src/cli/a.ts" },
  ].map(({ name, home, elsewhere }) => {
    const installed = {
      "package.json": JSON.stringify({ name: "made-up", dependencies: { [name]: "1" } }),
      [`node_modules/${name}/package.json`]: JSON.stringify({ name, version: "1.0.0", main: "index.js" }),
      [`node_modules/${name}/index.js`]: "export const x = 1;\n",
    };
    return {
      rule: `only-one-place-knows-${name}`,
      broken: [
        { ...installed, [elsewhere]: [name] },
        { ...installed, [elsewhere]: `export const load = () => import("${name}");\n` },
        { ...installed, [elsewhere]: `import type { X } from "${name}";\nexport type Y = X;\n` },
      ],
      fine: { ...installed, [home]: [name] },
    };
  }),
  {
    rule: "node-modules-of-node",
    broken: [
      "src/index.ts",
      "src/errors.ts",
      "src/http/a.ts",
      "src/api/a.ts",
      "src/oauth/a.ts",
      "src/resource-server/a.ts",
    ]
      .concat("src/store/memory.ts", "src/store/driver/a.ts", "src/store/seal/a.ts")
      .flatMap((path) => [{ [path]: ["node:fs"] }, { [path]: ["crypto"] }]),
    fine: Object.fromEntries(
      [
        "profile/a",
        "login/a",
        "node",
        "mcp/a",
        "sandbox/a",
        "cli/a",
        "store/private/a",
        "store/leases/a",
        "store/file/a",
        "store/keychain/a",
      ].map((name) => [`src/${name}.ts`, ["node:fs"]]),
    ),
  },
  {
    rule: "installed-with-us",
    broken: [
      { "src/api/a.ts": ["tool"] },
      { "src/index.ts": ["tool"] },
      { "src/store/memory.ts": ["tool"] },
      { "src/sandbox/a.ts": ["tool"] },
      { "src/http/a.ts": ["not-installed"] },
    ],
    fine: {
      "src/api/a.ts": ["allowed"],
      "src/packages/a.ts": ["tool"],
      "src/cli/a.ts": ["tool"],
    },
  },
  {
    rule: "no-cycles",
    broken: [
      { "src/http/a.ts": ["./b.js"], "src/http/b.ts": ["./a.js"] },
      { "src/http/a.ts": ["./b.js"], "src/http/b.ts": ["./c.js"], "src/http/c.ts": ["./a.js"] },
      {
        "src/http/a.ts": ["./b.js"],
        "src/http/b.ts": 'import type { x } from "./a.js";\nexport type Y = typeof x;\n',
      },
      {
        "src/http/a.ts": 'export const load = () => import("./b.js");\nexport type Options = 1;\n',
        "src/http/b.ts": 'import type { Options } from "./a.js";\nexport type Y = Options;\n',
      },
    ],
    fine: {
      "src/http/a.ts": ["./b.js", "./c.js"],
      "src/http/b.ts": 'import type { x } from "./c.js";\nexport type Y = typeof x;\n',
      "src/http/c.ts": [],
    },
  },
  {
    rule: "no-folder-cycles",
    broken: [
      {
        "src/sandbox/one/a.ts": ["../two/a.js"],
        "src/sandbox/two/a.ts": [],
        "src/sandbox/two/b.ts": ["../one/b.js"],
        "src/sandbox/one/b.ts": [],
      },
      {
        "src/sandbox/one/a.ts": ["../two/a.js"],
        "src/sandbox/two/a.ts": [],
        "src/sandbox/two/b.ts": 'import type { x } from "../one/b.js";\nexport type Y = typeof x;\n',
        "src/sandbox/one/b.ts": [],
      },
      {
        "src/cli/commands/x/one/a.ts": ["../two/a.js"],
        "src/cli/commands/x/two/a.ts": [],
        "src/cli/commands/x/two/b.ts": ["../one/b.js"],
        "src/cli/commands/x/one/b.ts": [],
      },
    ],
    fine: {
      "src/sandbox/one/a.ts": ["../two/a.js", "./b.js"],
      "src/sandbox/one/b.ts": ["../two/b.js"],
      "src/sandbox/two/a.ts": [],
      "src/sandbox/two/b.ts": [],
    },
  },
  {
    rule: "no-orphans",
    broken: [{ "src/http/a.ts": [] }],
    fine: { "src/http/a.ts": ["./b.js"], "src/http/b.ts": [] },
  },
];

// Whether this package follows them, `npm run check:imports` says.
describe("the import rules", () => {
  it("are all shown to bite", () => {
    const names = options.ruleSet?.forbidden?.map(({ name }) => name);
    expect(CASES.map(({ rule }) => rule).sort()).toEqual(names?.sort());
  });

  describe.each(CASES)("$rule", ({ rule, broken, fine }) => {
    it.each(broken)("finds what it forbids (%#)", async (tree) => {
      expect(await rulesBrokenBy(tree)).toEqual([rule]);
    });

    it("lets pass what is allowed", async () => {
      expect(await rulesBrokenBy(fine)).toEqual([]);
    });
  });
});

/** What of `process` is for the command line alone. */
const OF_CLI = new Set(["env", "argv", "stdin", "stdout", "stderr", "exit", "exitCode", "on", "once"]);

async function sources(folder: string): Promise<string[]> {
  const entries = await readdir(join(root, folder), { recursive: true });
  return entries.filter((path) => path.endsWith(".ts")).map((path) => join(folder, path));
}

function parse(path: string, text: string): ts.SourceFile {
  return ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true);
}

function read(path: string): Promise<string> {
  return readFile(join(root, path), "utf8");
}

describe("the source", () => {
  it("has index files that export and do nothing else", async () => {
    const indexes = (await sources("src")).filter((path) => /(^|\/)index\.ts$/.test(path));
    expect(indexes).toContain("src/index.ts");
    for (const path of indexes) {
      const { statements } = parse(path, await read(path));
      expect(statements.every(ts.isExportDeclaration), path).toBe(true);
    }
  });

  it("exports the two clients, their errors, what serves a login page and what keeps logins alive at its root", async () => {
    const entry: object = await import("../src/index.js");
    expect(Object.keys(entry).sort()).toEqual([
      ...["AgentAuthError", "AgentClient", "ManagementClient", "SERVICE_ERROR_CODES", "Secret"],
      ...["isAgentAuthError", "keepAlive", "loginHandlers", "loginMiddlewares"],
    ]);
  });

  it("reads the environment, prints and exits in cli/ alone, and reads the environment in profile/", async () => {
    const found: string[] = [];
    for (const path of (await sources("src")).filter((one) => !one.startsWith("src/cli/"))) {
      const text = await read(path);
      if (!text.includes("process.")) continue;
      const visit = (node: ts.Node): void => {
        if (
          ts.isPropertyAccessExpression(node) &&
          ts.isIdentifier(node.expression) &&
          node.expression.text === "process"
        ) {
          // Tidying up at the end is everybody's own matter.
          const call = ts.isCallExpression(node.parent) ? node.parent.arguments[0] : undefined;
          const atExit = call !== undefined && ts.isStringLiteral(call) && call.text === "exit";
          if (OF_CLI.has(node.name.text) && !atExit) found.push(`${path}: process.${node.name.text}`);
        }
        ts.forEachChild(node, visit);
      };
      visit(parse(path, text));
    }
    expect(found).toEqual(["src/profile/clients.ts: process.env"]);
  });
});
