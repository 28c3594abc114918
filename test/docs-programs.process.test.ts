import { execFile, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, it } from "vitest";
import { AgentClient } from "../src/oauth/agent.js";
import { startSandbox } from "../src/sandbox/sandbox.js";
import { fileStore } from "../src/store/file/file.js";
import { BIN, cleanEnv, temporaryFolder } from "./helpers/cli.js";
import { TestLogin } from "./helpers/login.js";

/** The programs of docs/tokens.md in one language, in their order. */
function programs(language: string): string[] {
  const blocks = readFileSync("docs/tokens.md", "utf8").matchAll(/^```(\w+)\n(.*?)^```$/gms);
  return [...blocks].flatMap(([, one, text = ""]) => (one === language ? [text] : []));
}

const [oneLine = "", agentAuth = "", httpx = "", sdk = "", requests = ""] = programs("python");
const [go = ""] = programs("go");

// `npm run test:clients` installs the MCP SDK for Python there; httpx and requests are those of the system.
const PYTHONS = [
  fileURLToPath(new URL("../lab/clients/.python/bin/python", import.meta.url)),
  "python3",
  "/usr/bin/python3",
];
const pythonWith = (modules: string) =>
  PYTHONS.find((python) => spawnSync(python, ["-c", `import ${modules}`]).status === 0);
const inPython = (what: string, modules: string, install: string, files: readonly string[]) => {
  const python = pythonWith(modules);
  return { what, command: python && [python, "main.py"], install, files: [...files] as const };
};

const [module, hint] = [agentAuth, /# version 2 of the MCP SDK: (import httpx2 as httpx)$/m.exec(agentAuth)?.[1] ?? ""];
const ROWS = [
  inPython("the program alone", "subprocess", "apt-get install -y python3", [`${oneLine}print(token)\n`]),
  inPython("httpx", "httpx", "apt-get install -y python3-httpx", [httpx, module]),
  inPython("the official MCP SDK", "mcp, httpx2", "npm run test:clients -- python-mcp", [
    sdk,
    module.replace(/^import httpx .*$/m, hint),
  ]),
  inPython("requests", "requests", "apt-get install -y python3-requests", [requests]),
  {
    what: "Go",
    command: spawnSync("go", ["version"]).status === 0 ? ["go", "run", "main.go"] : undefined,
    install: "apt-get install -y golang-go",
    files: [go],
  },
];

for (const { what, command, install } of ROWS)
  if (command === undefined) process.stderr.write(`SKIPPED: ${what} of docs/tokens.md is not installed: ${install}\n`);

it("docs/tokens.md has a program for each of them", () => {
  expect([programs("python").length, programs("go").length, hint]).toEqual([5, 1, "import httpx2 as httpx"]);
  for (const { files } of ROWS) for (const text of files) expect(text).not.toBe("");
});

it.each(ROWS.filter(({ command }) => command !== undefined))(
  "docs/tokens.md in $what gets a token, and another one after a 401",
  async ({ what, command: [program = "", ...args] = [], files: [main = "", beside = ""] }) => {
    await using sandbox = await startSandbox({ devices: 0, autoApprove: "alice" });
    const [folder, home] = [temporaryFolder(), temporaryFolder()];
    await new AgentClient({ store: fileStore(home), login: new TestLogin() }).login(sandbox.mcpUrl);
    mkdirSync(join(folder, "bin"));
    writeFileSync(join(folder, "bin", "agentauth"), `#!/bin/sh\nexec "${process.execPath}" "${BIN}" "$@"\n`);
    chmodSync(join(folder, "bin", "agentauth"), 0o755);
    const [, extension = ""] = /\.(\w+)$/.exec(args.at(-1) ?? "") ?? [];
    writeFileSync(join(folder, `main.${extension}`), main.replaceAll("https://mcp.example/mcp", sandbox.mcpUrl));
    writeFileSync(join(folder, "agent_auth.py"), beside);
    const env = cleanEnv({ AGENTAUTH_HOME: home, HOME: home, GOCACHE: join(home, "go"), GOFLAGS: "-mod=mod" });
    env["PATH"] = `${join(folder, "bin")}:${env["PATH"]}`;
    const run = async () => (await promisify(execFile)(program, args, { cwd: folder, env })).stdout;
    const refreshes = () => sandbox.requests.filter(({ operation }) => operation === "refresh_token").length;
    const expected =
      what === "the program alone" ? /^eyJ/ : what.includes("SDK") ? /"subject":"alice"/ : /^200 .*whoami/s;
    expect(await run()).toMatch(expected);
    expect(refreshes()).toBe(0);
    if (what === "the program alone") return;
    sandbox.faults.add({ kind: "status", status: 401, path: "mcp" });
    expect(await run()).toMatch(expected);
    expect(refreshes()).toBe(1);
  },
);
