import type { AuthorizationParams } from "../../oauth/model/authorization-params.js";
import { flagFor, loginSettings } from "../../profile/login-settings.js";
import { shellWord } from "../../redact.js";

/** An option of the SDK as the command line spells it. */
export function flagText(option: string, value?: string): string {
  return flagWords(option, value).map(shellWord).join(" ");
}

/** The flags for parameters of the authorization request. */
export function paramFlags(params: AuthorizationParams): string[][] {
  return Object.entries(params).map(([name, value]) => flagWords("authorizationParams", `${name}=${value}`));
}

/** The option of the command line for one of the SDK that has another name. */
function toFlagName(option: string): string {
  if (option === "authorizationParams") return "authorizeParam";
  return loginSettings().find(({ client, method }) => client === option || method === option)?.name ?? option;
}

export function flagWords(option: string, value?: string): string[] {
  const flag = flagFor(toFlagName(option));
  return value === undefined ? [flag] : [flag, value];
}
