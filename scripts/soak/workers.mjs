// The processes that ask for tokens, from outside.
import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Broken } from "./invariant.mjs";

const PROGRAM = fileURLToPath(new URL("worker.mjs", import.meta.url));
const OWN_NAMESPACE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];

/** Whether this machine lets this user start processes in PID namespaces of their own. */
export function canHaveNamespaces() {
  const [command, ...flags] = OWN_NAMESPACE;
  return spawnSync(command, [...flags, "true"]).status === 0;
}

/** An answer of a process that has ended. */
const GONE = { gone: true };

// A process that is stopped hears neither Ctrl-C nor that its parent has ended.
const alive = new Set();
process.once("exit", () => {
  for (const worker of alive) worker.signal("SIGKILL");
});
for (const [signal, code] of Object.entries({ SIGHUP: 129, SIGINT: 130, SIGTERM: 143 }))
  process.once(signal, () => process.exit(code));

/** A worker process. */
export class Worker {
  /** Resolves with its pid, as this process sees it, when it can be asked. */
  ready;
  /** Resolves when it has ended. */
  ended;
  #child;
  #pid;
  #waiting = new Map();
  #stages = [];
  #nextId = 1;
  #output = "";

  constructor(settings, { namespace = false } = {}) {
    const command = [...(namespace ? OWN_NAMESPACE : []), process.execPath, PROGRAM, JSON.stringify(settings)];
    this.#child = spawn(command[0], command.slice(1), { stdio: ["ignore", "pipe", "pipe", "ipc"] });
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream.on("data", (chunk) => {
        this.#output += chunk;
      });
    }
    alive.add(this);
    this.ended = new Promise((resolve) => this.#child.once("close", resolve)).then(() => this.#release());
    this.ready = new Promise((resolve, reject) => {
      this.ended.then(() => reject(new Broken(`a worker did not start: ${this.#output}`)));
      this.#child.once("message", () => resolve(namespace ? onlyChild(this.#child.pid) : this.#child.pid));
    }).then((pid) => {
      this.#pid = pid;
    });
    this.#child.on("message", (message) => this.#receive(message));
    // A message to a process that was just killed; `close` reports its end.
    this.#child.on("error", () => {});
  }

  /** Asks for a token; returns its digest, or the error, or `gone` where the process ended first. */
  ask(message) {
    const id = this.#nextId++;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.#send({ kind: "ask", id, ...message });
    });
  }

  /** Asks again while the error class is "unavailable", as an agent does, up to `times` times. */
  async insist(message, times = 8) {
    const answer = await this.ask(message);
    if (answer.error?.class !== "unavailable" || times === 1) return answer;
    const { epoch, options } = message;
    return this.insist({ epoch, options }, times - 1);
  }

  /** Resolves with a stage when it stands still there, with undefined when its process ends. */
  stage() {
    return new Promise((resolve) => this.#stages.push(resolve));
  }

  /** Lets it go on from the stage where it stands still. */
  go() {
    this.#send({ kind: "go" });
  }

  signal(name) {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null || this.#pid === undefined) return;
    process.kill(this.#pid, name);
  }

  /** The letter that the kernel has for what it does: `T` is stopped. */
  state() {
    const line = readFileSync(`/proc/${this.#pid}/stat`, "utf8");
    return line.slice(line.lastIndexOf(")") + 2)[0];
  }

  /** Kills it; resolves when it is gone. */
  async kill() {
    // One that is just starting has a pid to be learned first.
    await this.ready.catch(() => {});
    this.signal("SIGKILL");
    await this.ended;
  }

  /** Lets it end by itself. */
  async end() {
    this.#send({ kind: "end" });
    await this.ended;
  }

  #send(message) {
    if (this.#child.connected) this.#child.send(message, () => {});
  }

  #receive(message) {
    if (message.kind === "at") return this.#stages.shift()?.(message.stage);
    if (message.kind !== "answer") return;
    this.#waiting.get(message.id)?.(message);
    this.#waiting.delete(message.id);
  }

  #release() {
    alive.delete(this);
    for (const resolve of this.#waiting.values()) resolve(GONE);
    for (const resolve of this.#stages) resolve(undefined);
    this.#waiting.clear();
    this.#stages = [];
  }
}

function onlyChild(pid) {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim());
}
