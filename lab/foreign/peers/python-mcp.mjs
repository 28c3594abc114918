// The official MCP SDK for Python: its MCP server with its authorization server. Also as many run it in a company: mounted
// into a web application, which redirects `/mcp` to `/mcp/`, on two nodes with sessions of their own, behind a balancer that
// knows its clients by a cookie, and a firewall that refuses requests without a User-Agent.
import { join } from "node:path";
import { folder, freePort, programVersion, startPrinting, startProgram } from "../peer.mjs";
import { pythonWith } from "../python.mjs";

const SAID = { tool: "whoami", says: "subject carol", revoked: true };

export const rows = [
  {
    name: "python-mcp",
    title: "MCP SDK for Python, server and authorization server",
    quick: true,
    start: async () => ({ ...SAID, ...(await startServer()) }),
  },
  { name: "python-mount", title: "Starlette mount, balancer with cookies, firewall", quick: true, start: startMounted },
];

function startServer(...words) {
  const { command, env } = pythonWith("mcp==1.28.1", ["python3-mcp", "python3-uvicorn"]);
  return startPrinting([...command, join(folder, "peers", "python-mcp", "server.py"), ...words], env);
}

async function startMounted() {
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const { nodes, ...server } = await startServer(origin);
  const names = nodes.map((_, index) => `node${index}`);
  const balancer = await startProgram({
    program: "nginx",
    port,
    words: (work) => ["-p", work, "-c", "nginx.conf", "-e", "stderr"],
    files: (work) => ({
      "nginx.conf": `
daemon off; worker_processes 1; pid nginx.pid; error_log stderr;
events {}
http {
  access_log off;
  ${["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => `${name}_temp_path ${work}/${name};`).join(" ")}
  ${nodes.map((node, index) => `upstream ${names[index]} { server ${node}; }`).join(" ")}
  upstream every { ${nodes.map((node) => `server ${node};`).join(" ")} }
  map $cookie_awsalb $chosen { default every; ${names.map((name) => `${name} ${name};`).join(" ")} }
  map $upstream_addr $name { ${nodes.map((node, index) => `${node} ${names[index]};`).join(" ")} }
  server {
    listen 127.0.0.1:${port};
    if ($http_user_agent = "") { return 403; }
    location / {
      proxy_pass http://$chosen; proxy_set_header Host $http_host; proxy_buffering off;
      add_header Set-Cookie "AWSALB=$name; Path=/" always;
    }
  }
}
`,
    }),
  });
  const close = async () => {
    await balancer.close();
    await server.close();
  };
  const version = `${server.version}, starlette ${server.starlette}, nginx ${programVersion("nginx")}`;
  return { ...SAID, url: server.url, version, isBalanced: true, close };
}
