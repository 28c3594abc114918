// Calls a tool through the broker of `exec --broker`, and prints the answer.
const { request } = require("node:http");
const { AGENTAUTH_BROKER_SOCKET: socketPath, AGENTAUTH_BROKER_URL: url = "http://localhost" } = process.env;
const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
const sent = request(`${url}/mcp`, { method: "POST", headers, socketPath }, async (response) => {
  let text = `${response.statusCode} `;
  for await (const part of response) text += part;
  console.log(text);
});
sent.end(JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "whoami" } }));
