import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import crossSpawn from "cross-spawn";
import { describe, expect, it } from "vitest";
import { ManagementClient } from "../../src/index.js";
import { BIN, cleanEnv, collect, linesOf, startCliSandbox, temporaryFolder } from "../helpers/cli.js";

const walk = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const hasPython = spawnSync("python3", ["--version"]).status === 0;
if (!hasPython) process.stderr.write("SKIPPED: the first hour of an agent in Python needs python3\n");

/** Runs a program in the folder of an app. npm would point an npm below it at this checkout. */
function inApp(cwd: string, program: string, args: readonly string[]): void {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^npm_(package|lifecycle|command|config_(local_)?prefix)/.test(name),
  );
  const env = { ...Object.fromEntries(inherited), AGENTAUTH_HOME: join(cwd, "home") };
  const { status, stdout, stderr } = crossSpawn.sync(program, args, { cwd, env, encoding: "utf8" });
  expect({ args, status, stdout, stderr }).toMatchObject({ status: 0 });
}

/** Runs a script as a user whose `agentauth` is the built program, with the sandbox of their home. */
async function run(home: string, program: string, args: readonly string[], more: Record<string, string> = {}) {
  const bin = join(temporaryFolder(), "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "agentauth"), `#!/bin/sh\nexec "${process.execPath}" "${BIN}" "$@"\n`);
  chmodSync(join(bin, "agentauth"), 0o755);
  const env = cleanEnv({ AGENTAUTH_HOME: home, AGENTAUTH_PROFILE: "sandbox", ...more });
  const child = spawn(program, args, { env: { ...env, PATH: `${bin}:${env["PATH"]}` }, stdio: "pipe" });
  const [stdout, stderr] = [collect(child.stdout), collect(child.stderr)];
  child.stdin.end();
  const [code] = await once(child, "close");
  return { code, stdout: stdout(), stderr: stderr() };
}

describe("the first hour", () => {
  it.skipIf(!hasPython)("of an agent in Python", async () => {
    const sandbox = await startCliSandbox(["--auto-approve", "--devices", "1"]);
    const agent = { AGENTAUTH_AGENT: "1" };
    const done = await run(sandbox.home, "python3", [walk("python-agent.py"), sandbox.ready.mcp_url], agent);
    expect(done).toEqual({ code: 0, stdout: "done\n", stderr: "" });
    await sandbox.stop();
  });

  it("of an operator", async () => {
    const sandbox = await startCliSandbox(["--devices", "90"]);
    const { base_url: baseUrl, api_token: token, account_id: account } = sandbox.ready;
    const folder = temporaryFolder();
    const { code, stderr } = await run(sandbox.home, "bash", [walk("operator.sh"), account, folder]);
    expect({ code, stderr }).toMatchObject({ code: 0, stderr: expect.not.stringContaining("error:") });
    const read = (name: string) => readFileSync(join(folder, name), "utf8");
    const pool_id = read("pool.txt").trim();
    const devices = await new ManagementClient({ baseUrl, token }).devices.list({ pool_id }).toArray();
    const countryOf = ({ last_seen }: (typeof devices)[number]) => last_seen?.country_code ?? "";
    const expected = devices.filter((one) => one.status === "revoked" || countryOf(one) === "DE");
    expect(expected.length).toBeGreaterThan(3);
    const rows = expected.map((one) => `${one.id},${one.status},${countryOf(one)}`);
    expect(read("devices.csv")).toBe(["\ufeffid,status,last_seen.country_code", ...rows, ""].join("\r\n"));
    const here = devices.filter((one) => one.status === "revoked" && ["DE", "AT"].includes(countryOf(one)));
    expect(linesOf(read("revoked-here.txt"))).toEqual(here.map(({ id }) => id));
    expect(JSON.parse(read("device.json"))).toMatchObject({ id: expected[0]?.id });
    expect(JSON.parse(read("report.json"))).toMatchObject({ complete: true, devices: { counted: devices.length } });
    expect(read("report.html")).toContain("</html>");
    expect(linesOf(read("part.txt"))).toHaveLength(20);
    expect(linesOf(read("ids.txt"))).toEqual(devices.map(({ id }) => id));
    await sandbox.stop();
  });

  it("of an app in TypeScript with the packed package", () => {
    const root = walk("../..");
    const folder = temporaryFolder();
    const inFolder = (name: string) => join(folder, name);
    const versionOf = (path: string) => JSON.parse(readFileSync(join(root, path, "package.json"), "utf8")).version;
    const names = ["@modelcontextprotocol/client", "typescript", "@types/node"];
    // `npm ci` has put these versions into the cache.
    const packages = names.map((name) => `${name}@${versionOf(`node_modules/${name}`)}`);
    inApp(root, "npm", ["pack", "--ignore-scripts", "--pack-destination", folder]);
    writeFileSync(inFolder("package.json"), JSON.stringify({ private: true, type: "module" }));
    const tarball = inFolder(`agentauth-${versionOf(".")}.tgz`);
    inApp(folder, "npm", ["install", "--prefer-offline", "--no-audit", "--no-fund", tarball, ...packages]);
    // As `tsc --init` writes it.
    const strict = {
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: true,
    };
    const compilerOptions = { target: "ES2023", module: "NodeNext", types: ["node"], ...strict };
    writeFileSync(inFolder("tsconfig.json"), JSON.stringify({ compilerOptions }));
    copyFileSync(walk("typescript-app.ts"), inFolder("app.ts"));
    inApp(folder, "npx", ["--no-install", "tsc"]);
    inApp(folder, process.execPath, ["app.js"]);
  });
});
