/**
 * `agentauth/vault`: the users of a platform connect MCP servers. A fetch-style handler, and a typed client of it.
 * Web-standard interfaces only.
 *
 * @module
 */
export { createVaultClient, type VaultClient } from "./vault-client.js";
export { type FormToken, type Vault, type VaultOptions, type VaultUser, vaultHandler } from "./vault-handler.js";
