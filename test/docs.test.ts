import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import ts from "typescript";
import { describe, expect, it } from "vitest";
import { COMMANDS } from "../src/cli/commands/all.gen.js";
import { buildProgram } from "../src/cli/program.js";
import { createPendingSaves } from "../src/cli/runtime/context.js";
import { EXIT_CODE_MEANINGS, EXIT_CODES, type Outcome } from "../src/cli/runtime/exit-codes.js";
import { processSignals } from "../src/cli/runtime/signals.js";
import { CLIENT_ERROR_CODES, OAUTH_ERROR_CODES, SERVICE_ERROR_CODES } from "../src/error-codes.js";
import { systemClock } from "../src/http/deadline.js";
import { PROFILE_KEYS } from "../src/profile/profile-settings.js";
import { FORMATS } from "../src/profile/settings.js";
import { Redactor } from "../src/redact.js";
import { FAULT_KINDS } from "../src/sandbox/faults/faults.js";
import { createMemoryIo } from "./helpers/memory-io.js";
import { allCases } from "./hostile/all.js";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const GUIDES = readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md"));
const PAGES = [
  "README.md",
  "CONTRIBUTING.md",
  "AGENTS.md",
  "skills/agentauth/SKILL.md",
  ...GUIDES.map((name) => `docs/${name}`),
];

/** Pages that are looked up: the length of each is that of what it lists. */
const REFERENCE = /^(cli.*|troubleshooting|servers|security-(table|details)|reliability-measurements)\.md$/;

function read(path: string): string {
  return readFileSync(join(root, path), "utf8");
}

