import { Option } from "commander";
import { addAgentFlags, addOverrides, type GrantFlags, TOKEN_FORMATS, type TokenFlags } from "../../flags/agent.js";
import { addMachineFlags } from "../../flags/grant.js";
import { addOutputFlags, wholeNumber } from "../../flags/values.js";
import type { Registry } from "../../runtime/registry.js";

const GROUP = "Tokens:";
const ACCOUNT = "which account, where several are signed in at the server";

/** `token`, `login`, `logout`, `status`, `discover`, `introspect`. */
export function declareAgent(registry: Registry): void {
  const { root } = registry;
  addAgentFlags(root.command("token").helpGroup(GROUP).description("print a bearer token for an MCP server"))
    .argument("<mcp_url>", "the MCP server")
    .argument("[operation]", "with --format git or bazel: get, store or erase, as they add it to a helper's words")
    .addOption(new Option("--format <format>", "how to print it (default raw)").choices([...TOKEN_FORMATS]))
    .addOption(
      new Option(
        "--min-ttl <seconds>",
        "how long it must still be valid, at most 9/10 of its life (default 60)",
      ).argParser(wholeNumber(0)),
    )
    .option("--force-refresh", "get a new token even if the stored one is still valid")
    .option("--login", "sign in if needed, even without a terminal")
    .option("--no-login", "never sign in")
    .addHelpText(
      "after",
      `
From the store, else by refresh, else by signing in where a person is there.

Examples:
  $ curl -H "Authorization: Bearer $(agentauth token https://mcp.example/mcp)" …
  $ agentauth token https://mcp.example/mcp --format headers-json
  $ eval "$(agentauth token https://mcp.example/mcp --format env)"
  $ agentauth token https://mcp.example/mcp --grant client-credentials --client-id my-service
  $ git config credential.https://mcp.example.helper '!agentauth token https://mcp.example/mcp --format git'`,
    )
    .action(
      registry.action<TokenFlags>(
        async (options, deps) => (await import("./run.js")).runToken(options, deps),
        "url",
        "operation",
      ),
    );
  addAgentFlags(root.command("login").helpGroup(GROUP).description("sign in at an MCP server and keep the login"))
    .argument("<mcp_url>", "the MCP server")
    .option("--no-wait", "print where to sign in, and end")
    .option("--wait <login_id>", "finish a login that --no-wait began")
    .addOption(new Option("-o, --output <format>", "how to print").choices(["text", "json"]))
    .addOption(new Option("--json", "the same as -o json"))
    .addHelpText(
      "after",
      `
Where an AI agent runs it, and without a terminal, it does what --no-wait --json does, unless --browser, BROWSER (for an
agent only the flag), --flow or --wait says how the user is reached. With --browser none, or --no-input on a terminal,
the address is printed and the callback waited for, so that it can be opened elsewhere: no browser is started.

Examples:
  $ agentauth login https://mcp.example/mcp
  $ agentauth login https://mcp.example/mcp --flow paste
  $ agentauth login https://mcp.example/mcp --no-wait --json
  $ agentauth login https://mcp.example/mcp --wait <login_id>`,
    )
    .action(
      registry.action<TokenFlags>(async (options, deps) => (await import("./run.js")).runLogin(options, deps), "url"),
    );
  addOutputFlags(
    addMachineFlags(root.command("logout").helpGroup(GROUP).description("forget a login, and tell the issuer")),
  )
    .argument("[mcp_url]", "the MCP server")
    .option("--all", "every login of the profile")
    .option("--account-hint <account>", ACCOUNT)
    .addHelpText(
      "after",
      `
What is kept here goes first, and is gone also where the issuer cannot be told. Without --output nothing is printed on
standard output.

Examples:
  $ agentauth logout https://mcp.example/mcp
  $ agentauth logout --all --json`,
    )
    .action(
      registry.action<GrantFlags>(
        async (options, deps) => (await import("../status/run.js")).runLogout(options, deps),
        "url",
      ),
    );
  addOutputFlags(
    root.command("status").helpGroup(GROUP).description("show which logins are kept, where, and until when"),
  )
    .argument("[mcp_url]", "the MCP server")
    .option("--all", "of every profile")
    .option("--account-hint <account>", ACCOUNT)
    .addHelpText(
      "after",
      "\nEnds with 4 where nobody is signed in.\n\nExample:\n  $ agentauth status https://mcp.example/mcp --json",
    )
    .action(
      registry.action<GrantFlags>(
        async (options, deps) => (await import("../status/run.js")).runStatus(options, deps),
        "url",
      ),
    );
  addOutputFlags(
    addOverrides(
      root
        .command("discover")
        .helpGroup(GROUP)
        .description("show how the issuer of an MCP server is found, step by step"),
    ),
  )
    .argument("<mcp_url>", "the MCP server")
    .addHelpText(
      "after",
      "\nSigns nobody in and registers nothing. Where it fails, every step is printed all the same.\n\nExample:\n  $ agentauth discover https://mcp.example/mcp",
    )
    .action(
      registry.action<GrantFlags>(
        async (options, deps) => (await import("../discover/run.js")).runDiscover(options, deps),
        "url",
      ),
    );
  addOutputFlags(
    addMachineFlags(
      root.command("introspect").helpGroup(GROUP).description("ask the issuer about the token that is kept"),
    ),
  )
    .argument("<mcp_url>", "the MCP server")
    .option("--account-hint <account>", ACCOUNT)
    .addHelpText("after", "\nExample:\n  $ agentauth introspect https://mcp.example/mcp --jq .active")
    .action(
      registry.action<GrantFlags>(
        async (options, deps) => (await import("../status/run.js")).runIntrospect(options, deps),
        "url",
      ),
    );
}
