import type { Clock } from "../../http/deadline.js";
import type { ProcessLike } from "../io/io.js";

/** Where a run is. */
export interface Machine {
  /** As in `process.platform`. */
  readonly platform: string;
  /** The working folder. */
  readonly folder: string;
}

/** What {@link main} needs of the process that it runs in. */
export interface Host extends ProcessLike {
  on(event: NodeJS.Signals, listener: () => void): unknown;
  on(event: "uncaughtException", listener: (error: Error) => void): unknown;
  off(event: NodeJS.Signals, listener: () => void): unknown;
  emit(event: NodeJS.Signals, signal: NodeJS.Signals): boolean;
  exit(code: number): never;
  /** Default: that of the machine. */
  readonly clock?: Clock;
  /** The path of Node. */
  readonly execPath?: string;
  /** The command line of the process: Node, and our program. */
  readonly argv?: readonly string[];
  /** Default: those of the process. */
  readonly machine?: Machine;
}
