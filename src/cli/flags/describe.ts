import type { Option } from "commander";

/** The type of a flag's value. */
export type FlagType = "boolean" | "string" | "integer" | "number" | "choice";

/** A flag of a command. */
export interface FlagInfo {
  /** `--output`, or `--no-color` if that is the only form. */
  name: string;
  /** `-o`. */
  short?: string;
  /** The type of its value. */
  type: FlagType;
  /** The placeholder of the value in the help, such as `format`. */
  value?: string;
  /** Whether the value may be omitted. */
  value_optional?: true;
  /** The allowed values. */
  choices?: readonly string[];
  /** The default, as text. */
  default?: string;
  /** Environment variables with the same effect; the flag takes precedence. */
  env?: readonly string[];
  /** Whether the flag may be repeated. */
  repeatable?: true;
  /** Its heading in the help. */
  group: string;
  /** What it does. */
  description: string;
}

/** The variables of each flag. The parser must not read them: only `io` reads the environment. */
const VARIABLES: Readonly<Record<string, readonly string[]>> = {
  "--profile": ["AGENTAUTH_PROFILE"],
  "--base-url": ["AGENTAUTH_BASE_URL"],
  "--proxy": ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"],
  "--ca-file": ["NODE_EXTRA_CA_CERTS"],
  "--use-system-ca": ["NODE_USE_SYSTEM_CA"],
  "--no-color": ["NO_COLOR"],
  "--no-input": ["AGENTAUTH_NO_INPUT"],
  "--browser": ["BROWSER"],
  "--client-secret-file": ["AGENTAUTH_CLIENT_SECRET"],
  "--idp-client-secret-file": ["AGENTAUTH_IDP_CLIENT_SECRET"],
  "--id-token-file": ["AGENTAUTH_ID_TOKEN"],
  "--subject-token-file": ["AGENTAUTH_SUBJECT_TOKEN"],
  "--no-pager": ["AGENTAUTH_PAGER", "PAGER"],
};

/** Describes one flag. */
export function describeFlag(option: Option): FlagInfo {
  const name = option.long ?? option.short ?? option.flags;
  const { value, isOptional } = readPlaceholder(option.flags);
  const fallback = /\(default:? ([^()]+)\)/.exec(option.description)?.[1];
  const env = Object.hasOwn(VARIABLES, name) ? VARIABLES[name] : undefined;
  return {
    name,
    ...(option.short !== undefined && { short: option.short }),
    type: typeOf(option),
    ...(value !== undefined && { value }),
    ...(isOptional && { value_optional: true }),
    ...(option.argChoices && { choices: option.argChoices }),
    ...(fallback !== undefined && { default: fallback }),
    ...(env && { env }),
    ...(isRepeatable(option) && { repeatable: true }),
    group: (option.helpGroupHeading ?? "Options").replace(/:$/, ""),
    description: option.description,
  };
}

/**
 * The placeholder of the value, between the outermost brackets of the declaration. It may contain brackets itself, such
 * as `<field[:asc|:desc]>`, which commander treats as an optional value.
 */
function readPlaceholder(flags: string): { value?: string; isOptional: boolean } {
  const [, bracket, value] = /\s([<[])(.+?)(?:\.\.\.)?[>\]]$/.exec(flags) ?? [];
  return { ...(value !== undefined && { value }), isOptional: bracket === "[" };
}

function typeOf(option: Option): FlagType {
  if (!option.required && !option.optional) return "boolean";
  if (option.argChoices) return "choice";
  if (typeof tryParser(option, "7") !== "number") return "string";
  return typeof tryParser(option, "7.5") === "number" ? "number" : "integer";
}

function isRepeatable(option: Option): boolean {
  return option.variadic || (option.argChoices === undefined && Array.isArray(tryParser(option, "a=b: c")));
}

/** The result of the flag's own parser; undefined if it rejects the value or there is no parser. */
function tryParser(option: Option, value: string): unknown {
  try {
    return option.parseArg?.(value, undefined);
  } catch {
    return undefined;
  }
}
