// How the official suite is run: in its own Node, one scenario at a time.
import { spawn, spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

const folder = import.meta.dirname;
const node = join(folder, "node_modules", "node", "bin", "node");
const program = join(folder, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js");

/** Installs the suite if it is not installed yet. */
export function installSuite() {
  if (existsSync(program) && existsSync(node)) return;
  const { status } = spawnSync("npm", ["ci", "--prefix", folder], { stdio: "inherit" });
  if (status !== 0) process.exit(status ?? 1);
}

/** Runs the suite; `listen` receives what it has printed so far. */
export function runSuite(args, listen = () => {}) {
  return capture(node, [program, ...args], process.env, listen);
}

/** The exit code of a program, and what it printed. */
export function capture(command, args, env = process.env, listen = () => {}) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { env, stdio: ["ignore", "pipe", "pipe"] });
    let [output, stdout] = ["", ""];
    child.stdout.on("data", (chunk) => {
      output += chunk;
      stdout += chunk;
      listen(stdout);
    });
    child.stderr.on("data", (chunk) => (output += chunk));
    child.on("close", (status) => resolve({ status, output, stdout }));
  });
}

/** Runs `work` for each item, some at a time, and returns the results in order. */
export async function inParallel(items, width, work) {
  const results = [];
  const queue = [...items.entries()];
  const worker = async () => {
    for (let next = queue.shift(); next; next = queue.shift()) results[next[0]] = await work(next[1]);
  };
  await Promise.all(Array.from({ length: width }, worker));
  return results;
}
