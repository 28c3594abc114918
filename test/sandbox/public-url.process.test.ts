import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { FETCH_BROWSER } from "../flow/support.js";
import { runCli, startCliSandbox, temporaryFolder } from "../helpers/cli.js";
import { freePort } from "../helpers/port.js";

const HAS_NGINX = spawnSync("nginx", ["-v"]).status === 0;

/** A real nginx on loopback in front of a port, with the lines that its location has. */
async function startNginx(port: number, target: number, lines: string) {
  const folder = temporaryFolder();
  const server = `listen 127.0.0.1:${port}; location / { proxy_pass http://127.0.0.1:${target}; ${lines} }`;
  const places = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  );
  const config = `daemon off; master_process off; pid ${folder}/pid; error_log stderr; events {}
http { access_log off; ${places.join(" ")} server { ${server} } }`;
  const file = join(folder, "nginx.conf");
  writeFileSync(file, config);
  const child = spawn("nginx", ["-p", folder, "-c", file], { stdio: "ignore" });
  while ((await fetch(`http://127.0.0.1:${port}/health`).catch(() => undefined)) === undefined) await sleep(50);
  return async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  };
}

/** The answer to a client that begins a login on another device. */
async function deviceCodeAt(issuer: string): Promise<string> {
  const post = (path: string, body: string, type: string) =>
    fetch(issuer + path, { method: "POST", headers: { "content-type": type }, body });
  const metadata = {
    redirect_uris: [],
    response_types: [],
    grant_types: ["urn:ietf:params:oauth:grant-type:device_code"],
  };
  const client = JSON.stringify({ ...metadata, token_endpoint_auth_method: "none" });
  const { client_id } = (await (await post("/register", client, "application/json")).json()) as { client_id: string };
  const answer = await post("/device_authorization", `client_id=${client_id}`, "application/x-www-form-urlencoded");
  return answer.text();
}

/** Every address in a text. */
const addressesIn = (text: string) => text.match(/https?:\/\/[^"\s,<>]+/g) ?? [];

describe.skipIf(!HAS_NGINX)("a sandbox behind nginx (needs nginx)", () => {
  it.each([
    ["the host of the request", "proxy_set_header Host $http_host;"],
    ["the host without its port", "proxy_set_header Host $host; proxy_set_header X-Forwarded-Proto https;"],
    ["the address that it connects to", "proxy_set_header X-Forwarded-Host evil.example;"],
  ])(
    "publishes its public address alone, and is reached there: nginx passes on %s",
    async (_what, lines) => {
      const [port, target] = [await freePort(), await freePort()];
      const publicUrl = `http://localhost:${port}`;
      const flags = ["--device-flow", "--machine-grants", "--auto-approve", "--devices", "3"];
      const sandbox = await startCliSandbox(["--port", `${target}`, "--public-url", `${publicUrl}/`, ...flags]);
      const stopNginx = await startNginx(port, target, lines);
      try {
        const { base_url, mcp_url = "", pool_id, api_token } = sandbox.ready;
        expect([base_url, mcp_url]).toEqual([publicUrl, `${publicUrl}/mcp`]);
        const wellKnown = `${publicUrl}/.well-known`;
        const published = await Promise.all([
          fetch(mcp_url, { method: "POST" }).then(({ headers }) => headers.get("www-authenticate") ?? ""),
          ...[`${wellKnown}/oauth-protected-resource/mcp`, `${wellKnown}/oauth-authorization-server/${pool_id}`].map(
            async (url) => (await fetch(url)).text(),
          ),
          deviceCodeAt(`${publicUrl}/${pool_id}`),
          sandbox.run(["sandbox", "machine"]).then(({ stdout }) => stdout),
          sandbox.run(["sandbox", "status", "--json"]).then(({ stdout }) => stdout),
        ]);
        for (const text of published) {
          expect(addressesIn(text)).not.toEqual([]);
          expect(addressesIn(text).filter((url) => !url.startsWith(`${publicUrl}/`) && url !== publicUrl)).toEqual([]);
        }

        const env = { AGENTAUTH_HOME: temporaryFolder() };
        const login = await runCli(["login", mcp_url, "--browser", FETCH_BROWSER], { env });
        expect(login).toMatchObject({ code: 0 });
        const tools = await runCli(["mcp", "tools", mcp_url, "-o", "id"], { env });
        expect(tools).toMatchObject({ code: 0, stdout: expect.stringContaining("whoami") });
        const list = ["devices", "list", "--pool", pool_id ?? "", "--base-url", publicUrl, "-o", "id"];
        const devices = await runCli(list, { env: { ...env, AGENTAUTH_API_TOKEN: api_token } });
        expect([devices.code, devices.stdout.trim().split("\n").length]).toEqual([0, 4]);

        // What this machine has of it does not depend on the proxy.
        await stopNginx();
        expect(await sandbox.run(["devices", "list", "--profile", "sandbox", "-o", "id"])).toMatchObject({ code: 0 });
        expect(await sandbox.run(["sandbox", "stop"])).toMatchObject({ code: 0 });
      } finally {
        await stopNginx();
        await sandbox.stop();
      }
    },
    60_000,
  );
});
