import { join } from "node:path";
import { usageError } from "../../../errors.js";
import { quote, shellWord } from "../../../redact.js";
import { tokenOf } from "../../clients/login-first.js";
import { parseMcpUrlArgument } from "../../clients/mcp-url.js";
import { checkHandOver } from "../../clients/token-formats.js";
import type { CommandContext } from "../../runtime/context.js";
import type { ExecFlags, TokenTarget } from "./exec-flags.js";
import { tokenEncodings } from "./masker.js";
import { runCommand } from "./run-command.js";
import { keepTokenFileFresh, type RefreshedTokenFile } from "./token-file.js";

const DEFAULT_TARGET: TokenTarget = { kind: "env", name: "AGENTAUTH_TOKEN" };

/** `exec`: runs a command with the token in its environment, and returns the command's exit code. */
export async function runExec(options: ExecFlags, context: CommandContext): Promise<number> {
  const command = commandOf(options, context.argv);
  const { broker, listen, url: operand = "" } = options;
  if (broker !== undefined) {
    const { runWithBroker } = await import("./with-broker.js");
    return runWithBroker(command, { ...options, broker }, context);
  }
  if (listen !== undefined) throw usageError("--listen is for a broker", BROKER_USAGE);
  const url = parseMcpUrlArgument(operand);
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
const BROKER_USAGE = "agentauth exec --broker <name>=<mcp_url> -- <command> [args...]";

/**
 * The words of the command: everything after the first `--`.
 *
 * @param argv the command line as it was typed
 * @throws `AgentAuthError` `usage` if there is no `--`, nothing after it, or something else before it than the URL, which
 * a broker replaces
 */
export function commandOf(
  { url, command, broker }: Pick<ExecFlags, "url" | "command" | "broker">,
  argv: readonly string[],
): string[] {
  const operands = url === undefined ? [] : [url, ...command];
  const [own, usage] = broker === undefined ? [1, USAGE] : [0, BROKER_USAGE];
  const dashes = argv.indexOf("--");
  if (dashes < 0 && operands.length <= own) throw usageError("the command is missing", usage);
  if (dashes < 0) throw usageError(`the command must follow "--"`, withDashes(operands.slice(0, own + 1), argv));
  const words = argv.slice(dashes + 1);
  if (words.length === 0) throw usageError('there is no command after "--"', usage);
  const before = operands.length - words.length;
  if (before < own) throw usageError('no MCP server is named before "--"', usage);
  if (before > own) throw usageError(`unexpected argument ${quote(operands[own])} before "--"`, usage);
  if (words[0] === "") throw usageError("the command is an empty word", usage);
  return words;
}

/** The intended command line, as far as it can be inferred from the operands up to the command. */
function withDashes(operands: readonly string[], argv: readonly string[]): string {
  const begin = operands.reduce((from, word) => argv.indexOf(word, from + 1), 0);
  return ["agentauth", ...argv.slice(0, begin), "--", ...argv.slice(begin)].map(shellWord).join(" ");
}
