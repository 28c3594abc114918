import type { Format, Settings } from "../../profile/settings.js";
import type { OutputFlags } from "../flags/output.js";
import type { Io } from "../io/io.js";

/** The output format: the flag, else the profile's, else the default for a terminal or a pipe. */
export function formatOf(options: OutputFlags, settings: Pick<Settings, "output">, io: Io): Format {
  if (options.output) return options.output;
  if (options.json || options.jq !== undefined) return "json";
  return (settings.output?.value as Format | undefined) ?? (io.stdout.isTTY ? "table" : "plain");
}
