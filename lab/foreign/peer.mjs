// What the files in peers/ are made of. A peer is a file there; each of its `rows` is one set-up of a foreign program:
//
//   name     how it is selected and printed
//   title    what it is called in docs/servers.md
//   quick    whether it is part of every run of .ci/run
//   start    starts it, and returns where it is: { url, version, tool, says, revoked, close }; throws NotHere where this
//            machine cannot have it. It loads its packages itself: the runner reads every peer, on the oldest Node.
//            With `env`, clients get these variables. With those, or `isBalanced`, requests of the package leave by its
//            own `fetch`, which knows proxies and the cookies of a balancer; the MCP SDK's does not
//            With `setup`, the login is one with { client, redirectPort, policy }, as the package names them
//   check    in place of these, for what is no server: returns { passed, version, output }, and is not in docs/servers.md
//   browse   what the user does in the browser, if that is more than to follow redirects; gets a Browser and the address
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export const folder = dirname(fileURLToPath(import.meta.url));
export const modules = join(folder, "node_modules");

/** A peer that this machine cannot have: its row is left out, and the reason is printed. */
export class NotHere extends Error {}

/** The installed version of a package of this lab. */
export function versionOf(name) {
  return JSON.parse(readFileSync(join(modules, name, "package.json"), "utf8")).version;
}

/** Listens on a free port of this machine. */
export async function listen(server) {
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return `http://127.0.0.1:${server.address().port}`;
}

/** A port of this machine that was free a moment ago. */
export async function freePort() {
  const server = createServer();
  const port = new URL(await listen(server)).port;
  await new Promise((resolve) => server.close(resolve));
  return Number(port);
}

/** Starts a program that prints where it is as one line of JSON. Returns that, and how to end it. */
export async function startPrinting([program, ...words], env = {}) {
  const child = spawn(program, words, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "inherit"] });
  const line = once(createInterface({ input: child.stdout }), "line");
  const ended = once(child, "exit").then(([code]) => {
    throw new Error(`${words.at(-1)} ended with ${code}`);
  });
  const [text] = await Promise.race([line, ended]);
  ended.catch(() => {});
  return { ...JSON.parse(text), close: () => end(child) };
}

/**
 * Starts a program of Debian that listens on a port, with files in a folder of its own.
 *
 * @param program its name; `debian` is its package, where that has another name
 * @param files what is written into the folder, by name, once the folder is known
 * @param words its arguments, and `env` its variables, once the folder is known
 */
export async function startProgram({ program, debian = program, port, files = () => ({}), words, env = () => ({}) }) {
  requireProgram(program, debian);
  const work = mkdtempSync(join(tmpdir(), "agentauth-foreign-"));
  // A program that root starts may run as another user.
  chmodSync(work, 0o755);
  for (const [name, text] of Object.entries(files(work))) writeFileSync(join(work, name), text);
  const child = spawn(program, words(work), {
    env: { ...process.env, PATH: PROGRAMS, ...env(work) },
    cwd: work,
    // Standard output is the line that the runner reads.
    stdio: ["ignore", 2, 2],
  });
  const state = { hasEnded: false };
  child.on("exit", () => {
    state.hasEnded = true;
  });
  while (!(await isListening(port))) {
    if (state.hasEnded) throw new Error(`${program} ended with ${child.exitCode ?? child.signalCode}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const close = async () => {
    if (!state.hasEnded) await end(child);
    rmSync(work, { recursive: true, force: true });
  };
  return { work, close };
}

const PROGRAMS = `${process.env.PATH}:/usr/sbin:/sbin`;

/** The first version that a program prints, with `-v` or as said. */
export function programVersion(program, word = "-v") {
  const { stdout, stderr } = spawnSync(program, [word], { encoding: "utf8", env: { ...process.env, PATH: PROGRAMS } });
  return /\d+\.\d+(\.\d+)?/.exec(`${stdout}${stderr}`)?.[0];
}

/** The version of an installed package of Debian. */
export function packageVersion(name) {
  return spawnSync("dpkg-query", ["--show", name], { encoding: "utf8" }).stdout.trim().split("\t")[1];
}

function requireProgram(program, debian) {
  const isThere = PROGRAMS.split(":").some((path) => existsSync(join(path, program)));
  if (!isThere) throw new NotHere(`${program} is missing: apt-get install ${debian}`);
}

function isListening(port) {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1", () => socket.destroy() && resolve(true));
    socket.on("error", () => resolve(false));
  });
}

async function end(child) {
  const exited = once(child, "exit");
  child.kill();
  await exited;
}
