import { Option } from "commander";
import { strictOption } from "../../flags/list.js";
import { wholeNumber } from "../../flags/values.js";
import type { CommandDeclaration } from "../../runtime/declaration.js";
import type { Registry } from "../../runtime/registry.js";
import { REPORT_FORMATS } from "./formats.js";
import type { ReportFlags } from "./options.js";

/** Where the help lists it, and how it is declared. */
export const command: CommandDeclaration = { group: "Lists:", order: 2, names: ["devices"], declare: declareReport };

const OUTPUT = "Output:";
const LIST = "List:";
const FILTERS = "Filters:";

/** `devices report`. It has no `--show-secrets`: its output is made to be shared. */
function declareReport({ root, action }: Registry): void {
  const group = root.commands.find((command) => command.name() === "devices");
  if (group === undefined) throw new TypeError("declareLists comes before declareReport");
  const flag = (name: string, about: string, heading: string) => new Option(name, about).helpGroup(heading);
  const count = (name: string, about: string, least: number, most?: number) =>
    flag(name, about, LIST).argParser(wholeNumber(least, most));
  group
    .command("report")
    .description("Report the devices of a pool in numbers, with findings")
    .option("--pool <pool_id>", "ID of the pool (default: the profile's)")
    .addOption(flag("--html <file>", "Write one self-contained HTML page (- for stdout)", OUTPUT))
    .addOption(flag("--force", "Overwrite the file of --html", OUTPUT))
    .addOption(
      flag("-o, --output <format>", "Output format (default: text for reading)", OUTPUT).choices([...REPORT_FORMATS]),
    )
    .addOption(flag("--json", "Same as -o json", OUTPUT))
    .addOption(flag("--jq <expression>", "Filter JSON with a jq expression", OUTPUT))
    .addOption(flag("--no-pager", "Print without a pager (AGENTAUTH_PAGER, PAGER, less)", OUTPUT))
    .addOption(
      flag("--sort <field[:asc|:desc]>", "Sort order (server-side), for the devices that --limit selects", LIST),
    )
    .addOption(count("--limit <n>", "Number of devices to read (default: all)", 1))
    .addOption(count("--page-size <n>", "Number of devices per page (default: the service's)", 1))
    .addOption(count("--offset <n>", "Start at this offset (printed by an interrupted report)", 0))
    .addOption(
      count(
        "--concurrency <n>",
        "Number of pages to fetch at once; 1 = one by one (default: up to 4, if pages are slow)",
        1,
        64,
      ),
    )
    .addOption(strictOption())
    .addOption(flag("--status <status>", "Filter by status (client-side, after reading)", FILTERS))
    .addOption(flag("--title <glob>", 'Filter by title glob, e.g. "Build*" (client-side)', FILTERS))
    .addOption(flag("--session-type <type>", "Filter by session type: browser, api or mcp (client-side)", FILTERS))
    .addOption(flag("--seen-after <time>", "Filter by last seen since 7d, 12h or a date (client-side)", FILTERS))
    .addOption(flag("--seen-before <time>", "Filter by last seen before 7d, 12h or a date (client-side)", FILTERS))
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
    .action(
      action<ReportFlags>(async (options, deps) => {
        const { runReport } = await import("./run.js");
        return runReport(options, deps);
      }),
    );
}
