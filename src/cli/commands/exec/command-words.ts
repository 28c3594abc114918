import { AgentAuthError } from "../../../errors.js";
import { quote, shellWord } from "../../../redact.js";
import type { ExecFlags } from "./options.js";

const USAGE = "agentauth exec <mcp_url> -- <command> [args...]";

/**
 * The words of the command: everything after the first `--`.
 *
 * @param argv the command line as it was typed
 * @throws `AgentAuthError` `usage` where there is no `--`, nothing after it, or more than the address before it
 */
export function commandOf({ url, command }: Pick<ExecFlags, "url" | "command">, argv: readonly string[]): string[] {
  const dashes = argv.indexOf("--");
  if (dashes < 0 && command.length === 0) throw wrong("no command is given", USAGE);
  if (dashes < 0) throw wrong(`the command must come after "--"`, withDashes(url, command, argv));
  const words = argv.slice(dashes + 1);
  if (words.length === 0) throw wrong('there is no command after "--"', USAGE);
  if (words.length > command.length) throw wrong('no MCP server is named before "--"', USAGE);
  if (words.length < command.length) throw wrong(`${quote(command[0])} before "--" is one word too many`, USAGE);
  if (words[0] === "") throw wrong("the command is an empty word", USAGE);
  return words;
}

/** The line that was meant, as far as can be told. */
function withDashes(url: string, [first = ""]: readonly string[], argv: readonly string[]): string {
  const begin = argv.indexOf(first, argv.indexOf(url) + 1);
  return ["agentauth", ...argv.slice(0, begin), "--", ...argv.slice(begin)].map(shellWord).join(" ");
}

function wrong(message: string, hint: string): AgentAuthError {
  return new AgentAuthError("usage", message, { class: "usage", hint });
}
