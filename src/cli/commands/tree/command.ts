import { addOutputFlags, pagerOption } from "../../flags/output.js";
import { addFlags, wholeNumber } from "../../flags/values.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";

/** Where the help lists it, and how it is declared. */
export const command: CommandDeclaration = { group: "Lists:", order: 3, names: ["tree"], declare: declareTree };

/** `tree`. */
function declareTree(registry: Registry): void {
  const tree = registry.root.command("tree").description("Show an account with its domains, pools and devices");
  const brief = "Print the beginning: 50 items with few fields, as JSON (default for an AI agent that names no form)";
  const atOnce = "Number of pages to fetch at once (default: up to 4, if pages are slow)";
  addFlags(addOutputFlags(tree).addOption(pagerOption()), undefined, [
    ["--account <account_id>", "ID of the account (default: the profile's)"],
    ["--limit <n>", "Number of devices per pool, 0 for none (default: 5, with json and yaml all)", wholeNumber(0)],
    ["--brief", brief],
    ["--concurrency <n>", atOnce, wholeNumber(1, 64)],
  ])
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
