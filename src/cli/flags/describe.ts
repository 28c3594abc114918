import type { Option } from "commander";

/** What a flag takes. */
export type FlagType = "boolean" | "string" | "integer" | "number" | "choice";

/** A flag of a command. */
export interface FlagInfo {
  /** `--output`, or `--no-color` where that is the only form. */
  name: string;
  /** `-o`. */
  short?: string;
  type: FlagType;
  /** What stands for the value in the help, such as `format`. */
  value?: string;
  /** Whether the value may be left out. */
  value_optional?: true;
  /** The values that are possible. */
  choices?: readonly string[];
  /** What counts without the flag, in words. */
  default?: string;
  /** Environment variables that do the same; the flag comes first. */
  env?: readonly string[];
  /** May be given several times. */
  repeatable?: true;
  /** The heading that it stands under in the help. */
  group: string;
  description: string;
}

/** Which variables say what a flag says. The parser must not read them: only `io` knows the environment. */
const VARIABLES: Readonly<Record<string, readonly string[]>> = {
  "--profile": ["AGENTAUTH_PROFILE"],
  "--base-url": ["AGENTAUTH_BASE_URL"],
  "--proxy": ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"],
  "--ca-file": ["NODE_EXTRA_CA_CERTS"],
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
  const otherwise = /\(default:? ([^()]+)\)/.exec(option.description)?.[1];
  const env = Object.hasOwn(VARIABLES, name) ? VARIABLES[name] : undefined;
  return {
    name,
    ...(option.short !== undefined && { short: option.short }),
    type: typeOf(option),
    ...(value !== undefined && { value }),
    ...(isOptional && { value_optional: true }),
    ...(option.argChoices && { choices: option.argChoices }),
    ...(otherwise !== undefined && { default: otherwise }),
    ...(env && { env }),
    ...(isRepeatable(option) && { repeatable: true }),
    group: (option.helpGroupHeading ?? "Options").replace(/:$/, ""),
    description: option.description,
  };
}

/**
 * What stands for the value in a flag's declaration, between its outermost brackets: it may have brackets itself, such as
 * `<field[:asc|:desc]>`, which commander takes for a value that can be left out as well.
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

/** What the flag's own parser makes of a value; undefined where it refuses it or there is no parser. */
function tryParser(option: Option, value: string): unknown {
  try {
    return option.parseArg?.(value, undefined);
  } catch {
    return undefined;
  }
}
