import { addOutputFlags } from "../../flags/output.js";
import type { CommandDeclaration } from "../../runtime/declaration.js";
import type { Registry } from "../../runtime/registry.js";
import type { ProfileOptions } from "./run.js";

/** Where the help lists it, and how it is declared. */
export const command: CommandDeclaration = { group: "Settings:", order: 2, declare: declareProfile };

/** `profile list|use|delete`. */
function declareProfile(registry: Registry): void {
  const group = registry.root
    .command("profile")
    .description("list, choose and delete profiles")
    .addHelpText(
      "after",
      `
A profile is made by its first setting: agentauth config set base_url <url> --profile <name>
The profile "sandbox" always stands for the sandbox that is running.`,
    );
  const run = (verb: "list" | "use" | "delete", ...positional: "name"[]) =>
    registry.action<ProfileOptions>(
      async (options, context) => {
        const { PROFILE_RUNS } = await import("./run.js");
        return PROFILE_RUNS[verb](options, context);
      },
      ...positional,
    );
  addOutputFlags(group.command("list").description("show the profiles and which one is used"))
    .addHelpText("after", "\nExample:\n  $ agentauth profile list")
    .action(run("list"));
  group
    .command("use")
    .description("use a profile from now on")
    .argument("<name>", "the profile")
    .addHelpText("after", "\nExample:\n  $ agentauth profile use staging")
    .action(run("use", "name"));
  group
    .command("delete")
    .description("delete a profile and its settings")
    .argument("<name>", "the profile")
    .addHelpText("after", "\nExample:\n  $ agentauth profile delete staging")
    .action(run("delete", "name"));
}