/** What the first cells of the tables of pages name: every word between backticks. */
function firstCells(...pages: string[]): string[] {
  const rows = pages.flatMap((page) => read(page).match(/^\| .*$/gm) ?? []);
  return rows.flatMap((row) => row.split("|")[1]?.match(/`[^`]+`/g) ?? []).map((cell) => cell.slice(1, -1));
}

/** How many words a page has as it is read: code blocks, front matter, pictures and the lines of tables left out. */
function words(page: string): number {
  const text = page
    .replace(/^---\n.*?\n---\n/s, "")
    .replaceAll(/^```.*?^```$/gms, "")
    .replaceAll(/<picture>.*?<\/picture>/gs, "")
    .replaceAll(/\||-{3,}:?/g, " ");
  return text.split(/\s+/).filter((word) => word !== "").length;
}

/** The addresses of a page's headings, as the site and code hosts write them. */
function anchorsOf(path: string): string[] {
  return [...read(path).matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) => {
    return heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(" ", "-");
  });
}

/** The members of an interface, or the strings of a union, as the source declares them. */
function declared(path: string, name: string): string[] {
  const source = ts.createSourceFile(path, read(path), ts.ScriptTarget.Latest);
  for (const node of source.statements) {
    if (ts.isInterfaceDeclaration(node) && node.name.text === name) {
      return node.members.flatMap((member) => (member.name && ts.isIdentifier(member.name) ? [member.name.text] : []));
    }
    if (ts.isTypeAliasDeclaration(node) && node.name.text === name && ts.isUnionTypeNode(node.type)) {
      return node.type.types.flatMap((part) =>
        ts.isLiteralTypeNode(part) && ts.isStringLiteral(part.literal) ? [part.literal.text] : [],
      );
    }
  }
  throw new Error(`${path} declares no ${name}`);
}

describe("the pages of the SDK and the sandbox", () => {
  it.each([
    ["docs/sdk-lists.md", "src/api/client.ts", "ManagementClientOptions"],
    ["docs/sdk-lists.md", "src/http/transport.ts", "TransportOptions"],
    ["docs/sdk-lists.md", "src/api/page.ts", "ListOptions"],
    ["docs/sdk-lists.md", "src/api/types.ts", "Check"],
    ["docs/sdk-tokens.md", "src/oauth/agent-options.ts", "AgentClientOptions"],
    ["docs/sdk-tokens.md", "src/oauth/discovery/overrides.ts", "SecurityPolicy", "policy."],
    ["docs/sandbox-options.md", "src/sandbox/sandbox-settings.ts", "SandboxOptions"],
    ["docs/sandbox-options.md", "src/sandbox/oauth/issuer-settings.ts", "OAuthOptions"],
    ["docs/sandbox-faults.md", "src/sandbox/faults/faults.ts", "FaultSelector"],
  ])("%s has everything that %s declares in %s", (page, path, name, prefix = "") => {
    const members = declared(path, name).map((member) => prefix + member);
    const named = firstCells(page);
    expect(members.length).toBeGreaterThan(0);
    expect(members.filter((member) => !named.includes(member))).toEqual([]);
  });

  it("have the error codes and every kind of fault", () => {
    const named = firstCells("docs/sdk-errors.md", "docs/sandbox-faults.md");
    const names = [...SERVICE_ERROR_CODES, ...CLIENT_ERROR_CODES, ...Object.keys(FAULT_KINDS)];
    expect(names.filter((name) => !named.includes(name))).toEqual([]);
  });

  it("name each entry point of the package", () => {
    const { exports } = JSON.parse(read("package.json")) as { exports: Record<string, unknown> };
    const entries = Object.entries(exports).flatMap(([name, target]) =>
      typeof target === "string" ? [] : [name.replace(".", "agentauth")],
    );
    expect(entries.filter((name) => !firstCells("docs/sdk.md").includes(name))).toEqual([]);
  });
});

describe("the pages of settings and lists", () => {
  it("have the exit codes with their meanings", () => {
    const wanted = Object.entries(EXIT_CODES).map(
      ([name, code]) => `| ${code} | ${EXIT_CODE_MEANINGS[name as Outcome]} |`,
    );
    expect(wanted.filter((row) => !read("docs/settings.md").includes(row))).toEqual([]);
  });

  it("have every output format and setting", () => {
    const named = firstCells("docs/lists.md", "docs/settings.md");
    expect([...FORMATS, ...Object.keys(PROFILE_KEYS)].filter((name) => !named.includes(name))).toEqual([]);
  });
});

describe.each(["README.md", "docs/index.md"])("the conformance that %s quotes", (page) => {
  it("is that of the conformance page, which the suite is compared with", () => {
    const quoted = read(page).match(/\b(\d+) of \1\b/g) ?? [];
    expect(quoted).toContain("33 of 33");
    for (const number of quoted) expect(read("docs/conformance.md")).toContain(number);
  });
});

describe("what the comparison says of agentauth", () => {
  it("has the packages that an installation gets on one system", () => {
    type Locked = { dev?: true; optional?: true; os?: string[] };
    const { packages } = JSON.parse(read("package-lock.json")) as { packages: Record<string, Locked> };
    const installed = Object.values(packages).filter(({ dev }) => dev !== true);
    const required = installed.filter(({ optional }) => optional !== true);
    const optional = installed.filter(({ optional, os }) => optional === true && os === undefined);
    const binaries = installed.some(({ os }) => os !== undefined) ? 1 : 0;
    const all = required.length + optional.length + binaries;
    const [, cell] = /^\| packages installed \| ([^|]+) \|/m.exec(read("docs/comparison.md")) ?? [];
    expect(cell).toBe(`${required.length}, or ${all} with the optional ones`);
  });

  const column = new Map(
    [...read("docs/comparison.md").matchAll(/^\| ([^|]+?) \| ([^|]+?) \|/gm)].map(([, row = "", cell = ""]) => [
      row,
      cell,
    ]),
  );
  const runs = (...lines: string[]) => lines.every((line) => problemWith(line) === undefined);
  const quotes = (page: string, text: string | undefined) => text !== undefined && read(page).includes(text);
  /** What must hold for a cell to be true. The rows that need runs are quoted by the pages of those runs. */
  const EVIDENCE: Readonly<Record<string, (cell: string) => boolean>> = {
    "official client authorization scenarios, of 33": (cell) => quotes("docs/conformance.md", `${cell} of 33`),
    "the same at revision 2026-07-28, of 25": (cell) => quotes("docs/conformance.md", `${cell} of 25`),
    "hostile inputs handled unsafely": (cell) => allCases.length > Number(/^0 of more than (\d+)$/.exec(cell)?.[1]),
    "sessions lost, 5 processes refreshing at once, 10 rounds": (cell) =>
      new RegExp(`^\\| 5 processes refresh one login, lost sessions +\\|.+\\| +${cell} \\|`, "m").test(
        read("docs/performance.md"),
      ),
    "a 503 during a refresh": () => read("test/oauth/grant/refresh.test.ts").includes("503"),
    "one login for several processes": (cell) => cell === "yes" && existsSync(join(root, "src/store/leases")),
    "a token for other programs (`curl`, scripts)": (cell) => cell === "yes" && runs("token"),
    "login without a browser on the machine": (cell) =>
      cell === "paste, device code, two steps" && runs("login --flow", "login --no-wait", "login --wait"),
    "machine grants": (cell) =>
      cell === "client credentials, JWT bearer, ID-JAG (Cross App Access), exchange" &&
      runs("token --grant", "exchange"),
    DPoP: (cell) => cell === "yes" && runs("login --dpop"),
    "a sandbox to test against": (cell) =>
      cell === "yes, with faults" && runs("sandbox start", "sandbox fault") && Object.keys(FAULT_KINDS).length > 20,
  };

  it("says nothing that no test or run shows", () => {
    const others = ["", "what it is", "languages", "packages installed", "---"];
    expect([...column.keys()].filter((row) => !others.includes(row) && !Object.hasOwn(EVIDENCE, row))).toEqual([]);
    const untrue = Object.entries(EVIDENCE).filter(([row, holds]) => !holds(column.get(row) ?? ""));
    expect(untrue.map(([row]) => `${row}: ${column.get(row)}`)).toEqual([]);
  });

  it("names flags of a login or of the proxy for those of mcp-remote", () => {
    const cells = [...read("docs/moving.md").matchAll(/^\| `--[^|]+\|([^|]+)\|$/gm)].map(([, cell]) => cell ?? "");
    const named = cells
      .flatMap((cell) => cell.match(/--[a-z][a-z-]+/g) ?? [])
      .filter((flag) => flag !== "--dns-result-order");
    expect(named.length).toBeGreaterThan(15);
    const isThere = (flag: string) => ["login", "mcp proxy"].some((one) => problemWith(`${one} ${flag}`) === undefined);
    expect(named.filter((flag) => !isThere(flag))).toEqual([]);
  });
});

