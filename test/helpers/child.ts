import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { onTestFinished } from "vitest";
import { temporaryFolder } from "./folder.js";

/** A separate process that runs the commands of a test. */
export interface Child {
  readonly pid: number;
  /** Everything that it has said, in order. */
  readonly said: Said[];
  /** Waits for the next thing that it says under this name, each one given once; fails when it ends without. */
  hears(event: string): Promise<Said>;
  send(command: object): void;
  /** Sends a signal; after SIGKILL the process is gone. */
  kill(signal: NodeJS.Signals): Promise<void>;
  /** Resolves when it has ended. */
  readonly ended: Promise<void>;
}

/** What a child says: a name and whatever belongs to it. */
export type Said = { readonly event: string } & Readonly<Record<string, unknown>>;

const compiled = new Map<string, Promise<string>>();

/**
 * Bundles a TypeScript file, so that Node can run it in a separate process: with the sources as they are, not as they
 * were when they were last built.
 *
 * @returns the path of the bundle
 */
export function compile(entry: URL): Promise<string> {
  const path = fileURLToPath(entry);
  const made = compiled.get(path) ?? bundle(path);
  compiled.set(path, made);
  return made;
}

async function bundle(path: string): Promise<string> {
  const outfile = join(temporaryFolder(), `${basename(path, ".ts")}.mjs`);
  // CommonJS packages load modules of Node with require().
  const js = 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);';
  const target = { platform: "node", format: "esm", target: "node20.19" } as const;
  await build({ entryPoints: [path], outfile, bundle: true, banner: { js }, ...target });
  return outfile;
}

/** Starts a bundle; it goes away with the test. */
export function startChild(path: string, job: object, wrapper: readonly string[] = []): Child {
  const [command = process.execPath, ...args] = [...wrapper, process.execPath, path, JSON.stringify(job)];
  const child = spawn(command, args, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const ended = once(child, "exit").then(() => undefined);
  onTestFinished(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await ended;
  });
  const said: Said[] = [];
  child.on("message", (message) => said.push(message as Said));
  return { pid: child.pid ?? 0, said, ended, ...listening(child, said, ended) };
}

/** Gives jobs to processes of a bundle, each of which does one after another: a start costs more than a job. */
export function jobProcesses(entry: URL): (job: object) => Promise<unknown> {
  const idle = new Set<Child>();
  const start = async () => {
    const child = startChild(await compile(entry), {});
    void child.ended.then(() => idle.delete(child));
    return child;
  };
  return async (job) => {
    const [known] = idle;
    if (known) idle.delete(known);
    const child = known ?? (await start());
    child.send(job);
    const { result } = await child.hears("done");
    idle.add(child);
    return result;
  };
}

function listening(child: ChildProcess, said: Said[], ended: Promise<void>) {
  const given = new Set<Said>();
  let isOver = false;
  child.once("close", () => {
    isOver = true;
  });
  const find = (event: string) => said.find((one) => one.event === event && !given.has(one));
  return {
    async hears(event: string): Promise<Said> {
      for (;;) {
        const found = find(event);
        if (found) {
          given.add(found);
          return found;
        }
        if (isOver) throw new Error(`the child ended without "${event}", after ${JSON.stringify(said)}`);
        await new Promise((resolve) => setTimeout(resolve, 2));
      }
    },
    send: (command: object) => void child.send(command),
    async kill(signal: NodeJS.Signals): Promise<void> {
      child.kill(signal);
      if (signal === "SIGKILL") await ended;
    },
  };
}
