import { PROFILE_KEYS } from "../../../profile/profile-settings.js";
import { addOutputFlags } from "../../flags/global.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";

export const command: CommandDeclaration = { group: "Settings:", order: 1, names: ["config"], declare: declareConfig };

const KEY = "Name of the setting (all names: agentauth config --help --all)";

function declareConfig(registry: Registry): void {
  const keys = Object.entries(PROFILE_KEYS).map(([key, { description }]) => `  ${key.padEnd(15)} ${description}`);
  const group = registry.root
    .command("config")
    .description("Read and change settings")
    .addHelpText("after", `\nSettings of a profile (select one with --profile):\n${keys.join("\n")}`);
  const load = async () => (await import("./run.js")).CONFIG_RUNS;
  addOutputFlags(group.command("list").description("Show every effective setting and its source"))
    .addHelpText("after", "\nExample:\n  $ agentauth config list --profile staging")
    .action(registry.run(load, "list"));
  group
    .command("get")
    .description("Print one effective setting")
    .argument("<key>", KEY)
    .addHelpText("after", "\nExample:\n  $ agentauth config get base_url")
    .action(registry.run(load, "get", "key"));
  group
    .command("set")
    .description("Change one setting of the profile")
    .argument("<key>", KEY)
    .argument(
      "<value>",
      "New value; for api_token: env:NAME, file:PATH, exec:COMMAND, or - to read the token from stdin",
    )
    .addHelpText(
      "after",
      `
Examples:
  $ agentauth config set base_url https://agentauth.example
  $ agentauth config set api_token env:MY_TOKEN
  $ agentauth config set api_token - < token.txt
  $ agentauth config set store_url file:/run/secrets/redis-url
  $ agentauth config set pool <pool_id> --profile staging`,
    )
    .action(registry.run(load, "set", "key", "value"));
  group
    .command("unset")
    .description("Remove one setting from the profile")
    .argument("<key>", KEY)
    .addHelpText("after", "\nExample:\n  $ agentauth config unset pool")
    .action(registry.run(load, "unset", "key"));
  group
    .command("path")
    .description("Print the path of the settings file")
    .addHelpText("after", '\nExample:\n  $ cat "$(agentauth config path)"')
    .action(registry.run(load, "path"));
}
