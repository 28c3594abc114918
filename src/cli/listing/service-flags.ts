import type { Settings } from "../../profile/settings.js";
import { shellWord } from "../../redact.js";

/** The settings by flags that another command has to repeat. */
export type ServiceSettings = Pick<Settings, "profile" | "baseUrl" | "clientCert" | "clientKey">;

/** The flags that chose the service and the user, with a blank before each: without them a command would ask another one. */
export function serviceFlags({ profile, baseUrl, clientCert, clientKey }: ServiceSettings): string {
  return [profile, baseUrl, clientCert, clientKey]
    .filter((setting) => setting?.source.startsWith("--"))
    .map((setting) => ` ${setting?.source} ${shellWord(setting?.value ?? "")}`)
    .join("");
}

/** What helps where items of a list have no id: the command that prints the list as the service sends it. */
export function unusableHint(noun: string, scope: string, id: string, settings: ServiceSettings): string {
  const path = `/api/v1/${noun.slice(0, -1)}`;
  const command = `agentauth api GET ${path} -f ${shellWord(`${scope}_id=${id}`)} --paginate${serviceFlags(settings)}`;
  return `${command} prints them as the service sends them`;
}
