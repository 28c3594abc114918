import { collectRepeated } from "../../flags/values.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";

export const command: CommandDeclaration = { group: "Tokens:", order: 8, names: ["broker"], declare: declareBroker };

function declareBroker(registry: Registry): void {
  registry.root
    .command("broker")
    .description("Send requests of other programs on with their token")
    .option("--grant <name=url>", "Server that the client may use, with a policy (repeatable)", collectRepeated)
    .option("--listen <address>", "Where the client connects: unix:<path>, systemd:<name>, 127.0.0.1:<port>")
    .option("--config <file>", "Policy for several clients (agentauth schema broker-policy)")
    .option("--check", "Check the policy and exit")
    .option("--ready-file <file>", "File that gets the addresses as JSON, for this user alone")
    .option("--on-login-required <command>", "Command to run when a user has to log in")
    .addHelpText(
      "after",
      `
A program that can reach the address sends requests to <address>/<name>/..., and the broker sends them on with the token of
the login. The program sees no token. A grant may have a policy after its URL: --grant crm=https://crm.example/mcp,tools=read_*
(tools, hide-tools, methods, paths, headers, each repeatable; scope, account, rpm, until).

On a Unix socket its folder and its mode keep other users out. On TCP the address has 128 random bits, which are written
to --ready-file alone.

If a login is needed, the program gets HTTP 503 with the header agentauth-login-required, and the broker prints the command
to run. SIGHUP reads --config again. On SIGTERM the broker accepts nothing more and ends what is under way. systemd:<name> is
a Unix socket that the parent passes (LISTEN_FDS): clients wait at it while the broker is restarted.

Examples:
  $ agentauth broker --listen unix:/run/agentauth/agent.sock --grant github=https://api.github.example/mcp
  $ agentauth broker --listen 127.0.0.1:0 --grant crm=https://crm.example/mcp,tools=read_* --ready-file broker-url.json
  $ agentauth broker --config broker.json --check`,
    )
    .action(registry.run(() => import("./run.js"), "runBroker"));
}
