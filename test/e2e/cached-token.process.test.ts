import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { Secret } from "../../src/redact.js";
import { fileStore } from "../../src/store/file/file.js";
import { BIN, type CliResult, cleanEnv, collect, runProcess, startProcess, temporaryFolder } from "../helpers/cli.js";
import { madeGrant } from "../helpers/grant.js";
import { freePort } from "../helpers/port.js";

const MCP = "https://mcp.example/mcp";
const DIST = new URL("../../dist/cli/", import.meta.url);

let env: { AGENTAUTH_HOME: string };

async function homeWith(token: string): Promise<{ AGENTAUTH_HOME: string }> {
  const folder = temporaryFolder();
  const { tokens } = madeGrant();
  // Without a refresh token no issuer is asked to refresh it.
  const fresh = {
    accessToken: new Secret(token),
    refreshToken: undefined,
    obtainedAt: Date.now(),
    expiresAt: undefined,
  };
  await fileStore(folder).save(madeGrant({ tokens: { ...tokens, ...fresh } }), undefined);
  return { AGENTAUTH_HOME: folder };
}

beforeAll(async () => {
  env = await homeWith("access-token-1");
});

/** The whole program, as it runs where the quick way gives up. */
const WHOLE = `const { run, commands } = await import(${JSON.stringify(new URL("tokens.cjs", DIST).href)});
process.exitCode = await run(process.argv.slice(1), process, commands);`;

function whole(args: readonly string[], stdout: "pipe" | number = "pipe"): Promise<CliResult> {
  return ending([process.execPath, "--input-type=module", "-e", WHOLE, "--", ...args], stdout);
}

async function ending(
  [file = "", ...args]: readonly string[],
  stdout: "pipe" | number = "pipe",
  more: Record<string, string> = {},
): Promise<CliResult> {
  const child = spawn(file, args, { env: cleanEnv({ ...env, ...more }), stdio: ["ignore", stdout, "pipe"] });
  const [out, err] = [collect(child.stdout), collect(child.stderr)];
  const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
  return { code, signal, stdout: out(), stderr: err() };
}

describe("a token that is stored and fresh", () => {
  it.each<[string[]]>([
    [[MCP]],
    [[MCP, "--format", "json"]],
    [[MCP, "--format=env", "--min-ttl", "3600", "--no-login"]],
    [["-q", MCP, "--scope", "tools", "--format", "headers-json"]],
    [[MCP, "--scope", "admin"]],
    [[MCP, "--format", "rwa"]],
    [[MCP, "--profile", "work"]],
    [[MCP, "--format", "k8s"]],
    [["https://mcp.example/other", "--format", "json"]],
    [[]],
  ])("token %j prints the same and ends with the same code as the whole program", async (args) => {
    const { stdout, stderr, code } = await runProcess(["token", ...args], { env });
    expect({ stdout, stderr, code }).toEqual(pick(await whole(["token", ...args])));
  });

  const pick = ({ stdout, stderr, code }: CliResult) => ({ stdout, stderr, code });

  it("is printed whole, however long it is", async () => {
    const token = "t".repeat(300_000);
    const { stdout, code } = await runProcess(["token", MCP], { env: await homeWith(token) });
    expect(code).toBe(0);
    expect(stdout).toBe(`${token}\n`);
  });

  it("is no failure where its reader has gone", async () => {
    const child = startProcess(["token", MCP], { env });
    const err = collect(child.stderr);
    child.stdout?.destroy();
    expect(await once(child, "close")).toEqual([0, null]);
    expect(err()).toBe("");
  });

  it.skipIf(!existsSync("/dev/full"))("is a failure where it cannot be written, as in the whole program", async () => {
    const full = openSync("/dev/full", "w");
    try {
      const result = await ending([process.execPath, BIN, "token", MCP], full);
      expect(result.stderr).toContain("error: the output cannot be written: ENOSPC");
      expect(result).toEqual(await whole(["token", MCP], full));
      expect(result.code).toBe(8);
    } finally {
      closeSync(full);
    }
  });
});

