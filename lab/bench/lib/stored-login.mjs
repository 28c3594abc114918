import { AgentClient } from "../../../dist/index.js";
import { fileStore } from "../../../dist/node.js";
import { login } from "./login.mjs";

/** Stores a login at a sandbox in the files of a home. */
export async function logIn(home, mcpUrl) {
  await new AgentClient({ store: fileStore(home), login }).token(mcpUrl);
}
