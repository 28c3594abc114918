import { wholeNumber } from "../../../profile/login-settings.js";
import { textOrJson } from "../../flags/global.js";
import { addFlags } from "../../flags/values.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";

export const command: CommandDeclaration = { group: "Sandbox:", order: 1, names: ["sandbox"], declare: declareSandbox };

function declareSandbox(registry: Registry): void {
  const group = registry.root
    .command("sandbox")
    .description("Run the whole service on this machine, with sample data")
    .addHelpText(
      "after",
      `
While it runs, --profile sandbox uses it:
  $ agentauth sandbox start --devices 5000 &
  $ agentauth devices list --profile sandbox --limit 10
  $ agentauth sandbox fault 503:times=2
  $ agentauth sandbox stop`,
    );
  const load = async () => (await import("./run.js")).SANDBOX_RUNS;
  const start = group.command("start").description("Start the sandbox and run it until Ctrl-C or `sandbox stop`");
  addFlags(start, undefined, [
    ["--port <n>", "Port to listen on (default: a free one)", wholeNumber(0, 65_535)],
    ["--public-url <origin>", "Origin at which a proxy serves it: what it publishes begins with it"],
    ["--devices <n>", "Number of devices per pool (default: 120)", wholeNumber(0, 1_000_000)],
    ["--seed <n>", "Seed of the sample data (default: 1)", wholeNumber(0)],
    ["--auto-approve", "Approve every login without asking the user"],
    ["--device-flow", "Enable the device authorization grant (RFC 8628)"],
    ["--machine-grants", "Enable machine grants; see sandbox machine"],
    ["--options <file>", "All other options, as JSON (agentauth schema sandbox-options)"],
    ...textOrJson(),
  ])
    .addHelpText(
      "after",
      `
Examples:
  $ agentauth sandbox start
  $ agentauth sandbox start --devices 5000 --auto-approve
  $ agentauth sandbox start --options sandbox.json -o json`,
    )
    .action(registry.run(load, "start"));
  const status = group.command("status").description("Show whether the sandbox runs, and where");
  addFlags(status, undefined, textOrJson())
    .addHelpText("after", "\nExits with 5 if no sandbox runs.\n\nExample:\n  $ agentauth sandbox status --json")
    .action(registry.run(load, "status"));
  group
    .command("stop")
    .description("Stop the sandbox")
    .addHelpText("after", "\nExample:\n  $ agentauth sandbox stop")
    .action(registry.run(load, "stop"));
  group
    .command("clock")
    .description("Show the clock of the sandbox, or advance it")
    .argument("[change]", "Time to advance by, such as +90s, +30m, +1h or +2d")
    .addHelpText("after", "\nExample:\n  $ agentauth sandbox clock +1h")
    .action(registry.run(load, "clock", "change"));
  group
    .command("machine")
    .description("Print the credentials for machine grants as JSON, with secrets")
    .addHelpText(
      "after",
      `
Requires a sandbox that was started with --machine-grants.

Example:
  $ agentauth sandbox machine > machine.json`,
    )
    .action(registry.run(load, "machine"));
  group
    .command("fault")
    .description("Inject faults; without arguments, list fault kinds and active faults")
    .argument("[faults...]", "Faults such as 503:times=2 or reset-mid-body:probability=0.2")
    .option("--clear", "Remove every active fault first")
    .addHelpText(
      "after",
      `
Selectors of every fault: path=device, after=<n>, times=<n> (0: no limit), every=<n>, probability=<p>, offset=<n>

Examples:
  $ agentauth sandbox fault 429:retry-after=2
  $ agentauth sandbox fault delete:count=3,after=1,path=device
  $ agentauth sandbox fault --clear`,
    )
    .action(registry.run(load, "fault", "faults"));
}
