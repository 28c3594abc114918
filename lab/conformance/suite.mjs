// How the official suite is run: in its own Node, one scenario at a time.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { modules, node } from "../install.mjs";

const program = join(modules, "@modelcontextprotocol", "conformance", "dist", "index.js");

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
