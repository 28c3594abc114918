import { Command, type Help } from "commander";
import { VERSION } from "../http/user-agent.js";
import { declareAgent } from "./commands/agent.js";
import { declareApi } from "./commands/api.js";
import { declareConfig } from "./commands/config.js";
import { declareDemo } from "./commands/demo.js";
import { declareDoctor } from "./commands/doctor.js";
import { declareExec } from "./commands/exec.js";
import { declareHelp } from "./commands/help.js";
import { declareLists } from "./commands/lists.js";
import { declareMcp } from "./commands/mcp.js";
import { declareProfile } from "./commands/profile.js";
import { declareRequest } from "./commands/request.js";
import { declareSandbox } from "./commands/sandbox.js";
import { declareTree } from "./commands/tree.js";
import type { Deps } from "./context.js";
import { addGlobalFlags } from "./flags.js";
import { checkShowSecrets } from "./show-secrets.js";
import type { ParserError } from "./usage-error.js";

/** A command's work: gives its exit code, 0 when nothing is returned. */
export type Run<Options> = (options: Options, deps: Deps) => Promise<number | undefined>;

/** Where commands are declared. */
export interface Registry {
  /** The root command. */
  root: Command;
  /** A commander action that runs a command; `positional` names its arguments in order. */
  action<Options>(run: Run<Options>, ...positional: (keyof Options & string)[]): (...args: unknown[]) => Promise<void>;
  deps: Deps;
}

/** The whole command tree. */
export interface Program {
  root: Command;
  /** @returns the exit code of the command that ran */
  run(argv: readonly string[]): Promise<number>;
}

/**
 * Builds the command tree. Declaring is cheap: what a command needs to run is loaded when it runs.
 *
 * @param asked collects what the parser prints: help in `text`, complaints in `error`
 */
export function buildProgram(deps: Deps, asked: { text: string; error: string }): Program {
  let exitCode = 0;
  const root = addGlobalFlags(new Command("agentauth"))
    .description("Bearer tokens for protected MCP servers, and the pools, domains and devices behind them.")
    .version(VERSION, "-V, --version", "print the version")
    .helpCommand(false)
    .configureOutput({
      writeOut: (text) => {
        asked.text += text;
      },
      writeErr: (text) => {
        asked.error += text;
      },
      getOutHelpWidth: () => Math.min(deps.io.stdout.columns, 100),
      getErrHelpWidth: () => Math.min(deps.io.stdout.columns, 100),
    })
    .configureHelp({ showGlobalOptions: true, subcommandTerm: shortTerm });
  const registry: Registry = {
    root,
    deps,
    action:
      (run, ...positional) =>
      async (...args) => {
        const command = args.at(-1) as Command;
        const named = Object.fromEntries(positional.map((name, index) => [name, args[index]]));
        const options = command.optsWithGlobals();
        checkShowSecrets(options, deps.io);
        exitCode = (await run({ ...options, ...named } as Parameters<typeof run>[0], deps)) ?? 0;
      },
  };
  declareDemo(registry);
  declareAgent(registry);
  declareRequest(registry);
  declareExec(registry);
  declareMcp(registry);
  declareLists(registry);
  declareTree(registry);
  declareApi(registry);
  declareSandbox(registry);
  declareConfig(registry);
  declareProfile(registry);
  declareDoctor(registry);
  declareHelp(registry);
  tellWhichCommand(root, "agentauth");
  return {
    root,
    async run(argv) {
      await root.parseAsync([...argv], { from: "user" });
      return exitCode;
    },
  };
}

/** Makes the parser's errors carry the command that they are about, so that its help can be named. */
function tellWhichCommand(command: Command, name: string): void {
  command.exitOverride((error) => {
    throw Object.assign(error, { command: name } satisfies Partial<ParserError>);
  });
  for (const child of command.commands) tellWhichCommand(child, `${name} ${child.name()}`);
}

/** In a list of commands the name and arguments tell enough. */
function shortTerm(this: Help, command: Command): string {
  const args = command.registeredArguments.map((argument) =>
    argument.required ? `<${argument.name()}>` : `[${argument.name()}]`,
  );
  return [command.name(), ...args].join(" ");
}
