import { readFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer } from "node:https";
import { type AddressInfo, connect, type Server } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { hasOpenssl, makeAuthority } from "../helpers/certificates.js";
import { runCli, temporaryFolder } from "../helpers/cli.js";
import { startIssuer } from "../helpers/issuer.js";
import { LOGIN_FLAGS } from "./support.js";

const openssl = hasOpenssl("the tests of --allow-private-network");
const URL_OF_MCP = "https://mcp.test/mcp";

/** The files of a certificate, of its key and of its authority. */
type Certificate = Record<"cert" | "key" | "ca", string>;

async function listening<T extends { listen: Server["listen"]; address: Server["address"] }>(
  server: T,
): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
}

/** An MCP server elsewhere, which is reached through a proxy, and whose metadata name the given issuer. */
async function startElsewhere(certificate: Certificate, issuer: string) {
  const [key, cert] = [readFileSync(certificate.key), readFileSync(certificate.cert)];
  const requested: string[] = [];
  const server = createServer({ key, cert }, (request, response) => {
    requested.push(`${request.method} ${request.url}`);
    response.setHeader("content-type", "application/json");
    if (request.url?.startsWith("/.well-known/")) {
      response.end(JSON.stringify({ resource: URL_OF_MCP, authorization_servers: [issuer] }));
    } else if (request.headers.authorization?.startsWith("Bearer access-")) response.end('{"ok":true}');
    else response.writeHead(401, { "www-authenticate": "Bearer" }).end();
  });
  const port = await listening(server);
  const tunnels: string[] = [];
  const proxy = createHttpServer().on("connect", (request, socket) => {
    tunnels.push(request.url ?? "");
    const upstream = connect(port, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 OK\r\n\r\n");
      upstream.pipe(socket).pipe(upstream);
    });
    for (const end of [socket, upstream]) end.on("error", () => undefined);
  });
  const proxyPort = await listening(proxy);
  onTestFinished(() => {
    server.close();
    proxy.close();
  });
  const env = { AGENTAUTH_HOME: temporaryFolder(), HTTPS_PROXY: `http://127.0.0.1:${proxyPort}` };
  return {
    requested,
    tunnels,
    env,
    run: (args: readonly string[], more: Record<string, string> = {}) =>
      runCli([...args, "--ca-file", certificate.ca, "--retries", "0"], { env: { ...env, ...more } }),
  };
}

const it = test
  .extend("certificate", { scope: "file" }, (): Certificate => {
    const authority = makeAuthority();
    return { ...authority.sign({ name: "mcp", subject: "/CN=mcp.test", names: "DNS:mcp.test" }), ca: authority.ca };
  })
  .extend(
    "startElsewhere",
    ({ certificate }) =>
      (issuer: string) =>
        startElsewhere(certificate, issuer),
  );

