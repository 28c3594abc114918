import { withVariable } from "../../../platform/system.js";
import { outputError } from "../../io/write-all.js";
import type { CommandContext } from "../../runtime/context.js";
import { isStartFailure, reportStartFailure, runChild } from "./child.js";

/** What a command gets beside our environment. */
export interface Handover {
  /** Its variable, with the value. Called once the signal handlers are installed, so that what it makes is removed. */
  variable(): [name: string, value: string];
  /** Whether secrets are masked in the output; undefined masks each stream that is not a terminal. */
  mask: boolean | undefined;
  /** The current secrets. */
  secrets(): readonly Buffer[];
  /** Called when the command has ended. */
  stop(): Promise<void> | undefined;
}

/** Runs a command in our place. @returns its exit code */
export async function runCommand(
  command: readonly string[],
  context: CommandContext,
  { variable, mask, secrets, stop }: Handover,
): Promise<number> {
  const { io, signals, pendingSaves } = context;
  const own = context.lend();
  try {
    const { exitCode, lost, isStuck } = await runChild({
      command,
      env: () => withVariable(own.env, ...variable()),
      masked: { stdout: mask ?? !io.stdout.isTTY, stderr: mask ?? !io.stderr.isTTY },
      secrets,
      onTerminal: io.stdin.isTTY || io.stdout.isTTY || io.stderr.isTTY,
      onSignalFailure: ({ code, message }) => io.warn(`the command could not be sent a signal: ${code ?? message}`),
      own,
      signals,
    }).finally(stop);
    if (isStuck) {
      await pendingSaves.settled();
      own.exit(exitCode);
    }
    if (lost && exitCode === 0) throw outputError("the command's output cannot be passed on", lost);
    return exitCode;
  } catch (error) {
    if (!isStartFailure(error)) throw error;
    return await reportStartFailure(command[0] ?? "", error, context);
  } finally {
    own.giveBack();
  }
}
