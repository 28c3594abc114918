import type { Device } from "../../api/types.js";
import { usageError } from "../../errors.js";
import { inOrder, missingService, requireBaseUrl } from "../../profile/service-settings.js";
import type { Settings } from "../../profile/settings.js";
import { SANDBOX_PROFILE } from "../../profile/settings-file.js";
import { shellWord } from "../../redact.js";

/** A pool, a domain or a device: the first two have a part of the fields of the last. */
export type ListItem = Partial<Omit<Device, "type">>;

/** One kind of list: its noun, and the scope that it needs. */
export interface ListKind {
  noun: "pools" | "domains" | "devices";
  scope: "account" | "domain" | "pool";
}

/** The lists, that of the widest scope first. */
export const LIST_KINDS = {
  domains: { noun: "domains", scope: "account" },
  pools: { noun: "pools", scope: "domain" },
  devices: { noun: "devices", scope: "pool" },
} as const satisfies Readonly<Record<ListKind["noun"], ListKind>>;

/**
 * An identifier is sent as it is: a control character in it can only be a mistake of the caller's.
 *
 * @throws `AgentAuthError` `usage`
 */
export function checkIdentifier(value: string, source: string): void {
  if (!/\p{Cc}|\ufffd/u.test(value)) return;
  throw usageError(`${source} has a control character or broken UTF-8 in it`);
}

/** Where the id of each scope comes from. */
const ORIGINS = {
  account:
    "no operation lists accounts: the service's console shows the account id, and every domain has it as account_id",
  domain: "agentauth domains list prints domain ids",
  pool: "agentauth pools list prints pool ids",
} as const;

/**
 * The scope of a list: the flag, else the profile's default.
 *
 * @throws `AgentAuthError` `usage` that names the flag and the setting, and what else of the service is not set
 */
export function requireScope(name: "account" | "domain" | "pool", settings: Settings, command: string): string {
  const value = settings[name];
  if (value) {
    checkIdentifier(value.value, value.source);
    return value.value;
  }
  // A running sandbox names the scope too.
  if (settings.profile.value === SANDBOX_PROFILE) requireBaseUrl(settings);
  const missing = [
    ...missingService(settings),
    { problem: `no ${name} is named`, command: `agentauth ${command} --${name} <${name}_id>` },
  ];
  const others = `, or once for all: agentauth config set ${name} <${name}_id>; ${ORIGINS[name]}`;
  const hint = `${inOrder(missing)}${missing.length > 1 ? "" : others}`;
  throw usageError(missing.map(({ problem }) => problem).join(", "), hint);
}

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
