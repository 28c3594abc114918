/** The flags of a watched list, and the flags that do not work with it. */

import { type AgentAuthError, usageError } from "../../../../errors.js";
import type { Settings } from "../../../../profile/settings.js";
import type { ListFlags } from "../../../flags/list.js";
import type { Io } from "../../../io/io.js";

/** The output of a watched list: a screen that is redrawn, or one event per line. */
export type WatchFormat = "table" | "wide" | "ndjson";

/** The flags of a list, with the interval in milliseconds. */
export type WatchedFlags = ListFlags & { watch: number };

/**
 * Checks the flags for conflicts.
 *
 * @throws `AgentAuthError` `usage` that names the flag
 */
export function checkWatchFlags(options: ListFlags): asserts options is WatchedFlags {
  if (options.watch === undefined) {
    const flag = options.until === undefined ? "--watch-timeout" : "--until";
    throw usageError(`${flag} needs --watch`, "add --watch, such as --watch=5s");
  }
  if (options.until?.trim() === "") throw usageError("--until is empty", "give a jq expression, such as 'length > 0'");
  if (options.offset !== undefined) throw clash("--offset", "each poll reads the list from its start");
  if (options.brief) throw clash("--brief", "each poll reads the whole list");
  if (options.csvRaw) throw clash("--csv-raw", "a watched list cannot be printed as CSV");
  if (options.limit !== undefined && options.until !== undefined) {
    throw usageError(
      "--limit does not work with --until",
      "the expression applies to the whole list: leave --limit out",
    );
  }
}

/**
 * The output format. The profile's format is ignored if it cannot show a changing list.
 *
 * @throws `AgentAuthError` `usage` that names the flag
 */
export function watchFormat(options: WatchedFlags, settings: Settings, io: Io): WatchFormat {
  const format = chosenFormat(options, settings, io);
  if (format === "ndjson" && options.limit !== undefined) {
    throw clash("--limit", "an item that moves behind the limit would look removed");
  }
  return format;
}

function chosenFormat({ output, json, jq }: WatchedFlags, settings: Settings, { stdout }: Io): WatchFormat {
  const named = output ?? (json ? "json" : undefined);
  const formats = `use -o ndjson (one event per line)${stdout.isTTY ? " or -o table (redrawn in place)" : ""}`;
  if (named === "table" || named === "wide") {
    if (!stdout.isTTY) throw usageError(`-o ${named} with --watch needs a terminal to draw on`, formats);
    if (jq !== undefined)
      throw usageError(
        `--jq does not work with -o ${named} and --watch`,
        "use -o ndjson (the expression runs on each event)",
      );
    return named;
  }
  if (named !== undefined && named !== "ndjson") {
    throw usageError(`${output === undefined ? "--json" : `-o ${named}`} does not work with --watch`, formats);
  }
  if (named === "ndjson" || jq !== undefined || !stdout.isTTY) return "ndjson";
  return settings.output?.value === "wide" ? "wide" : "table";
}

function clash(flag: string, why: string): AgentAuthError {
  return usageError(`${flag} does not work with --watch`, `leave ${flag} out: ${why}`);
}
