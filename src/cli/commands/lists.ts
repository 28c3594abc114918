import { type Command, Option } from "commander";
import type { GlobalFlags } from "../context.js";
import type { FilterFlags } from "../filters.js";
import { addListFlags, addOutputFlags } from "../flags.js";
import type { Format } from "../output/formats.js";
import type { Registry } from "../program.js";

/** What the output flags of a command say. */
export interface OutputFlags {
  output?: Format;
  json?: boolean;
  jq?: string;
  showSecrets?: boolean;
}

/** What the flags of a list say. */
export interface ListFlags extends GlobalFlags, OutputFlags, FilterFlags {
  columns?: string;
  header?: boolean;
  csvRaw?: boolean;
  sort?: string;
  limit?: number;
  pageSize?: number;
  offset?: number;
  concurrency?: number;
  strict?: boolean;
}

/** One kind of list: its noun, and the scope that it needs. */
export interface ListKind {
  noun: "pools" | "domains" | "devices";
  scope: "account" | "domain" | "pool";
}

const KINDS: readonly (ListKind & { about: string; of: string; examples: string })[] = [
  {
    noun: "pools",
    scope: "domain",
    about: "the pools of a domain",
    of: "A pool has an authorization server of its own.",
    examples: `
  $ agentauth pools list --domain <domain_id>
  $ agentauth pools list --domain <domain_id> -o id`,
  },
  {
    noun: "domains",
    scope: "account",
    about: "the domains of an account",
    of: "A domain holds pools.",
    examples: `
  $ agentauth domains list --account <account_id>
  $ agentauth domains list --account <account_id> -o json`,
  },
  {
    noun: "devices",
    scope: "pool",
    about: "the devices of a pool",
    of: "A device is an agent, a script or a browser that was seen in a pool.",
    examples: `
  $ agentauth devices list --pool <pool_id>
  $ agentauth devices list --pool <pool_id> --sort last_seen:desc --limit 20
  $ agentauth devices list --pool <pool_id> --status revoked -o csv > revoked.csv
  $ agentauth devices list --pool <pool_id> -o ndjson --jq .last_seen.country_code`,
  },
];

/** `pools list`, `domains list`, `devices list` and `devices get`. */
export function declareLists(registry: Registry): void {
  for (const kind of KINDS) {
    const group = registry.root
      .command(kind.noun)
      .helpGroup("Lists:")
      .description(`list ${kind.about}`)
      .addHelpText("after", `\n${kind.of}`);
    const list = addListFlags(group.command("list").description(`list ${kind.about}`))
      .option(`--${kind.scope} <${kind.scope}_id>`, `the ${kind.scope} (default: the profile's)`)
      .addHelpText("after", `\nExamples:${kind.examples}`)
      .action(
        registry.action<ListFlags>(async (options, deps) => {
          const { runList } = await import("../run-list.js");
          return runList(kind, options, deps);
        }),
      );
    if (kind.noun === "devices") {
      addDeviceFilters(list);
      declareGet(group, registry);
    }
  }
}

function addDeviceFilters(list: Command): void {
  list
    .addOption(new Option("--session-type <type>", "browser, api or mcp (chosen here, likewise)").helpGroup("Filters:"))
    .addOption(
      new Option("--seen-after <time>", "last seen since 7d, 12h or a date (chosen here, likewise)").helpGroup(
        "Filters:",
      ),
    )
    .addOption(
      new Option("--seen-before <time>", "last seen before 7d, 12h or a date (chosen here, likewise)").helpGroup(
        "Filters:",
      ),
    );
}

function declareGet(group: Command, registry: Registry): void {
  addOutputFlags(group.command("get").description("show one device of a pool (found by listing the pool)"))
    .argument("<device_id>", "the device")
    .option("--pool <pool_id>", "the pool (default: the profile's)")
    .addHelpText("after", "\nExample:\n  $ agentauth devices get <device_id> --pool <pool_id> -o json")
    .action(
      registry.action<ListFlags & { id: string }>(async (options, deps) => {
        const { runGet } = await import("../run-list.js");
        return runGet(options, deps);
      }, "id"),
    );
}
