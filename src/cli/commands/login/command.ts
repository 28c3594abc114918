import type { HandOverFormats } from "../../../oauth/hand-over.js";
import { addAgentFlags, RECEIVE_CALLBACK } from "../../flags/agent.js";
import { textOrJson } from "../../flags/global.js";
import { addFlags } from "../../flags/values.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";

const HAND_OVER_FORMATS = ["mcp-oauth", "anthropic", "openai"] satisfies (keyof HandOverFormats)[];

export const command: CommandDeclaration = {
  group: "Tokens:",
  order: 1,
  names: ["login"],
  hiddenNames: ["receive-callback"],
  declare: declareLogin,
};

function declareLogin({ root, run }: Registry): void {
  const command = root.command("login").description("Log in at an MCP server and store the login");
  // The command itself reports that the server is missing, with those that it knows.
  Object.assign(command, { missingArgument: () => {} });
  addFlags(addAgentFlags(command, "login"), undefined, [
    ["--idp <issuer>", "Log in at the company's identity provider instead, for all servers that accept it"],
    ["--no-wait", "Print the login URL (with --flow device: the code) and exit"],
    ["--wait <login_id>", "Finish a login that --no-wait started"],
    ["--callback-url <url>", "With --wait: address where the browser ended up (- for stdin, which is preferred)"],
    ["--hand-over [file]", "Print the login for a hosted agent, or write it to a new file, and store nothing"],
    ["--hand-over-format <format>", "Form of that JSON (default: mcp-oauth)", HAND_OVER_FORMATS],
    ["--show-secrets", "Let --hand-over print to a terminal"],
    ...textOrJson(),
  ])
    .argument("<mcp_url>", "URL of the MCP server")
    .addHelpText(
      "after",
      `
On a terminal, login prints a short link to the login page and opens a browser. Press ? for the long URL, for the ssh
command that forwards the port, and for other ways. Where the link cannot work, all of it is printed at once.

Without a terminal, or if an AI agent runs it, login behaves as with --no-wait --json, unless --browser, BROWSER (ignored
for an agent), --flow or --wait is given. With --browser none, or --no-input on a terminal, login starts no browser: it
prints the URL, so that you can open it elsewhere, and waits for the callback.

In two steps, a process waits for the callback from --no-wait on, until --wait takes it or the time is up
(--login-timeout, default 600 seconds here). If the browser runs on another machine, it ends up at an address where
nothing answers: pass that to --wait on stdin, with --flow paste in the first step or --callback-url -. Other users of the
machine can read a command line, so avoid --callback-url <url> where there are any. The code in it works once, and only
with the verifier that is stored with the login. If the issuer refuses a scope, --wait may begin the login again with fewer
scopes: it prints another URL and the next command, as --no-wait does, and exits with 4.

--hand-over makes another login, with a client of its own, for an agent that runs elsewhere: one JSON object for the vault
that stores its credentials. Logins that are stored here stay as they are.

Examples:
  $ agentauth login https://mcp.example/mcp
  $ agentauth login https://mcp.example/mcp --flow paste
  $ agentauth login --idp https://idp.example --idp-client-id my-agent
  $ agentauth login https://mcp.example/mcp --no-wait --json
  $ agentauth login https://mcp.example/mcp --wait <login_id>
  $ agentauth login https://mcp.example/mcp --no-wait --json --flow device
  $ agentauth login https://mcp.example/mcp --wait <login_id> --callback-url - < callback.txt
  $ agentauth login https://mcp.example/mcp --hand-over=credential.json`,
    )
    .action(run(() => import("./run.js"), "runLogin", "url"));
  root
    .command(RECEIVE_CALLBACK, { hidden: true })
    .action(run(() => import("./receive-callback.js"), "runReceiveCallback"));
}
