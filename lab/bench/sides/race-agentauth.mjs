import { AgentClient } from "../../../dist/index.js";
import { fileStore } from "../../../dist/node.js";
import { login, TOOLS_LIST } from "../lib/login.mjs";
import { racer } from "../lib/racer.mjs";

await racer((mcpUrl, folder) => ({
  login: () => new AgentClient({ store: fileStore(folder), login }).token(mcpUrl),
  call: () => new AgentClient({ store: fileStore(folder) }).fetch(mcpUrl, TOOLS_LIST),
}));
