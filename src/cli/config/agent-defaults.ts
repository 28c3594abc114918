import type { Command, OptionValues } from "commander";
import { orUndefined } from "../../errors.js";
import { readSettings } from "../../profile/resolve-settings.js";
import { flagText } from "../flags/flag-name.js";
import type { AgentMode } from "../runtime/agent-mode.js";
import type { RunContext } from "../runtime/context.js";

/** The flags and operands of a command, as commander names them. */
type Given = Readonly<Record<string, unknown>>;

/** The flags of a command that an agent runs: given flags stay, and the defaults suit a program. */
export function withAgentDefaults(
  command: Command,
  parsedFlags: OptionValues,
  mode: AgentMode,
  context: RunContext,
): OptionValues {
  const added = { ...withoutPrompts(command, parsedFlags), ...chooseFormat(command, parsedFlags, context) };
  if ("output" in added) mode.announce(context.io);
  return { ...parsedFlags, ...added };
}

/** No prompt and no browser, unless a flag asks for a login; a machine grant has neither. */
function withoutPrompts(command: Command, parsedFlags: Given): object {
  if (hasAny(parsedFlags, "browser", "flow", "grant") || parsedFlags["login"] === true) return {};
  return {
    ...(hasFlag(command, "--browser") && { browser: "none", input: false }),
    ...(hasFlag(command, "--wait") && { isForAgent: true }),
  };
}

/**
 * JSON, and less of it for the context of an agent: of the lists, unless a flag says how many items, and of
 * `commands`, unless one is named. What a flag, the profile or a redirect names is the same for everyone: a program that the
 * agent starts may have named it.
 */
function chooseFormat(command: Command, parsedFlags: Given, context: RunContext): object {
  if (!hasFlag(command, "--json") || !hasFlag(command, "--output") || context.io.isRedirected()) return {};
  if (hasAny(parsedFlags, "output", "json", "jq", "html", "columns") || profileHasFormat(parsedFlags, context))
    return {};
  const { limit, path = [] } = parsedFlags;
  const isLong = hasFlag(command, "--brief") ? limit === undefined : command.name() === "commands";
  const isNamed = Array.isArray(path) && path.length > 0;
  return { output: "json", ...(isLong && !isNamed && { brief: true }) };
}

function hasAny(parsedFlags: Given, ...names: readonly string[]): boolean {
  return names.some((name) => parsedFlags[name] !== undefined);
}

function profileHasFormat(flags: object, context: RunContext): boolean {
  // The command itself reports what is wrong with its settings.
  return orUndefined(() => readSettings(flags, context.io.env, flagText).output !== undefined) ?? false;
}

function hasFlag(command: Command, flag: string): boolean {
  return command.options.some(({ long }) => long === flag);
}
