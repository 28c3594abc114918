import type { PlaceToken } from "../api/auth.js";
import type { ManagementClientOptions } from "../api/client.js";
import type { SortingEncoding } from "../api/query.js";
import { AgentAuthError } from "../errors.js";
import { inOrder, missingService, WITHOUT_SERVICE } from "./missing-service.js";
import type { Settings } from "./settings.js";

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
