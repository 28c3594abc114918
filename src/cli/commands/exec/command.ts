import { InvalidArgumentError } from "commander";
import { addAgentFlags, LOGIN_SWITCH, MIN_TTL } from "../../flags/agent.js";
import { addFlags, collectRepeated } from "../../flags/values.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";

export const command: CommandDeclaration = { group: "Tokens:", order: 5, names: ["exec"], declare: declareExec };

const HELP = `
The command after "--" is run as it is, without a shell. The token is in none of
its arguments.

With --broker, the command gets no token. It gets the address of a broker that
ends with it (see agentauth broker): the path of a private Unix socket in
AGENTAUTH_BROKER_SOCKET or, with --listen 127.0.0.1:0 and on Windows, a URL with
128 random bits in AGENTAUTH_BROKER_URL.

The variable has the token that was valid at the start. A command that runs
longer takes each token from agentauth token, or uses --broker.

In output that is not a terminal, the token is replaced by ********, also if it
is base64, URL or JSON encoded. exec ends when the command has ended, and every
other process that writes to such an output.

Exit code: that of the command; 128+n if signal n ended it; 127 if it is not
found, 126 if it cannot be run, 125 if it cannot be started for another reason.
Without a token the command is not started; see agentauth help exit-codes.

Examples:
  $ agentauth exec https://mcp.example/mcp -- ./agent --verbose
  $ agentauth exec https://mcp.example/mcp --as MCP_TOKEN -- make test
  $ agentauth exec --broker crm=https://crm.example/mcp,tools=read_* -- ./sandboxed-agent`;

function declareExec(registry: Registry): void {
  const { root, context } = registry;
  const broker = "Server that the command reaches by a broker, with a policy (repeatable)";
  const command = addAgentFlags(
    root.command("exec").description("Run a command with the token in its environment"),
    "token",
  );
  addFlags(command, undefined, [
    ["--as <name>", "Variable that gets the token (default: AGENTAUTH_TOKEN)", parseVariable],
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

function parseVariable(value: string): string {
  if (!/^[A-Za-z_]\w*$/.test(value)) throw new InvalidArgumentError("must be a name of letters, digits and _");
  return value;
}
