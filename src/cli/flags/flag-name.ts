import type { AuthorizationParams } from "../../oauth/model/authorization-params.js";
import { shellWord } from "../../redact.js";

/** The flag of an option as it is typed: `--page-size` for `pageSize`. */
export function flagOf(option: string): string {
  return `--${option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
}

/** An option of the SDK as the command line spells it. */
export function flagText(option: string, value?: string): string {
  return flagWords(option, value).map(shellWord).join(" ");
}

/** The flags for parameters of the authorization request. */
export function paramFlags(params: AuthorizationParams): string[][] {
  return Object.entries(params).map(([name, value]) => flagWords("authorizationParams", `${name}=${value}`));
}

/** The option of the SDK that the command line spells in the singular, since each flag has one of them. */
const SINGULAR: Readonly<Record<string, string>> = { authorizationParams: "authorizeParam" };

/** The same as words. */
export function flagWords(given: string, value?: string): string[] {
  const flag = flagOf(SINGULAR[given] ?? given);
  return value === undefined ? [flag] : [flag, value];
}
