import { shellWord } from "../../redact.js";
import type { Settings } from "../runtime/settings.js";

/** The settings by flags that another command has to repeat. */
export type ServiceSettings = Pick<Settings, "profile" | "baseUrl" | "clientCert" | "clientKey">;

/** The flags that chose the service and the user, with a blank before each: without them a command would ask another one. */
export function serviceFlags({ profile, baseUrl, clientCert, clientKey }: ServiceSettings): string {
  return [profile, baseUrl, clientCert, clientKey]
    .filter((setting) => setting?.source.startsWith("--"))
    .map((setting) => ` ${setting?.source} ${shellWord(setting?.value ?? "")}`)
    .join("");
}

/** The command that prints a list as the service sends it, with the items that have no id. */
export function rawListCommand(noun: string, scope: string, id: string, settings: ServiceSettings): string {
  const path = `/api/v1/${noun.slice(0, -1)}`;
  return `agentauth api GET ${path} -f ${shellWord(`${scope}_id=${id}`)} --paginate${serviceFlags(settings)}`;
}