describe.skipIf(!openssl)("a server elsewhere that names an issuer on this machine", () => {
  it("is refused with the flag that disables the check, which is stored for that issuer until the logout", async ({
    startElsewhere,
  }) => {
    const issuer = await startIssuer("as");
    const { run, tunnels } = await startElsewhere(issuer.issuer);
    const refused = await run(["token", URL_OF_MCP, ...LOGIN_FLAGS]);
    expect([refused.code, refused.stdout]).toEqual([3, ""]);
    expect(refused.stderr).toContain(
      `error: authorization_servers "${issuer.issuer}" (from "https://mcp.test/.well-known/oauth-protected-resource/mcp") leads to this machine`,
    );
    expect(refused.stderr).toContain(
      "hint: if you trust this server, --allow-private-network disables this check for it: agentauth login https://mcp.test/mcp",
    );
    expect(issuer.requests).toEqual([]);

    const allowed = ["login", URL_OF_MCP, ...LOGIN_FLAGS.slice(1), "--allow-private-network"];
    expect(await run(allowed)).toMatchObject({ code: 0 });
    expect((await run(["token", URL_OF_MCP])).stdout).toBe("access-as-1\n");
    expect((await run(["token", URL_OF_MCP, "--force-refresh"])).stdout).toBe("access-as-2\n");
    expect((await run(["request", URL_OF_MCP, "--method", "POST", "--data", "{}"])).stdout).toContain('"ok":true');
    expect((await run(["logout", URL_OF_MCP])).stderr).toContain("logged out of https://mcp.test/mcp\n");
    expect((await run(["token", URL_OF_MCP, ...LOGIN_FLAGS])).code).toBe(3);
    expect(new Set(tunnels)).toEqual(new Set(["mcp.test:443"]));
  });

  it("is refused in discover too, at the step that names it", async ({ startElsewhere }) => {
    const { run } = await startElsewhere("https://10.0.0.7/pool");
    const { code, stdout, stderr } = await run(["discover", URL_OF_MCP]);
    expect(code).toBe(3);
    expect(stdout).toMatch(/^- resource metadata: GET \S+: .*"https:\/\/10\.0\.0\.7\/pool".*private network/m);
    expect(stderr).toContain("--allow-private-network");
  });

  it.for(["https://169.254.169.254/pool", "https://0xA9FEA9FE/pool", "https://[fd00:ec2::254]/"])(
    "as %s is refused with every check disabled, and the error names no flag",
    async (issuer, { startElsewhere }) => {
      const { run } = await startElsewhere(issuer);
      const { code, stderr } = await run(["login", URL_OF_MCP, ...LOGIN_FLAGS.slice(1), "--allow-private-network"]);
      expect(code).toBe(3);
      expect(stderr).toContain("where nothing is ever sent");
      expect(stderr).not.toContain("hint:");
    },
  );

  it("gets no request over TLS while certificates are not checked: exit 3, and the reason", async ({
    startElsewhere,
  }) => {
    const { run, tunnels } = await startElsewhere("https://as.test/pool");
    const env = { NODE_TLS_REJECT_UNAUTHORIZED: "0", AGENTAUTH_API_TOKEN: "tok_0123456789abcdef" };
    for (const args of [
      ["token", URL_OF_MCP, ...LOGIN_FLAGS],
      ["discover", URL_OF_MCP],
      ["devices", "list", "--pool", "p", "--base-url", "https://service.test"],
    ]) {
      const { code, stderr } = await run(args, env);
      expect([code, stderr]).toEqual([3, expect.stringContaining("NODE_TLS_REJECT_UNAUTHORIZED is 0")]);
      expect(stderr).toContain("--ca-file");
    }
    expect(tunnels).toEqual([]);
  });
});

describe.skipIf(!openssl)("the proxy of all schemes", () => {
  it("is taken from ALL_PROXY where none is set for a scheme", async ({ startElsewhere }) => {
    const { run, env, requested } = await startElsewhere("https://10.0.0.7/pool");
    const HTTPS_PROXY = "";
    expect((await run(["discover", URL_OF_MCP], { HTTPS_PROXY, ALL_PROXY: env.HTTPS_PROXY })).code).toBe(3);
    expect(requested).toHaveLength(2);
    expect((await run(["discover", URL_OF_MCP], { ALL_PROXY: "socks5://127.0.0.1:9" })).code).toBe(3);
    expect(requested).toHaveLength(4);
  });

  it.for(["socks5://127.0.0.1:1080", "socks4a://me:hunter22@127.0.0.1:1080"])(
    "must not be %s: exit 2, and the reason",
    async (address, { startElsewhere }) => {
      const { run } = await startElsewhere("https://10.0.0.7/pool");
      const { code, stderr } = await run(["discover", URL_OF_MCP], { HTTPS_PROXY: "", all_proxy: address });
      expect([code, stderr]).toEqual([2, expect.stringContaining("is a SOCKS proxy, which is not supported")]);
      expect(stderr).not.toContain("hunter22");
    },
  );
});
