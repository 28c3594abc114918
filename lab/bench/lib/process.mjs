// Starts the measured programs and the data server, each as a separate process.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

const usage = fileURLToPath(new URL("usage.cjs", import.meta.url));

/** Starts the data server and returns its address. */
export async function startServer(items, latency = 0) {
  const { line, stop } = await startChild("server.mjs", [String(items), String(latency)]);
  return { url: `http://127.0.0.1:${line}`, stop };
}

/** Starts a server of this folder as another process, and returns its first line of output. */
export async function startChild(name, args = []) {
  const path = fileURLToPath(new URL(`../${name}`, import.meta.url));
  const child = spawn(process.execPath, [path, ...args], { stdio: ["ignore", "pipe", "inherit"] });
  const [line] = await Promise.race([once(child.stdout, "data"), once(child, "exit")]);
  if (child.exitCode !== null) throw new Error(`${name} did not start`);
  return {
    line: String(line).trim(),
    pid: child.pid,
    async stop() {
      const gone = once(child, "exit");
      child.kill("SIGTERM");
      await gone;
    },
  };
}

/**
 * Runs one Node process until it exits.
 *
 * @param args the script and its arguments
 * @param options.piped sends stdout through a real pipe to `wc`, as a shell does, and counts it
 * @returns the process's CPU, peak memory and duration, and its output (or, piped, its lines and bytes)
 */
export async function run(args, { env = {}, piped = false } = {}) {
  const command = [process.execPath, "--require", usage, ...args];
  const [file, ...rest] = piped ? ["sh", "-c", '"$@" | wc -lc', "sh", ...command] : command;
  const child = spawn(file, rest, { stdio: ["ignore", "pipe", "pipe", "pipe"], env: { ...process.env, ...env } });
  const texts = ["", "", "", ""];
  for (const at of [1, 2, 3]) child.stdio[at].setEncoding("utf8").on("data", (text) => (texts[at] += text));
  await once(child, "close");
  const [, out, err, report] = texts;
  const measured = report === "" ? undefined : JSON.parse(report);
  if (measured?.code !== 0) throw new Error(`${args.join(" ")} failed:\n${err || out}`);
  if (!piped) return { ...measured, out };
  const [lines, bytes] = out.trim().split(/\s+/).map(Number);
  return { ...measured, lines, bytes };
}

/** What the program of a side prints as JSON in each of `rounds` processes, against the sandbox in another process. */
export async function againstSandbox(side, rounds, ...args) {
  const path = fileURLToPath(new URL(`../sides/${side}.mjs`, import.meta.url));
  const sandbox = await startChild("sandbox.mjs");
  try {
    const { mcpUrl } = JSON.parse(sandbox.line);
    const printed = [];
    for (let round = 0; round < rounds; round++) printed.push(JSON.parse((await run([path, mcpUrl, ...args])).out));
    return printed;
  } finally {
    await sandbox.stop();
  }
}
