// The limit of agentauth/node: a loop over node:http that checks nothing.
import { Agent, get } from "node:http";
import { pageUrl, side, TOKEN } from "../lib/side.mjs";

await side(async ({ url, pageSize }, take) => {
  const agent = new Agent({ keepAlive: true });
  for (let offset = 0; offset !== null; ) {
    const { summaries, pagination } = JSON.parse(await readBody(pageUrl(url, offset, pageSize), agent));
    for (const item of summaries) take(item);
    offset = pagination.next_page_offset;
  }
  agent.destroy();
});

function readBody(url, agent) {
  const headers = { accept: "application/json", authorization: `Bearer ${TOKEN}` };
  return new Promise((resolve, reject) => {
    const sent = get(url, { agent, headers }, (response) => {
      const parts = [];
      response.on("data", (part) => parts.push(part));
      response.once("end", () => resolve(Buffer.concat(parts).toString()));
      response.once("error", reject);
    });
    sent.once("error", reject);
  });
}
