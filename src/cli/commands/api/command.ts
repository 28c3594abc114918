import { addOutputFlags } from "../../flags/output.js";
import type { CommandDeclaration } from "../../runtime/declaration.js";
import type { Registry } from "../../runtime/registry.js";
import type { ApiOptions } from "./run.js";

/** Where the help lists it, and how it is declared. */
export const command: CommandDeclaration = { group: "Lists:", order: 4, declare: declareApi };

/** `api GET <path>`. */
function declareApi(registry: Registry): void {
  addOutputFlags(registry.root.command("api").description("send one raw GET request to the management interface"))
    .argument("<method>", "GET; the service has no other operations")
    .argument("<path>", "the path, such as /api/v1/device")
    .option("-f, --field <name=value>", "a query parameter; may be repeated", (pair: string, all: string[] = []) => [
      ...all,
      pair,
    ])
    .addHelpText(
      "after",
      `
Examples:
  $ agentauth api GET /api/v1/pool -f domain_id=<domain_id>
  $ agentauth api GET /api/v1/device -f pool_id=<pool_id> -f 'pagination[offset]=50' --jq .pagination`,
    )
    .action(
      registry.action<ApiOptions>(
        async (options, context) => {
          const { runApi } = await import("./run.js");
          return runApi(options, context);
        },
        "method",
        "path",
      ),
    );
}
