import type { PlaceToken } from "../api/auth.js";
import type { ManagementClientOptions } from "../api/client.js";
import type { SortingEncoding } from "../api/types.js";
import { usageError } from "../errors.js";
import { withInput } from "../platform.js";
import { RUNNING_SANDBOX } from "./resolve-settings.js";
import type { Settings } from "./settings.js";
import { SANDBOX_PROFILE } from "./settings-file.js";

/** The base address of the service. @throws `AgentAuthError` `usage` when no service is configured */
export function requireBaseUrl(settings: ServiceChoice): string {
  if (settings.baseUrl) return settings.baseUrl.value;
  const missing = missingService(settings);
  throw usageError(
    missing.map(({ problem }) => problem).join(", "),
    settings.profile.value === SANDBOX_PROFILE ? inOrder(missing) : `${inOrder(missing)}; ${WITHOUT_SERVICE}`,
  );
}

/** What is to be said of a service that no setting names; undefined where one does. */
export function sandboxNotice({ baseUrl }: Pick<Settings, "baseUrl">): string | undefined {
  if (baseUrl?.source !== RUNNING_SANDBOX) return undefined;
  return `no base URL is set: the lists are those of ${RUNNING_SANDBOX} at ${baseUrl.value}`;
}

/** The options of a client that the settings decide, beside its address and its network. */
export function serviceOptions({
  apiToken,
  authHeader,
  sorting,
}: Settings): Pick<ManagementClientOptions, "token" | "auth" | "sorting"> {
  return {
    ...(apiToken && { token: apiToken.read }),
    ...(authHeader && { auth: placeToken(authHeader.value) }),
    ...(sorting && { sorting: sorting.value as SortingEncoding }),
  };
}

/** Puts the token into the header that a profile names, after its scheme if it names one. */
function placeToken(header: string): PlaceToken {
  const [name = "", scheme] = header.split(":").map((part) => part.trim());
  return (headers, token) => headers.set(name, scheme ? `${scheme} ${token}` : token);
}

/** A required setting that is not set, and the command that sets it. */
export interface MissingSetting {
  problem: string;
  command: string;
}

const WITHOUT_SERVICE = "without a service: agentauth demo";

/** The settings that say which service is used. */
type ServiceChoice = Pick<Settings, "profile" | "baseUrl" | "apiToken" | "clientCert">;

/** The settings of the service that are missing, in the order to set them; none where the base URL is set. */
export function missingService({ profile, baseUrl, apiToken, clientCert }: ServiceChoice): MissingSetting[] {
  if (baseUrl) return [];
  if (profile.value === SANDBOX_PROFILE)
    return [{ problem: "no sandbox is running", command: "agentauth sandbox start" }];
  const service = {
    problem: "no service is configured: the base URL is not set (AGENTAUTH_BASE_URL)",
    command: "agentauth config set base_url <url>",
  };
  const token = { problem: "no API token is set (AGENTAUTH_API_TOKEN)", command: storingToken() };
  return apiToken || clientCert ? [service] : [service, token];
}

/** The commands in order, numbered where there are several. */
export function inOrder(missing: readonly MissingSetting[]): string {
  if (missing.length < 2) return missing.map(({ command }) => command).join("");
  return missing.map(({ command }, index) => `${index + 1}. ${command}`).join("; ");
}

/** The command that stores the API token. It reads a file, since a command line is seen by others. */
export function storingToken(): string {
  return withInput("agentauth config set api_token -", "token.txt");
}
