import { InvalidArgumentError } from "commander";
import { addAgentFlags, LOGIN_SWITCH, MIN_TTL } from "../../flags/agent.js";
import { addFlags, collectRepeated } from "../../flags/values.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";
import type { TokenTarget } from "./run.js";

/** Where the help lists it, and how it is declared. */
export const command: CommandDeclaration = { group: "Tokens:", order: 5, names: ["exec"], declare: declareExec };

const HELP = `
The command after "--" is run as it is, without a shell. The token is in none of
its arguments.

With --broker, the command gets no token. It gets the address of a broker that
ends with it (see agentauth broker): the path of a private Unix socket in
AGENTAUTH_BROKER_SOCKET or, with --listen 127.0.0.1:0 and on Windows, a URL with
128 random bits in AGENTAUTH_BROKER_URL.

With env:NAME, the variable NAME has the token that was valid at the start. With
file:NAME, it has the path of a private file with the token. The file is
refreshed while the command runs, and removed at the end.

In output that is not a terminal, the token is replaced by ********, also if it
is base64, URL or JSON encoded. exec ends when the command has ended, and every
other process that writes to such an output.

Exit code: that of the command; 128+n if signal n ended it; 127 if it is not
found, 126 if it cannot be run, 125 if it cannot be started for another reason.
Without a token the command is not started; see agentauth help exit-codes.

Examples:
  $ agentauth exec https://mcp.example/mcp -- ./agent --verbose
  $ agentauth exec https://mcp.example/mcp --as env:MCP_TOKEN -- make test
  $ agentauth exec https://mcp.example/mcp --as file:MCP_TOKEN_FILE -- node server.js
  $ agentauth exec --broker crm=https://crm.example/mcp,tools=read_* -- ./sandboxed-agent`;

/** `exec`. */
function declareExec(registry: Registry): void {
  const { root, context } = registry;
  const as = "env:NAME, or file:NAME for a file that is refreshed (default: env:AGENTAUTH_TOKEN)";
  const broker = "Server that the command reaches by a broker, with a policy (repeatable)";
  const command = addAgentFlags(
    root.command("exec").description("Run a command with the token in its environment"),
    "token",
  );
  addFlags(command, undefined, [
    ["--as <where>", as, targetOf],
    MIN_TTL,
    ["--broker <name=url>", broker, collectRepeated],
    ["--listen <address>", "Where that broker listens: unix:<path>, 127.0.0.1:<port>"],
    ...LOGIN_SWITCH,
  ])
    .usage("[mcp_url] [options] -- <command> [args...]")
    .argument("[mcp_url]", "URL of the MCP server (not with --broker)")
    .argument("[command...]", "Command to run, after --")
    .addHelpText("after", HELP)
    .action(registry.run(() => import("./run.js"), "runExec", "url", "command"));
  // A missing "--" is the error to report, not an unknown flag, which belongs to the command.
  if (!context.argv.includes("--")) command.allowUnknownOption();
}

/** Reads `env:NAME`, `file:NAME` or `NAME`, which is `env:NAME`. */
function targetOf(value: string): TokenTarget {
  const [, kind, name] = /^(?:(env|file):)?([A-Za-z_]\w*)$/.exec(value) ?? [];
  // A kind without a name is a mistake.
  if (name === undefined || (kind === undefined && (name === "env" || name === "file")))
    throw new InvalidArgumentError("must be env:NAME or file:NAME, NAME of letters, digits and _");
  return { kind: kind === "file" ? "file" : "env", name };
}
