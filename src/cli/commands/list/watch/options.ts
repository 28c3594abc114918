/** What the flags of a watched list mean, and which of them make no sense with it. */

import { AgentAuthError } from "../../../../errors.js";
import type { ListFlags } from "../../../flags/list.js";
import type { Io } from "../../../io/io.js";
import type { Settings } from "../../../runtime/settings.js";

/** How a watched list is shown: a screen that is drawn again, or an event a line. */
export type WatchFormat = "table" | "wide" | "ndjson";

/** The flags of a list, with the interval in milliseconds. */
export type WatchedFlags = ListFlags & { watch: number };

/**
 * Holds the flags against each other.
 *
 * @throws `AgentAuthError` `usage` that names the flag
 */
export function checkWatchFlags(options: ListFlags): asserts options is WatchedFlags {
  if (options.watch === undefined) {
    const flag = options.until === undefined ? "--watch-timeout" : "--until";
    throw usage(`${flag} is about a list that is watched`, "give --watch too, such as --watch=5s");
  }
  if (options.until?.trim() === "") throw usage("--until is empty", "give a jq expression, such as 'length > 0'");
  if (options.offset !== undefined) throw clash("--offset", "a watched list is read from its beginning, each time");
  if (options.csvRaw) throw clash("--csv-raw", "a watched list cannot be CSV");
  if (options.limit !== undefined && options.until !== undefined) {
    throw usage("--limit does not work with --until", "the expression is about the whole list: leave --limit out");
  }
}

/**
 * How the list is shown. What the profile says is left aside where it is no way to show a list that changes.
 *
 * @throws `AgentAuthError` `usage` that names the flag
 */
export function watchFormat(options: WatchedFlags, settings: Settings, io: Io): WatchFormat {
  const format = chosenFormat(options, settings, io);
  if (format === "ndjson" && options.limit !== undefined) {
    throw clash("--limit", "an item that others push behind the limit would look removed");
  }
  return format;
}

function chosenFormat({ output, json, jq }: WatchedFlags, settings: Settings, { stdout }: Io): WatchFormat {
  const named = output ?? (json ? "json" : undefined);
  const ways = `use -o ndjson (an event a line)${stdout.isTTY ? " or -o table (drawn again)" : ""}`;
  if (named === "table" || named === "wide") {
    if (!stdout.isTTY) throw usage(`-o ${named} with --watch needs a terminal to draw on`, ways);
    if (jq !== undefined)
      throw usage(`--jq does not work with -o ${named} and --watch`, "use -o ndjson (it sees each event)");
    return named;
  }
  if (named !== undefined && named !== "ndjson") {
    throw usage(`${output === undefined ? "--json" : `-o ${named}`} does not work with --watch`, ways);
  }
  if (named === "ndjson" || jq !== undefined || !stdout.isTTY) return "ndjson";
  return settings.output?.value === "wide" ? "wide" : "table";
}

function clash(flag: string, why: string): AgentAuthError {
  return usage(`${flag} does not work with --watch`, `leave ${flag} out: ${why}`);
}

function usage(message: string, hint: string): AgentAuthError {
  return new AgentAuthError("usage", message, { class: "usage", hint });
}
