import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { cruise, type ICruiseOptions, type ICruiseResult } from "dependency-cruiser";
import extractDepcruiseOptions from "dependency-cruiser/config-utl/extract-depcruise-options";
import extractTSConfig from "dependency-cruiser/config-utl/extract-ts-config";
import ts from "typescript";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const tsConfig = extractTSConfig(join(root, "tsconfig.json"));
let options: ICruiseOptions;
const folders: string[] = [];

beforeAll(async () => {
  options = await extractDepcruiseOptions(join(root, ".dependency-cruiser.cjs"));
});

afterAll(async () => {
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});

/** Files by their paths. */
type Tree = Record<string, string>;

/** Where a name of {@link tree} is: below src/, unless it has its own folder. */
const pathOf = (name: string) => (/^(?:bin|dist)\//.test(name) ? name : `src/${name}.ts`);

function specifier(from: string, to: string): string {
  if (to.includes(":")) return to.replace(/^npm:/, "");
  const path = relative(dirname(pathOf(from)), pathOf(to)).replace(/\.ts$/, ".js");
  return path.startsWith(".") ? path : `./${path}`;
}

/**
 * A made-up tree: `a > b c` is a file that imports two others, `a type> b` one that imports a type, `a load> b` one that
 * imports on demand, with `; ` between files. Files that are only imported export something. `npm:x` is a package.
 */
function tree(text: string): Tree {
  const files: Tree = {};
  for (const file of text.split("; ")) {
    const [, from = "", kind, names = ""] = /^(\S+)(?: (type|load)?> (.*))?$/.exec(file) ?? [];
    const targets = names.split(" ").filter(Boolean);
    const imported = targets.map((to, at) => [specifier(from, to), `x${at}`]);
    const all = imported.map(([, name]) => name).join(", ");
    const lines = imported.map(([path, name]) => {
      if (kind === "load") return `export const load${name} = () => import("${path}");`;
      return `import ${kind === "type" ? "type " : ""}{ x as ${name} } from "${path}";`;
    });
    const last =
      kind === "type" ? `export type Y = [${all.replaceAll("x", "typeof x")}];` : `export const x = [${all}];`;
    files[pathOf(from)] = `${[...lines, kind === "load" ? "export const x = 1;" : last].join("\n")}\n`;
    for (const to of targets) if (!to.includes(":")) files[pathOf(to)] ??= "export const x = 1;\n";
  }
  return files;
}

/** The rules that a made-up tree breaks. */
async function rulesBrokenBy(made: string | Tree): Promise<string[]> {
  const own = typeof made === "string" ? tree(made) : made;
  const folder = await mkdtemp(join(tmpdir(), "agentauth-imports-"));
  folders.push(folder);
  const manifest = { name: "made-up", dependencies: { allowed: "1", jose: "6" }, devDependencies: { tool: "1" } };
  const packages = ["allowed", "jose", "tool"].flatMap((name) => [
    [`node_modules/${name}/package.json`, JSON.stringify({ name, version: "1.0.0", main: "index.js" })],
    [`node_modules/${name}/index.js`, "export const x = 1;\n"],
  ]);
  const files: Tree = { "package.json": JSON.stringify(manifest), ...Object.fromEntries(packages), ...own };
  for (const [path, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, path)), { recursive: true });
    await writeFile(join(folder, path), content);
  }
  return brokenRules(["src", ...(Object.keys(own).some((path) => path.startsWith("bin/")) ? ["bin"] : [])], folder);
}

async function brokenRules(folders: string[], baseDir: string): Promise<string[]> {
  const { output } = await cruise(folders, { ...options, baseDir }, {}, { tsConfig });
  const { violations } = (output as ICruiseResult).summary;
  return [...new Set(violations.map(({ rule }) => rule.name))].sort();
}

/** A rule with trees that break it and no other, and a tree close by that breaks none. */
interface Case {
  rule: string;
  broken: readonly (string | Tree)[];
  fine: string | Tree;
}

/** The cases of the folders of a room, each with one that it may not import and those below it. */
function floors(room: string, top: string, below: Readonly<Record<string, [string, string]>>): Case[] {
  return Object.entries(below).map(([folder, [above, names]], nth) => {
    const from = `${room}/${folder}/a`;
    const others = names.split(" ").filter(Boolean);
    return {
      rule: `${room}-${folder}`,
      // That types count is a setting of all rules.
      broken: [">", ...(nth === 0 ? ["type>"] : [])]
        .map((kind) => `${from} ${kind} ${room}/${above}/b`)
        .concat(`${from} > ${room}/${top}`),
      fine: `${room}/${top} > ${from}; ${from} > ${[folder, ...others].map((one) => `${room}/${one}/b`).join(" ")}`,
    };
  });
}

