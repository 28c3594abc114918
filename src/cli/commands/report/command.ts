import { Option } from "commander";
import { wholeNumber } from "../../flags/values.js";
import type { CommandDeclaration } from "../../runtime/declaration.js";
import type { Registry } from "../../runtime/registry.js";
import { REPORT_FORMATS } from "./formats.js";
import type { ReportFlags } from "./options.js";

/** Where the help lists it, and how it is declared. */
export const command: CommandDeclaration = { group: "Lists:", order: 2, declare: declareReport };

const OUTPUT = "Output:";
const LIST = "List:";
const FILTERS = "Filters:";

/** `devices report`. It has no `--show-secrets`: what it prints is to be passed on. */
function declareReport({ root, action }: Registry): void {
  const group = root.commands.find((command) => command.name() === "devices");
  if (group === undefined) throw new TypeError("declareLists comes before declareReport");
  const flag = (name: string, about: string, heading: string) => new Option(name, about).helpGroup(heading);
  const count = (name: string, about: string, least: number, most?: number) =>
    flag(name, about, LIST).argParser(wholeNumber(least, most));
  group
    .command("report")
    .description("a pool's devices in numbers, and what is worth a look")
    .option("--pool <pool_id>", "the pool (default: the profile's)")
    .addOption(flag("--html <file>", "write one self-contained page; - is standard output", OUTPUT))
    .addOption(flag("--force", "replace the file of --html", OUTPUT))
    .addOption(
      flag("-o, --output <format>", "how to print (default: a text to read)", OUTPUT).choices([...REPORT_FORMATS]),
    )
    .addOption(flag("--json", "the same as -o json", OUTPUT))
    .addOption(flag("--jq <expression>", "filter JSON with a jq expression", OUTPUT))
    .addOption(flag("--no-pager", "print on a terminal without a pager (AGENTAUTH_PAGER, PAGER, less)", OUTPUT))
    .addOption(flag("--sort <field[:asc|:desc]>", "which devices --limit takes, by the service", LIST))
    .addOption(count("--limit <n>", "devices at most (default: all)", 1))
    .addOption(count("--page-size <n>", "devices in a page (default: the service's)", 1))
    .addOption(count("--offset <n>", "start here, where an interrupted report said to go on", 0))
    .addOption(count("--concurrency <n>", "pages fetched at once; 1 is one after the other (default 4)", 1, 64))
    .addOption(flag("--strict", "fail if the list changes while it is read, or has unknown shapes", LIST))
    .addOption(flag("--status <status>", "only these (filtered here, after reading)", FILTERS))
    .addOption(flag("--title <glob>", 'only titles like "Build*" (filtered here, likewise)', FILTERS))
    .addOption(flag("--session-type <type>", "browser, api or mcp (filtered here, likewise)", FILTERS))
    .addOption(flag("--seen-after <time>", "last seen since 7d, 12h or a date (filtered here, likewise)", FILTERS))
    .addOption(flag("--seen-before <time>", "last seen before 7d, 12h or a date (filtered here, likewise)", FILTERS))
    .addHelpText(
      "after",
      `
The page loads nothing from anywhere and runs no script: it can be mailed and archived.
No client secret is read for it. A report that could not read every device says so, on
its face and with exit code 7.

Examples:
  $ agentauth devices report --pool <pool_id>
  $ agentauth devices report --pool <pool_id> --html report.html
  $ agentauth devices report --pool <pool_id> --status active --seen-after 30d
  $ agentauth devices report --pool <pool_id> --jq '.findings[] | {code, count}'`,
    )
    .action(
      action<ReportFlags>(async (options, context) => {
        const { runReport } = await import("./run.js");
        return runReport(options, context);
      }),
    );
}