describe("the README in the npm package", () => {
  it("links only to files that are packed", () => {
    const packed = read("scripts/package-files.txt").split("\n");
    const links = [...read("README.md").matchAll(/(?:\]\(|src(?:set)?=")(?!https?:)([^)"#]+)/g)].map(
      ([, link = ""]) => link,
    );
    expect(links.length).toBeGreaterThan(20);
    expect(links.filter((link) => !packed.some((file) => file === link || file.startsWith(link)))).toEqual([]);
  });
});

describe("the troubleshooting page", () => {
  const entries = [...read("docs/troubleshooting.md").matchAll(/^### `(\w+)`\n\n(.*)$/gm)];
  const headings = entries.map(([, code]) => code);

  it("has one entry for every error code, and no other entry", () => {
    const codes = [...SERVICE_ERROR_CODES, ...CLIENT_ERROR_CODES, ...OAUTH_ERROR_CODES];
    expect(headings.toSorted()).toEqual([...new Set(codes)].toSorted());
  });

  it("says in each what happened and what to do", () => {
    expect(entries.flatMap(([, code, text = ""]) => (text.length > 40 ? [] : [code]))).toEqual([]);
  });
});

describe("the glossary", () => {
  it("names files that are there, in alphabetical order of its terms", () => {
    const rows = [...read("docs/glossary.md").matchAll(/^\| (.+?) \| .+ \| `(src\/.+)` \|$/gm)];
    const terms = rows.map(([, term = ""]) => term.toLowerCase());
    expect(terms.length).toBeGreaterThanOrEqual(30);
    expect(terms).toEqual(terms.toSorted());
    expect(rows.filter(([, , path = ""]) => !existsSync(join(root, path)))).toEqual([]);
  });

  it("has only terms that another page or the file that is named uses", () => {
    const guides = GUIDES.filter((name) => name !== "glossary.md").map((name) => read(`docs/${name}`));
    const rows = [...read("docs/glossary.md").matchAll(/^\| (.+?) \| .+ \| `(src\/.+)` \|$/gm)];
    const unused = rows.flatMap(([, terms = "", path = ""]) => {
      const texts = [...guides, read(path)].join("\n");
      return terms.split(", ").filter((term) => !new RegExp(term.replaceAll(/[ -]/g, "[\\s-]?"), "i").test(texts));
    });
    expect(unused).toEqual([]);
  });
});

describe("the length of what people read", () => {
  const pages = GUIDES.filter((name) => !REFERENCE.test(name));

  it.each(pages)("of %s is at most 900 words, a word of a table counted as half a word", (name) => {
    const text = read(`docs/${name}`);
    const prose = words(text.replaceAll(/^\|.*$/gm, ""));
    expect(prose + (words(text) - prose) / 2).toBeLessThanOrEqual(900);
  });

  it("is at most 55,000 words of all documents together, code included, without what programs write", () => {
    const written = GUIDES.filter((name) => !/^(cli.*|security-table|reliability-measurements)\.md$/.test(name));
    const documents = [
      ...readdirSync(root).filter((name) => name.endsWith(".md")),
      ...written.map((name) => `docs/${name}`),
    ];
    const lengths = documents.map((path) => read(path).split(/\s+/).filter(Boolean).length);
    expect(lengths.reduce((sum, length) => sum + length)).toBeLessThanOrEqual(55_000);
  });

  it("is counted without code, front matter and the lines of tables", () => {
    expect(words("---\na: b\n---\none `two three`\n```sh\nfour\n```\n\n| five | six |\n|---|---|\n")).toBe(5);
  });
});

describe("the skill", () => {
  it("has a name and a description, each on a line of the front matter", () => {
    expect(read("skills/agentauth/SKILL.md")).toMatch(/^---\nname: agentauth\ndescription: .{50,1024}\n---\n/);
  });
});

describe.each(PAGES)("%s", (page) => {
  const text = read(page);

  it("links to files that are there", () => {
    const links = [...text.matchAll(/\]\((?!https?:)([^)#]+)/g)].map(([, link]) => link ?? "");
    expect(links.filter((link) => !existsSync(join(root, dirname(page), link)))).toEqual([]);
  });

  it("links to headings that are there", () => {
    const links = [...text.matchAll(/\]\((?!https?:)([^)#]*)#([^)]+)\)/g)];
    const missing = links.filter(([, link = "", anchor = ""]) => {
      return !anchorsOf(link === "" ? page : join(dirname(page), link)).includes(anchor);
    });
    expect(missing.map(([link]) => link)).toEqual([]);
  });

  it("names npm scripts that exist", () => {
    const { scripts } = JSON.parse(read("package.json")) as { scripts: Record<string, string> };
    const named = [...text.matchAll(/npm run ([\w:]+)/g)].map(([, script]) => script ?? "");
    expect(named.filter((script) => !(script in scripts))).toEqual([]);
  });

  it("gets the package from no registry by its name, which is not published", () => {
    const byName = /\b(?:npx|bunx|(?:npm|pnpm|yarn|bun) (?:add|dlx|exec|i|install|x))(?: -\S+)* agentauth(?![-.\w])/g;
    const named = text.match(byName) ?? [];
    expect(named.filter((command) => command !== "npx --no agentauth")).toEqual([]);
  });

  it("shows commands that exist, with flags that they have", () => {
    const shown = [...text.matchAll(/^(?:\$ |.*&& npx --no )?agentauth (.+)$/gm)].map(([, line]) => line ?? "");
    for (const line of shown) expect(problemWith(line), line).toBeUndefined();
  });
});

const run = {
  io: createMemoryIo(),
  signal: new AbortController().signal,
  signals: processSignals(process),
  argv: [],
  redactor: new Redactor(),
  pendingSaves: createPendingSaves(),
  clock: systemClock,
  now: Date.now,
  acquireProcess: () => {
    throw new Error("nothing is run here");
  },
};
const { root: program } = buildProgram(run, { text: "", error: "" }, { commands: COMMANDS });

/** What is wrong with a command line as a page shows it, judged by the commands that are declared. */
function problemWith(line: string): string | undefined {
  let command: Command = program;
  const path: Command[] = [program];
  const words = line.split(/ (?:>|--|\||&$) ?/)[0]?.split(" ") ?? [];
  for (const word of words) {
    const next = command.commands.find((one) => one.name() === word);
    if (next === undefined) break;
    path.push(next);
    command = next;
  }
  if (command.commands.length > 0) return `${words[path.length - 1]} is no command`;
  const options = path.flatMap((one) => one.options);
  const flags = words.filter((word) => /^--?[a-z]/.test(word)).map((word) => word.split("=", 1)[0] ?? "");
  return flags.find((flag) => !options.some(({ short, long }) => flag === short || flag === long));
}
