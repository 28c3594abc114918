// The least that a proxy can do: each line of stdin is posted, and each body is written as a line. pipe.mjs <mcp_url> <token>
import { Agent, request } from "node:http";
import { createInterface } from "node:readline";

const [url, token] = process.argv.slice(2);
const agent = new Agent({ keepAlive: true });
const headers = {
  authorization: `Bearer ${token}`,
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
};
createInterface({ input: process.stdin }).on("line", (line) => {
  const sent = request(url, {
    method: "POST",
    agent,
    headers: { ...headers, "content-length": Buffer.byteLength(line) },
  });
  sent.on("response", (response) => {
    let text = "";
    response.setEncoding("utf8").on("data", (part) => (text += part));
    response.on("end", () => text !== "" && process.stdout.write(`${text}\n`));
  });
  sent.end(line);
});
