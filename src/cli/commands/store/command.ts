import { InvalidArgumentError } from "commander";
import { parseTime } from "../../../oauth/model/grant-store.js";
import { wholeNumber } from "../../../profile/login-settings.js";
import { addOutputFlags } from "../../flags/global.js";
import { addFlags, collectRepeated } from "../../flags/values.js";
import type { CommandDeclaration, Registry } from "../../runtime/declaration.js";

export const command: CommandDeclaration = { group: "Settings:", order: 5, names: ["store"], declare: declareStore };

function declareStore(registry: Registry): void {
  const group = registry.root
    .command("store")
    .description("Look after the store of logins, in Redis and PostgreSQL above all")
    .addHelpText(
      "after",
      `
AGENTAUTH_STORE=redis or postgres stores logins in an engine that many machines share. AGENTAUTH_STORE_URL has its
address and AGENTAUTH_STORE_KEYS the key ring that seals the logins: each the secret itself, or file:PATH. The client
package is yours: redis, ioredis or iovalkey; pg or postgres.`,
    );
  const load = async () => (await import("./run.js")).STORE_RUNS;
  const logins = group.command("logins").description("List the stored logins, without opening their tokens");
  addFlags(logins, undefined, [
    ["--tenant <tenant>", "Only logins of this tenant (default: that of the settings)"],
    ["--needs-login", "Only logins that their user has to repeat"],
    ["--limit <n>", "Number of logins to print (default: all)", wholeNumber(1)],
  ]);
  addOutputFlags(logins)
    .addHelpText(
      "after",
      `
Lists every profile, or the one that --profile names. The state expired needs no login: the next use refreshes it.

Example:
  $ agentauth store logins --needs-login --json`,
    )
    .action(registry.run(() => import("./keep-alive.js"), "runLogins"));
  addOutputFlags(group.command("health").description("Check the engine: durability, eviction, clock and keys"))
    .addHelpText(
      "after",
      "\nExits with 8 if the engine must not be used, with 5 if it does not answer.\n\nExample:\n  $ agentauth store health --json",
    )
    .action(registry.run(load, "health"));
  addOutputFlags(group.command("keys").description("Make a key ring that seals logins"))
    .argument("[path]", "New file for it, which only you can read (default: standard output)")
    .addHelpText(
      "after",
      `
To exchange the key, add a second one to keys in every process, then make it current, then run store reseal, then remove
the first one. name_key never changes.

Example:
  $ agentauth store keys store-keys.json`,
    )
    .action(registry.run(load, "keys", "path"));
  addOutputFlags(group.command("reseal").description("Seal each record with the current key of the key ring"))
    .addHelpText("after", "\nRuns beside processes that use the store.\n\nExample:\n  $ agentauth store reseal")
    .action(registry.run(load, "reseal"));
  addFlags(
    addOutputFlags(group.command("keep-alive").description("Refresh unused logins before they expire (experimental)")),
    undefined,
    [
      ["--every <time>", "In what time each login is refreshed once: 90m, 24h, 7d", everyFlag],
      ["--once", "Refresh what is due and exit, as a cron job"],
      ["--concurrency <n>", "Refreshes in flight (default: 16)", wholeNumber(1)],
      [
        "--tenant <tenant>",
        "Tenant whose logins are kept, in a store that many machines share (repeatable)",
        collectRepeated,
      ],
    ],
  )
    .addHelpText(
      "after",
      `
The time (default: 24h) must be shorter than an issuer keeps an unused refresh token. Any number of workers may run:
each login is refreshed by one of them, and one that is killed is replaced by the others. A login that was refreshed within the
time is left alone. SIGTERM ends it when the refreshes in flight have ended.

With --once it exits with 7 if logins stayed overdue. Run it about ten times in --every.

Examples:
  $ agentauth store keep-alive --every 24h
  $ agentauth store keep-alive --once --every 7d --tenant acme`,
    )
    .action(registry.run(() => import("./keep-alive.js"), "runKeepAlive"));
  group
    .command("sql")
    .description("Print the SQL that creates the tables in PostgreSQL")
    .addHelpText("after", "\nExample:\n  $ agentauth store sql > tables.sql")
    .action(registry.run(load, "sql"));
  addFlags(
    addOutputFlags(group.command("copy").description("Copy the logins in files to Redis or PostgreSQL")),
    undefined,
    [["--to <store_url>", "Address of the engine, without its password: or env:NAME, file:PATH, exec:COMMAND"]],
  )
    .addHelpText(
      "after",
      `
Copies every login, registered client and binding of every profile, sealed with store_keys. A newer login of the engine is
not replaced, and no binding is. The files stay as they are. Stop using them first: an issuer that replaces refresh tokens
ends a login that is used at both places.

Example:
  $ agentauth store copy --to env:REDIS_URL`,
    )
    .action(registry.run(() => import("./copy.js"), "runCopy"));
}

function everyFlag(value: string): string {
  try {
    parseTime(value);
    return value;
  } catch {
    throw new InvalidArgumentError("must be a time such as 90m, 24h or 7d, at least 10s and at most 90d");
  }
}
