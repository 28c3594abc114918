import type { PlaceToken } from "../../api/auth.js";
import { AgentAuthError } from "../../errors.js";
import { inOrder, missingService, WITHOUT_SERVICE } from "../config/missing-service.js";
import type { Settings } from "../runtime/settings.js";

/**
 * The base address of the service.
 *
 * @throws `AgentAuthError` `usage` when no service is configured
 */
export function requireBaseUrl(settings: Pick<Settings, "baseUrl" | "apiToken" | "clientCert">): string {
  if (settings.baseUrl) return settings.baseUrl.value;
  const missing = missingService(settings);
  throw new AgentAuthError("usage", missing.map(({ problem }) => problem).join(", "), {
    class: "usage",
    hint: `${inOrder(missing)}; ${WITHOUT_SERVICE}`,
  });
}

/** Puts the token into the header that a profile names, after its scheme if it names one. */
export function placeToken(header: string): PlaceToken {
  const [name = "", scheme] = header.split(":").map((part) => part.trim());
  return (headers, token) => headers.set(name, scheme ? `${scheme} ${token}` : token);
}
