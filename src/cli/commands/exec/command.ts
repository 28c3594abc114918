import { InvalidArgumentError, Option } from "commander";
import { addAgentFlags } from "../../flags/agent.js";
import { wholeNumber } from "../../flags/values.js";
import type { CommandDeclaration } from "../../runtime/declaration.js";
import type { Registry } from "../../runtime/registry.js";
import type { ExecFlags } from "./options.js";
import { parseTarget, type TokenTarget } from "./target.js";

/** Where the help lists it, and how it is declared. */
export const command: CommandDeclaration = { group: "Tokens:", order: 5, declare: declareExec };

const HELP = `
The command is what comes after "--", word for word; no shell takes part. None of
its arguments has the token in it.

With env:NAME the command has the token that was good when it began. With
file:NAME the variable NAME holds the path of a private file with the token,
which is renewed while the command runs, and removed at the end.

Where an output is no terminal, ******** stands there for the token, also where
it was base64, URL or JSON encoded. The end comes when the command and whatever
else writes to such an output have ended.

Exit code: that of the command; 128+n when signal n ended it; 127 when it is not
found, 126 when it cannot be run, 125 when it cannot be started for another
reason. Without a token nothing is started; for those exit codes see
agentauth help exit-codes.

Examples:
  $ agentauth exec https://mcp.example/mcp -- ./agent --verbose
  $ agentauth exec https://mcp.example/mcp --as env:MCP_TOKEN -- make test
  $ agentauth exec https://mcp.example/mcp --as file:MCP_TOKEN_FILE -- node server.js`;

/** `exec`. */
function declareExec(registry: Registry): void {
  const { root, context } = registry;
  const command = addAgentFlags(root.command("exec").description("run a command with the token in its environment"))
    .usage("<mcp_url> [options] -- <command> [args...]")
    .argument("<mcp_url>", "the MCP server")
    .argument("[command...]", "the command, after --")
    .addOption(
      new Option(
        "--as <where>",
        "env:NAME, or file:NAME for a file that is kept fresh (default env:AGENTAUTH_TOKEN)",
      ).argParser(place),
    )
    .addOption(
      new Option(
        "--min-ttl <seconds>",
        "how long it must still be valid, at most 9/10 of its life (default 60)",
      ).argParser(wholeNumber(0)),
    )
    .option("--mask", "mask the token in what the command prints, also on a terminal")
    .option("--no-mask", "leave what it prints as it is")
    .option("--login", "sign in if needed, even without a terminal")
    .option("--no-login", "never sign in")
    .addHelpText("after", HELP)
    .action(
      registry.action<ExecFlags>(
        async (options, context) => (await import("./run.js")).runExec(options, context),
        "url",
        "command",
      ),
    );
  // Where "--" was forgotten, that is to be told, and not that a flag of the command is none of ours.
  if (!context.argv.includes("--")) command.allowUnknownOption();
}

function place(value: string): TokenTarget {
  const found = parseTarget(value);
  if (found === undefined)
    throw new InvalidArgumentError("must be env:NAME or file:NAME, NAME of letters, digits and _");
  return found;
}
