// Controls the processes that request tokens.
import { spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Broken } from "./tools.mjs";

const PROGRAM = fileURLToPath(new URL("worker.mjs", import.meta.url));
const OWN_NAMESPACE = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"];

/** Whether this user may create PID namespaces on this machine. */
export function canHaveNamespaces() {
  const [command, ...flags] = OWN_NAMESPACE;
  return spawnSync(command, [...flags, "true"]).status === 0;
}

/** The answer for a process that has exited. */
const GONE = { gone: true };

// A stopped process receives neither Ctrl-C nor the exit of its parent.
const alive = new Set();
process.once("exit", () => {
  for (const worker of alive) worker.signal("SIGKILL");
});
for (const [signal, code] of Object.entries({ SIGHUP: 129, SIGINT: 130, SIGTERM: 143 }))
  process.once(signal, () => process.exit(code));

/** A worker process. */
export class Worker {
  /** Resolves when the worker accepts requests. */
  ready;
  /** Resolves when the worker has exited. */
  ended;
  #child;
  #pid;
  #waiting = new Map();
  #stages = [];
  #nextId = 1;
  #output = "";

  /** @param options.program another program than worker.mjs */
  constructor(settings, { namespace = false, program = PROGRAM } = {}) {
    const command = [...(namespace ? OWN_NAMESPACE : []), process.execPath, program, JSON.stringify(settings)];
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
    // A message to a killed process fails; `close` reports the exit.
    this.#child.on("error", () => {});
  }

  /** Requests a token; returns its digest, the error, or `gone` if the process exited first. */
  ask(message) {
    const id = this.#nextId++;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.#send({ kind: "ask", id, ...message });
    });
  }

  /** Like `ask`, retried while the error class is "unavailable", up to `times` attempts. */
  async insist(message, times = 8) {
    const answer = await this.ask(message);
    if (answer.error?.class !== "unavailable" || times === 1) return answer;
    const { epoch, options } = message;
    return this.insist({ epoch, options }, times - 1);
  }

  /** Resolves with the stage at which the worker pauses, or undefined if its process exits. */
  stage() {
    return new Promise((resolve) => this.#stages.push(resolve));
  }

  /** Continues a paused worker. */
  go() {
    this.#send({ kind: "go" });
  }

  signal(name) {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null || this.#pid === undefined) return;
    process.kill(this.#pid, name);
  }

  /** The process state in /proc: `T` is stopped. */
  state() {
    const line = readFileSync(`/proc/${this.#pid}/stat`, "utf8");
    return line.slice(line.lastIndexOf(")") + 2)[0];
  }

  /** Kills the worker; resolves when it has exited. */
  async kill() {
    // The PID of a starting worker is not known yet.
    await this.ready.catch(() => {});
    this.signal("SIGKILL");
    await this.ended;
  }

  /** Asks the worker to exit. */
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
