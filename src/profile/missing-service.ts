import { withInput } from "../platform/shell.js";
import type { Settings } from "./settings.js";

/** A required setting that is not set, and the command that sets it. */
export interface MissingSetting {
  problem: string;
  command: string;
}

/** The way without a service. */
export const WITHOUT_SERVICE =
  "without a service: agentauth demo, or agentauth sandbox start and then --profile sandbox";

/** The settings of the service that are missing, in the order to set them; none where the base URL is set. */
export function missingService({
  baseUrl,
  apiToken,
  clientCert,
}: Pick<Settings, "baseUrl" | "apiToken" | "clientCert">): MissingSetting[] {
  if (baseUrl) return [];
  const service = {
    problem: "no service is configured: the base URL is not set",
    command: "agentauth config set base_url <url>, or --base-url, or AGENTAUTH_BASE_URL",
  };
  const token = { problem: "no API token is set", command: storingToken() };
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
