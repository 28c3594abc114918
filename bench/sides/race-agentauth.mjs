import { AgentClient } from "../../dist/index.js";
import { fileStore } from "../../dist/node/index.js";
import { racer } from "../lib/racer.mjs";
import { login, TOOLS_LIST } from "../lib/sign-in.mjs";

await racer((mcpUrl, folder) => ({
  login: () => new AgentClient({ store: fileStore(folder), login }).token(mcpUrl),
  call: () => new AgentClient({ store: fileStore(folder) }).fetch(mcpUrl, TOOLS_LIST),
}));
