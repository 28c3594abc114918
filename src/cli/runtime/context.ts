import type { Writable } from "node:stream";
import type { AgentAuthError } from "../../errors.js";
import type { Redactor } from "../../redact.js";
import type { GlobalFlags } from "../flags/global.js";
import type { Io } from "../io/io.js";

/** Our own process, lent to a command that runs another program in its place. */
export interface LentProcess {
  /** For bytes that are passed on as they are. */
  readonly stdout: Writable;
  /** Likewise. */
  readonly stderr: Writable;
  /** The environment without our secrets, empty variables included. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** SIGINT, SIGTERM and SIGHUP end this run again. */
  giveBack(): void;
  /** Ends the process at once, where a reader that has stopped reading would keep it for ever. */
  exit(code: number): never;
}

/** What a command works with beside its own options. */
export interface CommandContext {
  readonly io: Io;
  /** Fires on SIGINT, SIGTERM and SIGHUP. */
  readonly signal: AbortSignal;
  /** The command line as it was typed, without the program's name. */
  readonly argv: readonly string[];
  readonly redactor: Redactor;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  /** The error with the flags of this command line in its hint, where that is the command that signs in. */
  readonly withGivenFlags?: (error: AgentAuthError) => AgentAuthError;
  /** Leaves signals to the caller: they neither fire {@link CommandContext.signal} nor end the run until it gives back. */
  readonly lend: () => LentProcess;
}

/** Whether a person may be asked, or a browser opened: neither the flag nor the variable says no. */
export function mayAsk({ input }: Pick<GlobalFlags, "input">, { env }: Pick<Io, "env">): boolean {
  return input !== false && !env["AGENTAUTH_NO_INPUT"];
}
