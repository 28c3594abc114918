import { Argument } from "commander";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";
import type { CompletionOptions } from "./run.js";

const SHELLS: readonly CompletionOptions["shell"][] = ["bash", "zsh", "fish", "powershell"];

export const command: CommandDeclaration = {
  group: "Help:",
  order: 4,
  names: ["completion"],
  hiddenNames: ["complete"],
  readsAll: true,
  declare: declareCompletion,
};

/** `completion <shell>`, and the hidden command that its scripts run. */
function declareCompletion(registry: Registry): void {
  const { root } = registry;
  root
    .command("completion")
    .description("Print a shell script that completes commands, flags and values")
    .addArgument(new Argument("<shell>", "Name of the shell").choices(SHELLS))
    .addHelpText(
      "after",
      `
The script also completes your own profiles, accounts, domains, pools and MCP servers. It uses no network and opens no
keychain.

In ~/.bashrc:                  eval "$(agentauth completion bash)"
In ~/.zshrc, after compinit:   source <(agentauth completion zsh)
In ~/.config/fish/config.fish: agentauth completion fish | source
In the profile of PowerShell:  agentauth completion powershell | Out-String | Invoke-Expression

Examples:
  $ eval "$(agentauth completion bash)"
  $ agentauth completion fish > agentauth.fish`,
    )
    .action(registry.run(() => import("./run.js"), "runCompletion", "shell"));
  root
    .command("complete", { hidden: true })
    .description("Complete the words of a command line")
    .argument("[words...]", "Words after --; the last one is completed")
    .addHelpText("after", "\nExample:\n  $ agentauth complete -- devices li")
    .action(
      registry.action<{ words: string[] }>(
        async ({ words }, deps) => (await import("./run.js")).runComplete(root, words, deps),
        "words",
      ),
    );
}
