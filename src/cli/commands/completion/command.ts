import { Argument } from "commander";
import type { CommandDeclaration } from "../../runtime/declaration.js";
import type { Registry } from "../../runtime/registry.js";
import { type CompletionOptions, SHELLS } from "./options.js";

/** Where the help lists it, and how it is declared. */
export const command: CommandDeclaration = { group: "Help:", order: 4, declare: declareCompletion };

/** `completion <shell>`, and the hidden command that its scripts ask. */
function declareCompletion(registry: Registry): void {
  const { root } = registry;
  root
    .command("completion")
    .description("print a script that completes commands, flags and values in your shell")
    .addArgument(new Argument("<shell>", "the shell").choices([...SHELLS]))
    .addHelpText(
      "after",
      `
What you have set and signed in at is offered too: profiles, accounts, domains, pools and MCP servers. Nothing is asked
over the network, and no keychain is opened.

In ~/.bashrc:                  source <(agentauth completion bash)
In ~/.zshrc, after compinit:   source <(agentauth completion zsh)
In ~/.config/fish/config.fish: agentauth completion fish | source
In the profile of PowerShell:  agentauth completion powershell | Out-String | Invoke-Expression

Examples:
  $ source <(agentauth completion bash)
  $ agentauth completion fish > agentauth.fish`,
    )
    .action(
      registry.action<CompletionOptions>(
        async (options, context) => (await import("./run.js")).runCompletion(options, context),
        "shell",
      ),
    );
  root
    .command("complete", { hidden: true })
    .description("complete the words of a command line")
    .argument("[words...]", "after --; the last one is the one to complete")
    .addHelpText("after", "\nExample:\n  $ agentauth complete -- devices li")
    .action(
      registry.action<{ words: string[] }>(
        async ({ words }, context) => (await import("./run.js")).runComplete(root, words, context),
        "words",
      ),
    );
}
