import { isAgentAuthError } from "../../errors.js";
import type { ServerMetadata } from "../model/metadata.js";

/** A server of 2025-03-26: its origin is the issuer, and where it publishes nothing its endpoints have fixed paths. */
export async function legacyIssuer<T>(mcpUrl: string, read: () => Promise<T>): Promise<T | ServerMetadata> {
  const { origin } = new URL(mcpUrl);
  try {
    return await read();
  } catch (error) {
    if (!isAgentAuthError(error) || error.code !== "no_server_metadata") throw error;
  }
  return {
    issuer: origin,
    authorizationEndpoint: `${origin}/authorize`,
    tokenEndpoint: `${origin}/token`,
    registrationEndpoint: `${origin}/register`,
    promisesIss: false,
    takesClientIdDocuments: false,
    url: mcpUrl,
  };
}
