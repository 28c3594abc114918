// One of the processes that refresh a login at the same time: node.exe with the built package. Its argument is JSON: the
// folder of the store, the MCP server and the generation at which to stop. It prints each token's generation on a line.
import { AgentClient, fileStore } from "../soak/dist.mjs";

const { home, server, until } = JSON.parse(process.argv[2]);
const store = fileStore(home);
const login = {
  open() {
    throw new Error("the login was lost");
  },
};
const agent = new AgentClient({ store, login });
const key = { profile: "default", server };

for (let generation = 0; generation < until; ) {
  await agent.token(server, { forceRefresh: true });
  generation = (await store.read(key)).generation;
  console.log(generation);
}
process.exit(0);
