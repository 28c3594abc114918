import { AgentAuthError } from "../../../errors.js";
import { quote, shellWord } from "../../../redact.js";
import type { ExecFlags } from "./options.js";

const USAGE = "agentauth exec <mcp_url> -- <command> [args...]";

/**
 * The words of the command: everything after the first `--`.
 *
 * @param argv the command line as it was typed
 * @throws `AgentAuthError` `usage` if there is no `--`, nothing after it, or more than the URL before it
 */
export function commandOf({ url, command }: Pick<ExecFlags, "url" | "command">, argv: readonly string[]): string[] {
  const dashes = argv.indexOf("--");
  if (dashes < 0 && command.length === 0) throw wrong("the command is missing", USAGE);
  if (dashes < 0) throw wrong(`the command must follow "--"`, withDashes(url, command, argv));
  const words = argv.slice(dashes + 1);
  if (words.length === 0) throw wrong('there is no command after "--"', USAGE);
  if (words.length > command.length) throw wrong('no MCP server is named before "--"', USAGE);
  if (words.length < command.length) throw wrong(`unexpected argument ${quote(command[0])} before "--"`, USAGE);
  if (words[0] === "") throw wrong("the command is an empty word", USAGE);
  return words;
}

/** The intended command line, as far as it can be inferred. */
function withDashes(url: string, [first = ""]: readonly string[], argv: readonly string[]): string {
  const begin = argv.indexOf(first, argv.indexOf(url) + 1);
  return ["agentauth", ...argv.slice(0, begin), "--", ...argv.slice(begin)].map(shellWord).join(" ");
}

function wrong(message: string, hint: string): AgentAuthError {
  return new AgentAuthError("usage", message, { class: "usage", hint });
}
