import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { usageError } from "../../../errors.js";
import { system } from "../../../platform.js";
import { flagFor } from "../../../profile/login-settings.js";
import { quote, shellWord } from "../../../redact.js";
import { parseMcpUrlArgument, requestToken } from "../../clients/login-first.js";
import { checkHandOver } from "../../clients/token-formats.js";
import type { AgentFlags } from "../../flags/agent.js";
import type { CommandContext } from "../../runtime/context.js";
import { listEncodings, runCommand } from "./child.js";

export interface ExecFlags extends Omit<AgentFlags, "output"> {
  /** The first operand: a word of the command if there is a broker. */
  url?: string;
  /** The operands after the URL; they end with the words after `--`. */
  command: string[];
  /** Servers that the command reaches by a broker. */
  broker?: string[];
  listen?: string;
  /** The variable that gets the token; default: AGENTAUTH_TOKEN. */
  as?: string;
  minTtl?: number;
}

/** `exec`: runs a command with the token in its environment, and returns the command's exit code. */
export async function runExec(options: ExecFlags, context: CommandContext): Promise<number> {
  const command = parseCommand(options, context.argv);
  const { broker, listen, url: operand = "" } = options;
  if (broker !== undefined) return runWithBroker(command, { ...options, broker }, context);
  if (listen !== undefined) throw usageError("--listen is for a broker", BROKER_USAGE);
  const url = parseMcpUrlArgument(operand);
  const agent = await context.agent();
  const { scope, minTtl, as = "AGENTAUTH_TOKEN" } = options;
  const token = await requestToken(agent, url, { scope, minTtl, signal: context.signal });
  context.signal.throwIfAborted();
  checkHandOver(token, "exec");
  context.redactor.add(token.value);
  const secrets = listEncodings(token.value).map((form) => Buffer.from(form));
  return runCommand(command, { variable: [as, token.value], secrets }, context);
}

/** The options for a command that gets the token itself. */
const OF_TOKEN = ["as", "minTtl", "scope"] as const;

/** `exec --broker`: the command gets the address of a broker that ends with it, and no token. */
async function runWithBroker(
  command: readonly string[],
  options: ExecFlags & Required<Pick<ExecFlags, "broker">>,
  context: CommandContext,
): Promise<number> {
  const { broker: grants, listen: address, ...flags } = options;
  const ofToken = OF_TOKEN.find((option) => options[option] !== undefined);
  if (ofToken !== undefined) {
    const flag = flagFor(ofToken);
    const hint = ofToken === "scope" ? "--broker <name>=<url>,scope=<scopes>" : `leave out ${flag}`;
    throw usageError(`--broker and ${flag} do not go together`, hint);
  }
  if (options.login === true) throw usageError("--broker and --login do not go together", "agentauth login <mcp_url>");
  const [{ listen }, { buildBroker, policyOfFlags }] = await Promise.all([
    import("../../../broker/listen.js"),
    import("../../clients/broker.js"),
  ]);
  // Short, since the path of a socket can have about a hundred bytes.
  const folder =
    address === undefined && system.name !== "win32" ? mkdtempSync(join(tmpdir(), "agentauth-")) : undefined;
  const removeFolder = () => folder !== undefined && rmSync(folder, { recursive: true, force: true });
  try {
    const own = folder === undefined ? "127.0.0.1:0" : `unix:${join(folder, "broker.sock")}`;
    const policy = policyOfFlags(grants, { listen: address ?? own }, "--broker");
    const { listeners, close } = await listen(await buildBroker(policy, flags, context));
    const [{ socket, url } = { socket: undefined, url: "" }] = listeners;
    const variable =
      socket === undefined ? (["AGENTAUTH_BROKER_URL", url] as const) : (["AGENTAUTH_BROKER_SOCKET", socket] as const);
    return await runCommand(command, { variable }, context, () => close(0).finally(removeFolder));
  } finally {
    removeFolder();
  }
}

const USAGE = "agentauth exec <mcp_url> -- <command> [args...]";
const BROKER_USAGE = "agentauth exec --broker <name>=<mcp_url> -- <command> [args...]";

/**
 * The words of the command: everything after the first `--`.
 *
 * @throws `AgentAuthError` `usage` if there is no `--`, nothing after it, or something else before it than the URL, which
 * a broker replaces
 */
export function parseCommand(
  { url, command, broker }: Pick<ExecFlags, "url" | "command" | "broker">,
  argv: readonly string[],
): string[] {
  const operands = url === undefined ? [] : [url, ...command];
  const [own, usage] = broker === undefined ? [1, USAGE] : [0, BROKER_USAGE];
  const dashes = argv.indexOf("--");
  if (dashes < 0 && operands.length <= own) throw usageError("the command is missing", usage);
  if (dashes < 0) throw usageError(`the command must follow "--"`, withDashes(operands.slice(0, own + 1), argv));
  const args = argv.slice(dashes + 1);
  if (args.length === 0) throw usageError('there is no command after "--"', usage);
  const before = operands.length - args.length;
  if (before < own) throw usageError('no MCP server is named before "--"', usage);
  if (before > own) throw usageError(`unexpected argument ${quote(operands[own])} before "--"`, usage);
  if (args[0] === "") throw usageError("the command is an empty word", usage);
  return args;
}

/** The intended command line, as far as it can be inferred from the operands up to the command. */
function withDashes(operands: readonly string[], argv: readonly string[]): string {
  const begin = operands.reduce((from, word) => argv.indexOf(word, from + 1), 0);
  return ["agentauth", ...argv.slice(0, begin), "--", ...argv.slice(begin)].map(shellWord).join(" ");
}
