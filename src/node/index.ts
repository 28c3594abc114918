/**
 * `agentauth/node`: what an agent client needs of a computer: a store in files, the ways to sign in at a terminal, and
 * the network with its names and proxies.
 *
 * @module
 */
export { type OpenBrowser, openBrowser } from "../login/browser.js";
export { type TerminalLoginOptions, terminalLogin } from "../login/terminal.js";
export { fileStore } from "../store/file/file.js";
export type { Keychain } from "../store/keychain/keychain.js";
export { type KeyringStoreOptions, keyringStore } from "../store/keychain/keyring.js";
export type { ClientCertificate } from "./client-certificate.js";
export type { DispatcherOptions } from "./dispatcher.js";
export { type NodeNetworkOptions, nodeNetwork } from "./network.js";
export { type PrivateKeyOptions, readPrivateKey } from "./private-key.js";
export type { Proxies, ProxyOptions } from "./proxies.js";
export type { HostAddress, Lookup } from "./ssrf-guard.js";
