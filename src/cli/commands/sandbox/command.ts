import { Option } from "commander";
import { wholeNumber } from "../../flags/values.js";
import type { CommandDeclaration } from "../../runtime/declaration.js";
import type { Registry } from "../../runtime/registry.js";
import type { SandboxCommandOptions } from "./options.js";

/** Where the help lists it, and how it is declared. */
export const command: CommandDeclaration = { group: "Sandbox:", order: 1, declare: declareSandbox };

/** `sandbox start|status|stop|fault`. */
function declareSandbox(registry: Registry): void {
  const group = registry.root
    .command("sandbox")
    .description("run the whole service on this machine, with made-up data")
    .addHelpText(
      "after",
      `
While it runs, --profile sandbox reaches it:
  $ agentauth sandbox start --devices 5000 &
  $ agentauth devices list --profile sandbox --limit 10
  $ agentauth sandbox fault 503:times=2
  $ agentauth sandbox stop`,
    );
  const run = (verb: keyof typeof import("./run.js").SANDBOX_RUNS, ...positional: ("faults" | "change")[]) =>
    registry.action<SandboxCommandOptions>(
      async (options, context) => {
        const { SANDBOX_RUNS } = await import("./run.js");
        return SANDBOX_RUNS[verb](options, context);
      },
      ...positional,
    );
  const output = () => new Option("-o, --output <format>", "how to print").choices(["text", "json"]);
  const json = () => new Option("--json", "the same as -o json");
  group
    .command("start")
    .description("start it and keep it running until Ctrl-C or `agentauth sandbox stop`")
    .option("--port <n>", "the port (default: a free one)", wholeNumber(0, 65_535))
    .option("--seed <n>", "same seed, same data (default 1)", wholeNumber(0))
    .option("--accounts <n>", "accounts (default 2)", wholeNumber(1))
    .option("--domains <n>", "domains of an account (default 3)", wholeNumber(1))
    .option("--pools <n>", "pools of a domain (default 4)", wholeNumber(1))
    .option("--devices <n>", "devices of a pool (default 120)", wholeNumber(0, 1_000_000))
    .option("--latency <ms>", "wait this long before each answer", wholeNumber(0, 3_600_000))
    .option(
      "--fault <fault>",
      "something to do wrong from the start; may be repeated",
      (one: string, all: string[] = []) => [...all, one],
    )
    .option("--auto-approve", "let every sign-in succeed without asking a person")
    .option("--iss", "name the issuer in every authorization answer, and promise to (RFC 9207)")
    .option("--device-flow", "offer sign-in on another device (RFC 8628)")
    .option("--machine-grants", "offer tokens that need no person; see sandbox machine")
    .option("--opaque", "issue access tokens that only introspection can read")
    .option("--access-token-ttl <seconds>", "the life of an access token (default 3600)", wholeNumber(1))
    .addOption(
      new Option("--dpop <mode>", "tokens that are bound to a key (default off)").choices([
        "off",
        "supported",
        "required",
      ]),
    )
    .option("--dpop-nonces", "want a nonce of the server in every proof of a key")
    .option("--host <address>", "the address to listen on (default 127.0.0.1)")
    .option("--allow-non-loopback", "listen where other machines can reach it")
    .addOption(output())
    .addOption(json())
    .addHelpText(
      "after",
      `
Examples:
  $ agentauth sandbox start
  $ agentauth sandbox start --devices 5000 --auto-approve
  $ agentauth sandbox start --fault 503:times=2 -o json`,
    )
    .action(run("start"));
  group
    .command("status")
    .description("tell whether it runs, and where")
    .addOption(output())
    .addOption(json())
    .addHelpText("after", "\nEnds with 5 where none runs.\n\nExample:\n  $ agentauth sandbox status --json")
    .action(run("status"));
  group
    .command("stop")
    .description("stop it")
    .addHelpText("after", "\nExample:\n  $ agentauth sandbox stop")
    .action(run("stop"));
  group
    .command("clock")
    .description("show its clock, or set it forward")
    .argument("[change]", "such as +90s, +30m, +1h or +2d")
    .addHelpText("after", "\nExample:\n  $ agentauth sandbox clock +1h")
    .action(run("clock", "change"));
  group
    .command("machine")
    .description("print what programs get tokens with that run without a person, as JSON; secrets")
    .addHelpText(
      "after",
      `
Of a sandbox that was started with --machine-grants.

Example:
  $ agentauth sandbox machine > machine.json`,
    )
    .action(run("machine"));
  group
    .command("fault")
    .description("make it do something wrong; without a fault, list the kinds and what is set")
    .argument("[faults...]", "such as 503:times=2 or reset-mid-body:probability=0.2")
    .option("--clear", "first take back every fault that is set")
    .addHelpText(
      "after",
      `
Selectors of every fault: path=device, after=<n>, times=<n> (0: for ever), every=<n>, probability=<p>, offset=<n>

Examples:
  $ agentauth sandbox fault 429:retry-after=2
  $ agentauth sandbox fault delete:count=3,after=1,path=device
  $ agentauth sandbox fault --clear`,
    )
    .action(run("fault", "faults"));
}
