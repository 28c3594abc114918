import { addDocumentFlags, DOCUMENT_FORMATS } from "../../flags/global.js";
import { addDeviceFilters, addReadFlags } from "../../flags/list.js";
import { addFlags } from "../../flags/values.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";

export const command: CommandDeclaration = { group: "Lists:", order: 2, names: ["devices"], declare: declareReport };

function declareReport({ root, run }: Registry): void {
  const group = root.commands.find((command) => command.name() === "devices");
  if (group === undefined) throw new TypeError("declareLists comes before declareReport");
  const report = group
    .command("report")
    .description("Report the devices of a pool in numbers, with findings")
    .option("--pool <pool_id>", "ID of the pool (default: the profile's)");
  addFlags(report, "Output:", [["--html <file>", "Write one self-contained HTML page"]]);
  addDeviceFilters(addReadFlags(addDocumentFlags(report, DOCUMENT_FORMATS)))
    .addHelpText(
      "after",
      `
The page loads nothing and runs no script: you can mail and archive it. The report reads
no client secret. If not every device could be read, the report says so, and the exit
code is 7.

Examples:
  $ agentauth devices report --pool <pool_id>
  $ agentauth devices report --pool <pool_id> --html report.html
  $ agentauth devices report --pool <pool_id> --status active --seen-after 30d
  $ agentauth devices report --pool <pool_id> --jq '.findings[] | {code, count}'`,
    )
    .action(run(() => import("./run.js"), "runReport"));
}
