import { join } from "node:path";
import { usageError } from "../../../errors.js";
import { quote, shellWord } from "../../../redact.js";
import { tokenOf } from "../../clients/login-first.js";
import { parseMcpUrlArgument } from "../../clients/mcp-url.js";
import { checkHandOver } from "../../clients/token-formats.js";
import type { AgentFlags } from "../../flags/agent.js";
import type { CommandContext } from "../../runtime/context.js";
import { tokenEncodings } from "./masker.js";
import { runCommand } from "./run-command.js";
import { keepTokenFileFresh, type RefreshedTokenFile } from "./token-file.js";

/** Where the command gets the token: in a variable, or in a file that a variable names. */
export interface TokenTarget {
  readonly kind: "env" | "file";
  /** The variable. */
  readonly name: string;
}

/** Options of `exec`. */
export interface ExecFlags extends Omit<AgentFlags, "output"> {
  url: string;
  /** The operands after the URL; they end with the words after `--`. */
  command: string[];
  /** Default: the variable AGENTAUTH_TOKEN. */
  as?: TokenTarget;
  minTtl?: number;
  /** Undefined masks each stream that is not a terminal. */
  mask?: boolean;
}

const DEFAULT_TARGET: TokenTarget = { kind: "env", name: "AGENTAUTH_TOKEN" };

/** `exec`: runs a command with the token in its environment, and returns the command's exit code. */
export async function runExec(options: ExecFlags, context: CommandContext): Promise<number> {
  const command = commandOf(options, context.argv);
  const url = parseMcpUrlArgument(options.url);
  const agent = await context.agent();
  const { scope, minTtl } = options;
  const first = await tokenOf(agent, url, { scope, minTtl, signal: context.signal });
  context.signal.throwIfAborted();
  checkHandOver(first, "exec");
  const forms = tokenEncodings();
  /** Called before the command gets a token, so that its output is masked. */
  const remember = (token: string) => {
    context.redactor.add(token);
    forms.add(token);
  };
  remember(first.value);
  const createTokenFile = () =>
    keepTokenFileFresh({
      folder: join(context.home(), "run"),
      first,
      getToken: (signal) => agent.token(url, { scope, minTtl, signal, login: false }),
      onToken: remember,
      onFailure: (error) => {
        const reason = context.redactor.redact(error instanceof Error ? error.message : String(error));
        context.io.warn(`the token file cannot be refreshed; trying again: ${reason}`);
      },
      minTtl: minTtl ?? 60,
      now: context.now,
      pause: (ms, signal) => context.clock.sleep(ms, signal),
    });
  const { kind, name } = options.as ?? DEFAULT_TARGET;
  let file: RefreshedTokenFile | undefined;
  return runCommand(command, context, {
    variable() {
      file = kind === "file" ? createTokenFile() : undefined;
      return [name, file?.path ?? first.value];
    },
    mask: options.mask,
    secrets: forms.all,
    stop: () => file?.stop(),
  });
}

const USAGE = "agentauth exec <mcp_url> -- <command> [args...]";

/**
 * The words of the command: everything after the first `--`.
 *
 * @param argv the command line as it was typed
 * @throws `AgentAuthError` `usage` if there is no `--`, nothing after it, or more than the URL before it
 */
export function commandOf({ url, command }: Pick<ExecFlags, "url" | "command">, argv: readonly string[]): string[] {
  const dashes = argv.indexOf("--");
  if (dashes < 0 && command.length === 0) throw usageError("the command is missing", USAGE);
  if (dashes < 0) throw usageError(`the command must follow "--"`, withDashes(url, command, argv));
  const words = argv.slice(dashes + 1);
  if (words.length === 0) throw usageError('there is no command after "--"', USAGE);
  if (words.length > command.length) throw usageError('no MCP server is named before "--"', USAGE);
  if (words.length < command.length) throw usageError(`unexpected argument ${quote(command[0])} before "--"`, USAGE);
  if (words[0] === "") throw usageError("the command is an empty word", USAGE);
  return words;
}

/** The intended command line, as far as it can be inferred. */
function withDashes(url: string, [first = ""]: readonly string[], argv: readonly string[]): string {
  const begin = argv.indexOf(first, argv.indexOf(url) + 1);
  return ["agentauth", ...argv.slice(0, begin), "--", ...argv.slice(begin)].map(shellWord).join(" ");
}
