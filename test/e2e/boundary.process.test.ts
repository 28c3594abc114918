import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, cpSync, existsSync, openSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { describe, expect } from "vitest";
import { BIN, cleanEnv, collect, linesOf, temporaryFolder } from "../helpers/cli.js";
import { ON_WINDOWS } from "../helpers/systems.js";
import { testbedTest } from "../helpers/testbed-test.js";

const it = testbedTest({ devices: 5 });

async function run(program: string, args: string[], env: Record<string, string>, stdout: "pipe" | number = "pipe") {
  const child = spawn(process.execPath, [program, ...args], { env, stdio: ["ignore", stdout, "pipe"] });
  const stderr = collect(child.stderr);
  const [code] = await once(child, "close");
  return { code, stderr: stderr() };
}

it("a checkout that is not built is said in words", async () => {
  const folder = temporaryFolder();
  cpSync(dirname(BIN), join(folder, "bin"), { recursive: true });
  expect(await run(join(folder, "bin/agentauth.cjs"), ["--version"], cleanEnv())).toEqual({
    code: 1,
    stderr: `error: agentauth is not built: dist/ is missing or incomplete in ${folder}\nhint: npm ci\n`,
  });
});

describe.skipIf(ON_WINDOWS)("a working folder that was removed", () => {
  it.for([
    [4, "token http://127.0.0.1:1/mcp --no-login"],
    [4, "status"],
    [0, "mcp add cursor http://127.0.0.1:1/mcp --dry-run"],
    [2, "mcp add cursor http://127.0.0.1:1/mcp --scope project --dry-run"],
    [2, "config set client_cert cert.pem"],
  ] as const)("ends with %i: %s", async ([code, words]) => {
    const script = 'cd "$1" && rmdir "$1" && shift && exec "$@"';
    const args = ["-c", script, "sh", temporaryFolder(), process.execPath, BIN, ...words.split(" ")];
    const child = spawn("sh", args, { env: cleanEnv(), stdio: ["ignore", "ignore", "pipe"] });
    const stderr = collect(child.stderr);
    expect(await once(child, "close")).toEqual([code, null]);
    expect(stderr()).not.toMatch(/a bug in|\n +at /);
  });
});

it.skipIf(process.getuid?.() !== 0)(
  "a user whom the system does not know gets an error, or what needs no file",
  async () => {
    for (const [code, env] of [
      [2, {}],
      [4, { AGENTAUTH_STORE: "memory" }],
      [4, { AGENTAUTH_HOME: "/nonexistent/agentauth" }],
    ] as const) {
      const options = { uid: 54_321, gid: 54_321, env: { PATH: process.env["PATH"], ...env } };
      const child = spawn(process.execPath, [BIN, "token", "http://127.0.0.1:1/mcp", "--no-login"], options);
      const stderr = collect(child.stderr);
      expect(await once(child, "close")).toEqual([code, null]);
      expect(stderr()).toMatch(/^error: [^\n]+\nhint: [^\n]+\n$/);
    }
  },
);

describe.skipIf(!existsSync("/dev/full"))("a full device as the output", () => {
  it.for([
    ["--version"],
    ["--help"],
    ["help exit-codes"],
    ["help --help"],
    ["config list"],
    ["completion bash"],
    ["devices list -o plain"],
  ])("ends %s with 8", async ([words = ""], { testbed }) => {
    const scope = words === "devices list -o plain" ? ["--pool", testbed.sandbox.ids.pool] : [];
    const full = openSync("/dev/full", "w");
    try {
      expect(await run(BIN, [...words.split(" "), ...scope], cleanEnv(testbed.env), full)).toEqual({
        code: 8,
        stderr:
          "error: the output cannot be written: ENOSPC: no space left on device, write\n" +
          "hint: check the disk or the device that the output goes to\n",
      });
    } finally {
      closeSync(full);
    }
  });
});

it.for<[entry: string, call: string, said: string]>([
  ["sandbox/index", "await startSandbox({ accessTokenTtl: 60 })", "did you mean accessTokenTtlSeconds?"],
  ["node", "createAgentClient({ loginTimeout: 60 })", "did you mean loginTimeoutMs?"],
])("an error of %s that nothing catches prints no long line of the bundle", async ([entry, call, said]) => {
  const name = /\w+(?=\()/.exec(call)?.[0];
  const module = new URL(`../dist/${entry}.js`, pathToFileURL(BIN)).href;
  const script = join(temporaryFolder(), "script.mjs");
  writeFileSync(script, `import { ${name} } from ${JSON.stringify(module)};\n${call};\n`);
  const { code, stderr } = await run(script, [], cleanEnv());
  expect([code, stderr]).toEqual([1, expect.stringContaining(said)]);
  expect(Math.max(...linesOf(stderr).map((line) => line.length))).toBeLessThan(1000);
});