/** A package that one place imports, with a place that must not. */
function onlyAt(name: string, home: string, elsewhere: string): Case {
  const installed = {
    "package.json": JSON.stringify({ name: "made-up", dependencies: { [name]: "1" } }),
    [`node_modules/${name}/package.json`]: JSON.stringify({ name, version: "1.0.0", main: "index.js" }),
    [`node_modules/${name}/index.js`]: "export const x = 1;\n",
  };
  const broken = [">", "load>", "type>"].map((kind) => ({ ...installed, ...tree(`${elsewhere} ${kind} npm:${name}`) }));
  return { rule: `only-one-place-knows-${name}`, broken, fine: { ...installed, ...tree(`${home} > npm:${name}`) } };
}

const rule = (name: string, broken: readonly (string | Tree)[], fine: string | Tree): Case => ({
  rule: name,
  broken,
  fine,
});

const WITHOUT_NODE = "index errors http/a api/a oauth/a resource-server/a store/memory store/driver/a store/seal/a";
const WITH_NODE =
  "http/node/a platform profile/a login/a node mcp/a sandbox/a cli/a store/private/a store/leases/a store/file/a store/keychain/a";

const CASES: readonly Case[] = [
  rule(
    "base-stands-alone",
    ["errors > http/a", "redact > errors", "remedy > errors", "error-codes > http/a", "redact type> errors"],
    "errors > npm:allowed error-codes remedy",
  ),
  rule(
    "http-below-features",
    ["http/a > api/b", "http/a > cli/b", "http/a type> oauth/b"],
    "http/a > http/b errors remedy; http/b > redact; errors > error-codes",
  ),
  rule("http-node-above-http", ["http/node/a > telemetry/b"], "http/node/a > http/b errors"),
  rule(
    "features-below-runtime",
    ["api/a > http/node/b", "api/a > sandbox/b", "oauth/a > store/store", "resource-server/a > cli/b"],
    "api/a > http/b errors",
  ),
  rule(
    "telemetry-below-features",
    ["telemetry/a > oauth/b", "telemetry/a > store/b"],
    "oauth/a > telemetry/b; broker/a > telemetry/b; telemetry/b > http/c errors",
  ),
  rule("platform-below-runtime", ["platform > store/b"], "store/a > platform; platform > errors"),
  rule(
    "runtime-below-cli",
    ["profile/a", "sandbox/a", "mcp/a", "login/a", "store/a", "node"].map((from) => `${from} > cli/b`),
    "node > api/b login/c",
  ),
  rule("packages-hold-packages", ["packages/a > redact"], "packages/a > npm:tool; login/b > packages/a"),
  rule(
    "cli-below-bin",
    ["cli/a > bin/b.js; bin/b.js > dist/cli/main.cjs"],
    "cli/a > sandbox/b api/c; sandbox/b > api/c",
  ),
  rule(
    "bin-only-starts",
    ["bin/a.js > cli/b; cli/b > npm:allowed", "bin/a.js > node:fs; cli/b > npm:allowed"],
    "bin/a.js > dist/cli/main.cjs; cli/b > npm:allowed",
  ),
  rule("api-not-oauth", ["api/a > oauth/b"], "api/a > api/b"),
  rule("oauth-not-api", ["oauth/a > api/b"], "oauth/a > oauth/b"),
  rule(
    "resource-server-alone",
    ["resource-server/a > oauth/b", "resource-server/a > api/b", "resource-server/a type> oauth/b"],
    "resource-server/a > resource-server/b http/c errors",
  ),
  rule(
    "jose-on-demand",
    [
      { "src/resource-server/a.ts": 'import { compactVerify } from "jose";\nexport { compactVerify };\n' },
      { "src/resource-server/a.ts": 'export { base64url } from "jose";\n' },
    ],
    {
      "src/resource-server/a.ts":
        'import type { x } from "jose";\nexport const load = (): Promise<{ x: typeof x }> => import("jose");\n',
    },
  ),
  rule("index-for-outsiders", ["cli/a load> sandbox/index", "cli/a > index"], "index > api/a"),
  rule(
    "cli-commands-apart",
    ["cli/commands/x/run > cli/commands/y/run", "cli/commands/x/run type> cli/commands/y/deep/a"],
    "cli/commands/x/run > cli/commands/x/deep/a; cli/commands/x/deep/a > cli/commands/x/b",
  ),
  rule(
    "cli-commands-use-the-context",
    ["profile/resolve-settings", "cli/clients/agent", "profile/open-store"].map((to) => `cli/commands/x/run > ${to}`),
    "cli/commands/x/run > cli/clients/login-first; cli/commands/doctor/a > profile/resolve-settings",
  ),
  rule(
    "cli-commands-below-program",
    ["cli/commands/x/run > cli/program", "cli/commands/x/run > cli/fast-path/a"],
    "cli/program > cli/commands/all.gen",
  ),
  rule(
    "cli-commands-declared-by-program",
    ["cli/execute > cli/commands/x/command", "cli/program > cli/commands/x/command"],
    "cli/commands/all.gen > cli/commands/x/command; cli/commands/x/command > cli/commands/x/y/command",
  ),
  rule(
    "cli-fast-path-apart",
    ["cli/fast-path/a > cli/commands/x/b", "cli/fast-path/a > cli/program"],
    "cli/fast-path/a > cli/clients/b",
  ),
  ...floors("oauth", "agent", {
    model: ["http", ""],
    http: ["discovery", "model"],
    discovery: ["client", "http model"],
    client: ["token", "discovery http model"],
    dpop: ["discovery", "http model"],
    token: ["grant", "client dpop discovery http model"],
    grant: ["login", "token client dpop discovery http model"],
    machine: ["login", "grant token client dpop discovery http model"],
    login: ["machine", "grant token client dpop discovery http model"],
    "mcp-sdk": ["login", "grant model"],
  }),
  ...floors("sandbox", "sandbox", {
    http: ["data", ""],
    data: ["faults", "http"],
    faults: ["management", "data http"],
    management: ["oauth", "faults data http"],
    oauth: ["mcp", "faults data http"],
    mcp: ["management", "oauth faults data http"],
  }),
  ...floors("store", "top", {
    private: ["leases", ""],
    leases: ["file", "private"],
    seal: ["driver", ""],
    file: ["keychain", "leases private seal"],
    keychain: ["driver", "file leases private seal"],
    driver: ["redis", "seal"],
    redis: ["postgres", "driver"],
    postgres: ["redis", "driver"],
  }),
  ...floors("cli", "execute", {
    io: ["flags", ""],
    flags: ["runtime", "io"],
    runtime: ["output", "flags io"],
    config: ["output", "runtime flags io"],
    output: ["listing", "runtime flags io"],
    clients: ["listing", "config runtime flags io"],
    listing: ["commands/x", "output runtime flags io"],
  }),
  onlyAt("commander", "cli/deep/a", "sandbox/a"),
  onlyAt("@opentelemetry/api", "telemetry/otel", "oauth/a"),
  onlyAt("cli-table3", "packages/a", "cli/a"),
  onlyAt("cross-spawn", "packages/a", "platform"),
  onlyAt("openapi-fetch", "api/client", "api/listing"),
  onlyAt("oauth4webapi", "oauth/a", "cli/a"),
  onlyAt("oidc-provider", "packages/a", "sandbox/a"),
  onlyAt("open", "packages/a", "login/a"),
  onlyAt("jsonc-parser", "packages/a", "cli/a"),
  rule(
    "node-modules-of-node",
    WITHOUT_NODE.split(" ").flatMap((from) => [`${from} > node:fs`, `${from} > npm:crypto`]),
    WITH_NODE.split(" ")
      .map((from) => `${from} > node:fs`)
      .join("; "),
  ),
  rule(
    "installed-with-us",
    [
      ...["api/a", "index", "store/memory", "sandbox/a"].map((from) => `${from} > npm:tool`),
      "http/a > npm:not-installed",
    ],
    "api/a > npm:allowed; packages/a > npm:tool; cli/a > npm:tool",
  ),
  rule(
    "no-cycles",
    [
      "http/a > http/b; http/b > http/a",
      "http/a > http/b; http/b > http/c; http/c > http/a",
      "http/a > http/b; http/b type> http/a",
      "http/a load> http/b; http/b type> http/a",
    ],
    "http/a > http/b http/c; http/b type> http/c",
  ),
  rule(
    "no-folder-cycles",
    [
      "sandbox/one/a > sandbox/two/a; sandbox/two/b > sandbox/one/b",
      "sandbox/one/a > sandbox/two/a; sandbox/two/b type> sandbox/one/b",
      "cli/commands/x/one/a > cli/commands/x/two/a; cli/commands/x/two/b > cli/commands/x/one/b",
    ],
    "sandbox/one/a > sandbox/two/a sandbox/one/b; sandbox/one/b > sandbox/two/b",
  ),
  rule("no-orphans", ["http/a"], "http/a > http/b"),
];

// Whether this package follows them, `npm run check:imports` says.
describe("the import rules", () => {
  it("are all shown to bite", () => {
    const names = options.ruleSet?.forbidden?.map(({ name }) => name);
    expect(CASES.map(({ rule }) => rule).sort()).toEqual(names?.sort());
  });

  describe.each(CASES)("$rule", ({ rule, broken, fine }) => {
    it.each(broken.map((one) => [one]))("finds what it forbids (%#)", async (made) => {
      expect(await rulesBrokenBy(made)).toEqual([rule]);
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
          // A listener of the end is allowed in every folder.
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
