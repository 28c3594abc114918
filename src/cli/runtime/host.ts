import type { ProcessLike } from "../io/io.js";

/** What {@link main} needs of the process that it runs in. */
export interface Host extends ProcessLike {
  on(event: "SIGINT" | "SIGTERM" | "SIGHUP", listener: () => void): unknown;
  on(event: "uncaughtException", listener: (error: Error) => void): unknown;
  off(event: "SIGINT" | "SIGTERM" | "SIGHUP", listener: () => void): unknown;
  exit(code: number): never;
}
