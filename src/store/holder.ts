import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/** Who holds something, told so that another process can find out whether it still lives. */
export interface Holder {
  readonly pid: number;
  /** The run of the machine; equal only where the clock that never runs backwards is the same. */
  readonly boot: string;
  /** The process namespace: a number means the same process only within it. */
  readonly space: string;
  /** When the process began, by the kernel's count: tells it from a later one with its number; empty where unknown. */
  readonly started: string;
}

/** Whether a holder lives; `unknown` where this process cannot see it. */
export type Fate = "alive" | "dead" | "unknown";

let self: Holder | undefined;

/** This process. */
export function thisHolder(): Holder {
  self ??= { pid: process.pid, boot: bootOf(), space: namespace("pid"), started: startOf(process.pid)?.started ?? "" };
  return self;
}

/** Milliseconds that never run backwards and that every process of one boot counts alike. */
export function bootClock(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

/** What became of a holder, as far as it can be proven. */
export function fateOf(holder: Holder): Fate {
  const me = thisHolder();
  if (holder.boot !== me.boot || holder.space !== me.space) return "unknown";
  if (process.platform !== "linux") return signalled(holder.pid);
  const found = startOf(holder.pid);
  if (found === undefined) return signalled(holder.pid);
  return found.started === holder.started && !found.ended ? "alive" : "dead";
}

/** Without a process table to read: a number that is free is proof of death, one in use proves nothing more than that. */
function signalled(pid: number): Fate {
  try {
    process.kill(pid, 0);
    return "alive";
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH" ? "dead" : "alive";
  }
}

function bootOf(): string {
  try {
    // In a time namespace of its own a container counts differently.
    return `${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()} ${namespace("time")}`;
  } catch {
    return `host ${hostname()}`;
  }
}

function namespace(kind: "pid" | "time"): string {
  try {
    return readlinkSync(`/proc/self/ns/${kind}`);
  } catch {
    return "";
  }
}

/** A line of the process table (proc(5)): the state follows the name in brackets, the start is the 22nd field. */
function startOf(pid: number): { started: string; ended: boolean } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { started: fields[19] ?? "", ended: fields[0] === "Z" || fields[0] === "X" };
  } catch {
    return undefined;
  }
}
