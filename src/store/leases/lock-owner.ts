import { readFileSync, readlinkSync } from "node:fs";
import { hostname, uptime } from "node:os";
import { processStart } from "../../platform/process-start.js";
import { system } from "../../platform/system.js";

/** The process that holds a lock file, in terms by which another process can check whether it is alive. */
export interface LockOwner {
  readonly pid: number;
  /** The boot of the machine; equal only where the monotonic clock is the same. */
  readonly boot: string;
  /** The process namespace: a number means the same process only within it. */
  readonly space: string;
  /**
   * When the process started, which distinguishes it from a later one with the same number: by the kernel's count, or in
   * Unix milliseconds where there is no process table.
   */
  readonly started: string;
}

/** Whether a holder is alive; `unknown` where this process cannot see it. */
export type Liveness = "alive" | "dead" | "unknown";

/** A change of the clock while the machine runs moves the computed time of its boot by as much. */
const CLOCK_CHANGE_MS = 120_000;
/** By how much the start of a process by its own count may differ from that of the system. */
const START_TOLERANCE_MS = 10_000;

let self: LockOwner | undefined;

/** This process. */
export function thisProcess(): LockOwner {
  const { pid } = process;
  self ??= { pid, boot: bootOf(), space: namespace("pid"), started: startOf(pid)?.started ?? ownStart() };
  return self;
}

/** Monotonic milliseconds, the same in every process of one boot. */
export function bootClock(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

/** Whether a holder is alive, as far as it can be proven. */
export function livenessOf(holder: LockOwner): Liveness {
  const me = thisProcess();
  if (holder.boot !== me.boot || holder.space !== me.space) return "unknown";
  const found = startOf(holder.pid);
  if (found === undefined) return probeBySignal(holder);
  return found.started === holder.started && !found.ended ? "alive" : "dead";
}

/**
 * Whether the number of a holder that seems to be alive belongs to a later process by now. Only Linux knows that at once;
 * elsewhere a tool of the system is asked, so ask rarely.
 */
export function wasReused({ pid, started }: LockOwner): boolean {
  if (hasProcessTable()) return false;
  const found = processStart(pid);
  return found !== undefined && found > Number(started) + START_TOLERANCE_MS;
}

function isStartOf(pid: number, started: number): boolean {
  const found = processStart(pid);
  return found !== undefined && Math.abs(found - started) <= START_TOLERANCE_MS;
}

function ownStart(): string {
  return String(Math.round(Date.now() - process.uptime() * 1000));
}

/**
 * Without a process table: an unused number proves that the process is dead, and so does a start before the boot, unless
 * the system has the same start for the number: then the clock was set since. A number in use proves nothing.
 */
function probeBySignal({ pid, started }: LockOwner): Liveness {
  const isOfThisBoot = Number(started) > Date.now() - uptime() * 1000 - CLOCK_CHANGE_MS;
  if (!hasProcessTable() && !isOfThisBoot && !isStartOf(pid, Number(started))) return "dead";
  try {
    process.kill(pid, 0);
    return "alive";
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "ESRCH" ? "dead" : "alive";
  }
}

/** Whether /proc is that of this system: wine shows a program of Windows that of Linux, whose numbers are others. */
function hasProcessTable(): boolean {
  return system.name === "linux" || system.name === "android";
}

function bootOf(): string {
  try {
    // In a time namespace of its own a container counts differently.
    if (hasProcessTable()) {
      return `${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()} ${namespace("time")}`;
    }
  } catch {
    // Some containers hide it.
  }
  // The name of a Mac changes with its network.
  const session = system.name === "darwin" ? system.run("sysctl", ["-n", "kern.bootsessionuuid"])?.trim() : "";
  return session ? `session ${session}` : `host ${hostname()}`;
}

function namespace(kind: "pid" | "time"): string {
  try {
    return hasProcessTable() ? readlinkSync(`/proc/self/ns/${kind}`) : "";
  } catch {
    return "";
  }
}

/** A line of the process table (proc(5)): the state follows the name in brackets, the start is the 22nd field. */
function startOf(pid: number): { started: string; ended: boolean } | undefined {
  if (!hasProcessTable()) return undefined;
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { started: fields[19] ?? "", ended: fields[0] === "Z" || fields[0] === "X" };
  } catch {
    return undefined;
  }
}
