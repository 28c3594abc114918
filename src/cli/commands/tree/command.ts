import { addOutputFlags, pagerOption } from "../../flags/output.js";
import { wholeNumber } from "../../flags/values.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";

/** Where the help lists it, and how it is declared. */
export const command: CommandDeclaration = { group: "Lists:", order: 3, names: ["tree"], declare: declareTree };

/** `tree`. */
function declareTree(registry: Registry): void {
  addOutputFlags(registry.root.command("tree").description("Show an account with its domains, pools and devices"))
    .addOption(pagerOption())
    .option("--account <account_id>", "ID of the account (default: the profile's)")
    .option(
      "--limit <n>",
      "Number of devices per pool, 0 for none (default: 5, with json and yaml all)",
      wholeNumber(0),
    )
    .option(
      "--brief",
      "Print the beginning: 50 items with few fields, as JSON (default for an AI agent that names no form)",
    )
    .option(
      "--concurrency <n>",
      "Number of pages to fetch at once (default: up to 4, if pages are slow)",
      wholeNumber(1, 64),
    )
    .addHelpText(
      "after",
      `
Examples:
  $ agentauth tree --account <account_id>
  $ agentauth tree --account <account_id> --limit 0
  $ agentauth tree --account <account_id> -o json`,
    )
    .action(registry.run(() => import("./run.js"), "runTree"));
}