it.each([
  ["the variable", (path: string) => ({ AGENTAUTH_AUDIT: `file:${path}` })],
  [
    "the setting",
    (path: string, home: string) => {
      const profiles = { default: { audit: `file:${path}` } };
      writeFileSync(join(home, "config.json"), JSON.stringify({ schema: 1, profiles }));
      return {};
    },
  ],
])("a token that is stored and fresh is an event in the audit file that %s names", async (_what, name) => {
  const home = await homeWith("access-token-1");
  const path = join(home.AGENTAUTH_HOME, "audit.log");
  const more = name(path, home.AGENTAUTH_HOME);
  const { stdout, stderr, code } = await runProcess(["token", MCP], { env: { ...home, ...more } });
  expect({ stdout, stderr, code }).toEqual({ stdout: "access-token-1\n", stderr: "", code: 0 });
  const lines = readFileSync(path, "utf8").trimEnd().split("\n");
  const event = { type: "token", source: "stored", server: new URL(MCP).origin };
  expect(lines.map((line) => JSON.parse(line))).toEqual([expect.objectContaining(event)]);
});

describe("what is loaded for it", () => {
  const ROOT = new URL("../../", import.meta.url).href;

  /** The files of this package that are named by the coverage in a folder. */
  function filesIn(folder: string): string[] {
    return readdirSync(folder)
      .flatMap((name) => JSON.parse(readFileSync(join(folder, name), "utf8")).result as { url: string }[])
      .flatMap(({ url }) => (url.startsWith(ROOT) ? [url.slice(ROOT.length)] : []))
      .sort();
  }

  /** Runs a command line and returns which files of ours and which of Node's own modules it loaded. */
  async function loadedBy(args: readonly string[], code = 0): Promise<{ files: string[]; builtins: string[] }> {
    const log = `${temporaryFolder()}/loaded.json`;
    // Coverage names every file that was run.
    const folder = temporaryFolder();
    const script = `process.on("exit", () => process.getBuiltinModule("node:fs").writeFileSync(${JSON.stringify(log)}, JSON.stringify(process.moduleLoadList)));`;
    const preload = `--import=data:text/javascript,${encodeURIComponent(script)}`;
    const result = await ending([process.execPath, preload, BIN, ...args], "pipe", { NODE_V8_COVERAGE: folder });
    expect(result.code).toBe(code);
    return { files: filesIn(folder), builtins: JSON.parse(readFileSync(log, "utf8")) };
  }

  it("is the entry and one file beside it, and neither of them imports a package", async () => {
    const { files } = await loadedBy(["token", MCP]);
    expect(files).toEqual(["bin/agentauth.cjs", "dist/cli/fast-path/cached-token.cjs", "dist/cli/main.cjs"]);
    for (const file of files) {
      const text = readFileSync(new URL(`../../${file}`, import.meta.url), "utf8");
      const imported = [...text.matchAll(/\b(?:from|import|require)\s*\(?\s*"([^"]+)"/g)].map(([, name = ""]) => name);
      const foreign = imported.filter((name) => !name.startsWith("node:") && !name.startsWith("."));
      expect(foreign).toEqual([]);
    }
  });

  it("holds no code for requests, and makes Node load none", async () => {
    const quick = await loadedBy(["token", MCP]);
    const heavy = /^NativeModule (?:https?|http2|_http_client|tls|internal\/deps\/undici\/undici)$/;
    expect(quick.builtins.filter((name) => heavy.test(name))).toEqual([]);
    // That the list would name them is seen on a command that sends a request.
    const slow = await loadedBy(["discover", `http://127.0.0.1:${await freePort()}/mcp`], 5);
    expect(slow.files).toContain("dist/cli/tokens.cjs");
    expect(slow.builtins.filter((name) => heavy.test(name))).not.toEqual([]);
  });

  it("is one small bundle for the settings, and for a word that is no command", async () => {
    const files = ["bin/agentauth.cjs", "dist/cli/main.cjs", "dist/cli/settings.cjs"];
    expect((await loadedBy(["config", "list"])).files).toEqual(files);
    expect((await loadedBy(["wrong-word"], 2)).files).toEqual(files);
  });

  it("is less still for --version", async () => {
    expect((await loadedBy(["--version"])).files).toEqual(["bin/agentauth.cjs", "dist/cli/main.cjs"]);
  });
});
