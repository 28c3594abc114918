// Prism, a mock server of another project, serves openapi.yaml, and the built command line reads all three lists from it.
// Prism is installed once, with the version of Node that it needs.
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

const root = dirname(dirname(import.meta.dirname));
const PACKAGES = ["-p", "node@24", "-p", "@stoplight/prism-cli@5.16.0"];
const START_MS = 300_000;
const LISTS = [
  ["pools", "--domain", "domain_1"],
  ["domains", "--account", "account_1"],
  ["devices", "--pool", "pool_1", "--sort", "last_seen:desc", "--page-size", "50"],
];

const home = mkdtempSync(join(tmpdir(), "agentauth-mock-"));
const port = await freePort();
const prism = spawn("npx", ["-y", ...PACKAGES, "prism", "mock", "-p", String(port), join(root, "openapi.yaml")], {
  cwd: home,
  detached: true,
  stdio: ["ignore", "pipe", "pipe"],
});
try {
  await listening();
  for (const [noun, ...flags] of LISTS) check([noun, "list", ...flags, "--strict=all", "--json"]);
} finally {
  process.kill(-prism.pid);
  rmSync(home, { recursive: true, force: true });
}

function check(args) {
  const env = { ...process.env, AGENTAUTH_HOME: home, AGENTAUTH_AGENT: "0" };
  Object.assign(env, { AGENTAUTH_BASE_URL: `http://127.0.0.1:${port}`, AGENTAUTH_API_TOKEN: "sample" });
  const options = { cwd: home, env, encoding: "utf8" };
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(root, "bin/agentauth.cjs"), ...args], options);
  const isRead = status === 0 && stderr === "" && JSON.parse(stdout).length === 1;
  console.log(`${isRead ? "pass" : "FAIL"}  agentauth ${args.join(" ")}${isRead ? "" : `\n${stdout}${stderr}`}`);
  if (!isRead) process.exitCode = 1;
}

/** Resolves once Prism answers requests. */
function listening() {
  return new Promise((resolve, reject) => {
    let output = "";
    const fail = () => reject(new Error(`Prism did not start:\n${output}`));
    const timer = setTimeout(fail, START_MS);
    const read = (chunk) => {
      output += chunk;
      if (output.includes("is listening")) {
        clearTimeout(timer);
        resolve();
      }
    };
    for (const stream of [prism.stdout, prism.stderr]) stream.on("data", read);
    prism.once("exit", fail);
  });
}

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, "127.0.0.1", () => {
      const { port: free } = server.address();
      server.close(() => resolve(free));
    });
  });
}
