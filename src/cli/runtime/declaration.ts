import type { Command } from "commander";
import type { CommandContext, RunContext } from "./context.js";

/** The headings of the list of commands, in the order of the help. */
export const GROUPS = ["Start:", "Tokens:", "Lists:", "Settings:", "Sandbox:", "Help:"] as const;

/** What a `command.ts` exports as `command`: where the help lists it, and how it is declared. */
export interface CommandDeclaration {
  /** The heading that the help lists its commands under. */
  group: (typeof GROUPS)[number];
  /** Its place under that heading: a lower number comes first. A subcommand of another command comes after that one. */
  order: number;
  /** The first words of its command lines, which declare it and what shares a word with it. */
  names: readonly string[];
  /** More of them, which the help does not list. */
  hiddenNames?: readonly string[];
  /** It reads the declarations of others, so that all are made. */
  readsAll?: boolean;
  /** Declares the commands. It is cheap: what a command needs to run is loaded when it runs. */
  declare(registry: Registry): void;
}

/** Runs a command and returns its exit code; undefined stands for 0. */
export type CommandRun<Options> = (options: Options, context: CommandContext) => Promise<number | undefined>;

type CommandAction = (...args: unknown[]) => Promise<void>;

export interface Registry {
  root: Command;
  /** A commander action that runs a command; `positional` names its arguments in order. */
  action<Options>(run: CommandRun<Options>, ...positional: (keyof Options & string)[]): CommandAction;
  /** The same for a function of a module that is loaded when the command runs. */
  run<Name extends string, Module extends Readonly<Record<Name, CommandRun<never>>>>(
    load: () => Promise<Module>,
    name: Name,
    ...positional: (keyof Parameters<Module[Name]>[0] & string)[]
  ): CommandAction;
  /** What is known before the flags are. */
  context: RunContext;
}
