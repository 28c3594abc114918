/**
 * The clients with the settings and logins of the CLI, and what an agent client needs on a computer: a
 * store in files, logins at a terminal, and a network with name lookup and proxies.
 *
 * @module agentauth/node
 */

export type { HostAddress, Lookup, Proxies, ProxyOptions } from "./http/node/agents.js";
export type { ClientCertificate, ConnectOptions } from "./http/node/http-send.js";
export { type NodeNetworkOptions, nodeNetwork } from "./http/node/network.js";
export { type OpenBrowser, openBrowser } from "./login/browser.js";
export type { LoginDisplay, OptionText } from "./login/messages.js";
export { type TerminalLoginOptions, terminalLogin } from "./login/terminal.js";
export type { AssertionSourceOptions } from "./profile/assertion-sources.js";
export {
  createAgentClient,
  createManagementClient,
  defaultStore,
  type ProfileAgentOptions,
  type ProfileManagementOptions,
  type ProfileNetworkOptions,
  workloadFrom,
} from "./profile/clients.js";
export { type PrivateKeyOptions, readPrivateKey } from "./profile/private-key.js";
export { fileStore } from "./store/file/file.js";
export type { Keychain } from "./store/keychain/keychain.js";
export { type KeyringStoreOptions, keyringStore } from "./store/keychain/keyring.js";
