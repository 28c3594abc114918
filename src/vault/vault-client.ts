import createOpenApiClient, { type Client, type ClientOptions } from "openapi-fetch";
import type { paths } from "./schema.gen.js";

/** The client of a vault, typed by `vault.openapi.yaml`: of every operation it returns `data`, or the problem as `error`. */
export type VaultClient = Client<paths>;

/**
 * Creates a client of a vault, for the pages of its platform, or for programs that log in at the platform.
 *
 * @param options `baseUrl` is that of the handler; `fetch` and `headers` are those of openapi-fetch
 * @example
 * const vault = createVaultClient({ baseUrl: "https://app.example/vault" });
 * const { data } = await vault.POST("/connect", { body: { server: "https://mcp.example/mcp" } });
 * if (data) location.assign(data.url);
 */
export function createVaultClient(options: ClientOptions & { baseUrl: string }): VaultClient {
  return createOpenApiClient<paths>(options);
}
