import { addOutputFlags } from "../../flags/global.js";
import { collectRepeated } from "../../flags/values.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";

export const command: CommandDeclaration = { group: "Lists:", order: 3, names: ["api"], declare: declareApi };

function declareApi(registry: Registry): void {
  addOutputFlags(registry.root.command("api").description("Send one raw GET request to the management interface"))
    .argument("<method>", "HTTP method: GET (the service has no other operations)")
    .argument("<path>", "Path, such as /api/v1/device, also with a query")
    .option("-f, --field <name=value>", "Query parameter (repeatable)", collectRepeated)
    .option("--paginate", "Print all pages of a list, with -o json as one array; --jq runs on each page")
    .addHelpText(
      "after",
      `
Answers are printed as the service sends them, with secrets masked. With --paginate, items of a list that changes meanwhile
can be missing or come twice: the list commands repair that.

Examples:
  $ agentauth api GET /api/v1/pool -f domain_id=<domain_id>
  $ agentauth api GET /api/v1/device -f pool_id=<pool_id> -f 'pagination[offset]=50' --jq .pagination
  $ agentauth api GET /api/v1/device -f pool_id=<pool_id> --paginate --jq '.summaries[].title'`,
    )
    .action(registry.run(() => import("./run.js"), "runApi", "method", "path"));
}
