import type { AuthorizationParams } from "../../oauth/model/authorization-params.js";
import { shellWord } from "../../redact.js";
import { flagOf } from "../flags/flag-name.js";

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

/** Placeholder for a client id, which the user replaces. */
export const CLIENT_ID = "<client_id>";

/** Placeholder for a URL, which the user replaces. */
export const ANY_URL = "<url>";

/** A word for the shell; a placeholder stays readable. */
export function wordOf(word: string): string {
  return word === CLIENT_ID || word === ANY_URL ? word : shellWord(word);
}

/** A positional argument for the shell: the parser takes one that begins with a dash for a flag, unless it comes after `--`. */
export function operand(word: string): string {
  return word.startsWith("-") ? `-- ${shellWord(word)}` : wordOf(word);
}

/** Maximum length of a URL in a command to paste. */
const MAX_PASTED = 500;

/** A URL that a server chose, for a command to paste: a placeholder unless no shell, of Windows either, acts on it. */
export function urlToPaste(url: string): string {
  return url.length <= MAX_PASTED && /^https?:\/\/[\w.:/~@{}[\]-]+$/.test(url) ? url : ANY_URL;
}

/** The value of a flag for a command to paste, where a server may have chosen it. */
export function valueToPaste(option: string, value: string): string {
  return ["issuer", "resource", "resourceMetadata"].includes(option) ? urlToPaste(value) : value;
}
