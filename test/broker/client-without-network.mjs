// Calls a tool over a Unix socket, and prints what it received, and its own memory and environment.
import { request } from "node:http";
import { connect } from "node:net";
import { getHeapSnapshot } from "node:v8";

const [socketPath, server] = process.argv.slice(2);
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

let memory = JSON.stringify(process.env);
for await (const part of getHeapSnapshot()) memory += part;
process.stdout.write(JSON.stringify({ direct, received, memory }));
