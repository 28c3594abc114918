import { readFileSync, readlinkSync } from "node:fs";
import { hostname, uptime } from "node:os";
import { orUndefined } from "../../errors.js";
import { isJsonObject } from "../../http/strict-json.js";
import { isRecordedFailure, type RecordedFailure } from "../../oauth/model/lease.js";
import { randomHex, system } from "../../platform.js";

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

export function thisProcess(): LockOwner {
  const { pid } = process;
  self ??= { pid, boot: readBootId(), space: readNamespace("pid"), started: readStart(pid)?.started ?? ownStart() };
  return self;
}

/** Monotonic milliseconds, the same in every process of one boot. */
export function bootClock(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

/** Whether a holder is alive, as far as it can be proven. */
export function checkLiveness(holder: LockOwner): Liveness {
  const me = thisProcess();
  if (holder.boot !== me.boot || holder.space !== me.space) return "unknown";
  const found = readStart(holder.pid);
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

function hasStartedAt(pid: number, started: number): boolean {
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
  if (!hasProcessTable() && !isOfThisBoot && !hasStartedAt(pid, Number(started))) return "dead";
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

function readBootId(): string {
  try {
    // In a time namespace of its own a container counts differently.
    if (hasProcessTable())
      return `${readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim()} ${readNamespace("time")}`;
  } catch {
    // Some containers hide it.
  }
  // The name of a Mac changes with its network.
  const session = system.name === "darwin" ? system.run("sysctl", ["-n", "kern.bootsessionuuid"])?.trim() : "";
  return session ? `session ${session}` : `host ${hostname()}`;
}

function readNamespace(kind: "pid" | "time"): string {
  return (hasProcessTable() && orUndefined(() => readlinkSync(`/proc/self/ns/${kind}`))) || "";
}

/** A line of the process table (proc(5)): the state follows the name in brackets, the start is the 22nd field. */
function readStart(pid: number): { started: string; ended: boolean } | undefined {
  if (!hasProcessTable()) return undefined;
  try {
    const text = readFileSync(`/proc/${pid}/stat`, "utf8");
    const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
    return { started: fields[19] ?? "", ended: fields[0] === "Z" || fields[0] === "X" };
  } catch {
    return undefined;
  }
}

/** The content of a lock file. It contains no secret. */
export interface LockRecord {
  /** Distinguishes it from another one with its number, when all traces of the name were removed in between. */
  readonly id: string;
  readonly holder: LockOwner;
  /** Unix milliseconds. */
  readonly at: number;
  /** By the clock of the holder's boot. */
  readonly deadline: number;
  /** Milliseconds after which the lock expires; with `extend`, after the last heartbeat. */
  readonly duration: number;
  readonly extend: boolean;
}

/** What is recorded when the work under a lock ends. */
export interface LeaseOutcome {
  readonly at: number;
  readonly failure: RecordedFailure | undefined;
}

export function lockId(): string {
  return randomHex(6);
}

/** Parses the content of a lock file; undefined for what this version did not write. */
export function parseLockRecord(value: Record<string, unknown> | undefined): LockRecord | undefined {
  const { id, holder, at, deadline, duration, extend } = value ?? {};
  if (typeof id !== "string" || !isHolder(holder) || typeof extend !== "boolean") return undefined;
  if (!isNumber(at) || !isNumber(deadline) || !isNumber(duration)) return undefined;
  return { id, holder, at, deadline, duration, extend };
}

/** Parses the recorded end of an attempt; undefined for what this version did not write. */
export function parseLeaseOutcome(value: Record<string, unknown> | undefined): LeaseOutcome | undefined {
  const { at, failure } = value ?? {};
  if (!isNumber(at)) return undefined;
  return { at, failure: isRecordedFailure(failure) ? failure : undefined };
}

function isHolder(value: unknown): value is LockOwner {
  if (!isJsonObject(value) || !Number.isInteger(value["pid"]) || Number(value["pid"]) < 1) return false;
  return ["boot", "space", "started"].every((name) => typeof value[name] === "string");
}

function isNumber(value: unknown): value is number {
  return Number.isFinite(value);
}

/** 1970 in the time of Windows, which counts from 1601; milliseconds. */
const WINDOWS_EPOCH_MS = 11_644_473_600_000;

/**
 * When a process started, by the system's own tool: this starts a process, so ask rarely.
 *
 * @returns Unix milliseconds, to the second; undefined where there is no such process, or no answer
 */
export function processStart(pid: number): number | undefined {
  const found = system.name === "win32" ? startOnWindows(pid) : startByPs(pid);
  return Number.isFinite(found) ? found : undefined;
}

function startByPs(pid: number): number {
  const text = system.run("env", ["LC_ALL=C", "TZ=UTC", "ps", "-o", "lstart=", "-p", String(pid)])?.trim();
  return text ? Date.parse(`${text} UTC`) : Number.NaN;
}

function startOnWindows(pid: number): number {
  const command = `(Get-Process -Id ${pid}).StartTime.ToFileTimeUtc()`;
  const text = system.run("powershell.exe", ["-NoProfile", "-NonInteractive", "-Command", command])?.trim();
  return text ? Number(text) / 10_000 - WINDOWS_EPOCH_MS : Number.NaN;
}
