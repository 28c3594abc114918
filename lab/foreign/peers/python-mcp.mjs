// The official MCP SDK for Python: its MCP server with its authorization server.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { folder } from "../peer.mjs";
import { pythonWith } from "../python.mjs";

const REQUIREMENT = "mcp==1.28.1";

export const rows = [{ name: "python-mcp", quick: true, start }];

async function start() {
  const { command, env } = pythonWith(REQUIREMENT, ["python3-mcp", "python3-uvicorn"]);
  const [program, ...words] = command;
  const server = join(folder, "peers", "python-mcp", "server.py");
  const child = spawn(program, [...words, server], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [line] = await Promise.race([
    once(createInterface({ input: child.stdout }), "line"),
    once(child, "exit").then(([code]) => {
      throw new Error(`server.py ended with ${code}`);
    }),
  ]);
  const close = async () => {
    child.kill();
    await once(child, "exit");
  };
  return { ...JSON.parse(line), tool: "whoami", says: "subject carol", revoked: true, close };
}
