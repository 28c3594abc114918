import { addOutputFlags } from "../../flags/global.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";

export const command: CommandDeclaration = {
  group: "Settings:",
  order: 2,
  names: ["profile"],
  declare: declareProfile,
};

function declareProfile(registry: Registry): void {
  const group = registry.root
    .command("profile")
    .description("List, select and delete profiles")
    .addHelpText(
      "after",
      `
A login or the first setting creates a profile:
  $ agentauth login <mcp_url> --profile <name>
  $ agentauth config set base_url <url> --profile <name>

The profile "sandbox" is reserved for the running sandbox, and is never the selected one.`,
    );
  const load = async () => (await import("./run.js")).PROFILE_RUNS;
  addOutputFlags(group.command("list").description("List the profiles and show which one is used"))
    .addHelpText("after", "\nExample:\n  $ agentauth profile list")
    .action(registry.run(load, "list"));
  group
    .command("use")
    .description("Select the profile to use from now on")
    .argument("<name>", "Name of the profile")
    .addHelpText("after", "\nExample:\n  $ agentauth profile use staging")
    .action(registry.run(load, "use", "name"));
  group
    .command("delete")
    .description("Delete a profile and its settings")
    .argument("<name>", "Name of the profile")
    .addHelpText("after", "\nExample:\n  $ agentauth profile delete staging")
    .action(registry.run(load, "delete", "name"));
}
