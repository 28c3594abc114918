// Calls a tool over a Unix socket, and writes what a hostile client would. Prints what it received, then waits to be read.
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { connect } from "node:net";

const [socketPath, server, hostile] = process.argv.slice(2);
const { hostname, port } = new URL(server);
const direct = await new Promise((resolve) => {
  connect(Number(port), hostname, () => resolve("connected")).once("error", ({ code }) => resolve(code));
});

const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "whoami" } });
const response = await new Promise((resolve, reject) => {
  request({ socketPath, path: "/mcp", method: "POST", host: "localhost", headers }, resolve)
    .on("error", reject)
    .end(body);
});
let received = JSON.stringify(response.rawHeaders);
for await (const part of response) received += part;

function write(text) {
  return new Promise((resolve) => {
    let answer = "";
    const socket = connect(socketPath, () => socket.write(text));
    socket.on("data", (part) => (answer += part)).on("error", () => undefined);
    socket.once("close", () => resolve(answer));
    setTimeout(() => socket.end(), 500);
  });
}
const answers = await Promise.all(JSON.parse(readFileSync(hostile, "utf8")).map(write));
process.stdout.write(`${JSON.stringify({ direct, received, answers })}\n`);
process.stdin.resume();
