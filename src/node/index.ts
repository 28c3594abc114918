/**
 * `agentauth/node`: what an agent client needs of a computer: a store in files, and the ways to sign in at a terminal.
 *
 * @module
 */
export { type OpenBrowser, openBrowser } from "../login/browser.js";
export { type TerminalLoginOptions, terminalLogin } from "../login/terminal.js";
export { fileStore } from "../store/file.js";
