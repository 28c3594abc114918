import type { PlaceToken } from "../../api/auth.js";
import { AgentAuthError } from "../../errors.js";
import type { Settings } from "../runtime/settings.js";

/**
 * The base address of the service.
 *
 * @throws `AgentAuthError` `usage` when no service is configured
 */
export function requireBaseUrl({ baseUrl }: Pick<Settings, "baseUrl">): string {
  if (baseUrl) return baseUrl.value;
  throw new AgentAuthError("usage", "no service is configured: the base URL is not set", {
    class: "usage",
    hint: "agentauth config set base_url <url>, or --base-url, or AGENTAUTH_BASE_URL; to try without a service: agentauth demo",
  });
}

/** Puts the token into the header that a profile names, after its scheme if it names one. */
export function placeToken(header: string): PlaceToken {
  const [name = "", scheme] = header.split(":").map((part) => part.trim());
  return (headers, token) => headers.set(name, scheme ? `${scheme} ${token}` : token);
}
