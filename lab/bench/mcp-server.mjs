// An MCP server that answers with JSON and does nothing else: mcp-server.mjs. Prints its address as its first line of output.
import { createServer } from "node:http";

const RESULTS = {
  initialize: {
    protocolVersion: "2025-11-25",
    capabilities: { tools: {} },
    serverInfo: { name: "bench", version: "1" },
  },
  "tools/call": { content: [{ type: "text", text: "x".repeat(1000) }] },
};

const server = createServer((request, response) => {
  if (request.method !== "POST") return void response.writeHead(405).end();
  let body = "";
  request.setEncoding("utf8").on("data", (part) => (body += part));
  request.on("end", () => {
    const { id, method } = JSON.parse(body);
    if (id === undefined) return void response.writeHead(202).end();
    const text = JSON.stringify({ jsonrpc: "2.0", id, result: RESULTS[method] ?? {} });
    const session = method === "initialize" ? { "mcp-session-id": "bench" } : {};
    response
      .writeHead(200, { "content-type": "application/json", "content-length": text.length, ...session })
      .end(text);
  });
});
server.listen(0, "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/mcp`));
process.on("SIGTERM", () => process.exit(0));
