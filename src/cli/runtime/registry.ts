import type { Command } from "commander";
import type { CommandContext, RunContext } from "./context.js";

/** Runs a command and returns its exit code; undefined stands for 0. */
export type Run<Options> = (options: Options, context: CommandContext) => Promise<number | undefined>;

/** Where commands are declared. */
export interface Registry {
  /** The root command. */
  root: Command;
  /** A commander action that runs a command; `positional` names its arguments in order. */
  action<Options>(run: Run<Options>, ...positional: (keyof Options & string)[]): (...args: unknown[]) => Promise<void>;
  /** What is known before the flags are. */
  context: RunContext;
}
