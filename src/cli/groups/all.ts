/** The commands of this bundle, and what runs a command line of them. */

export { COMMANDS as commands } from "../commands/all.gen.js";
export { run } from "../execute.js";
