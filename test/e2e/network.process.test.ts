import { readFileSync } from "node:fs";
import type { Server } from "node:http";
import { createServer } from "node:https";
import * as tls from "node:tls";
import { expect, onTestFinished } from "vitest";
import { LIST, LISTED, listening, portOf, proxiedTest, TOKEN } from "../cli/clients/proxied-service.js";
import { hasOpenssl, makeAuthority } from "../helpers/certificates.js";
import { runProcess, temporaryFolder } from "../helpers/cli.js";
import { ON_LINUX } from "../helpers/systems.js";
import { LIST_ENV, startCertificateServer } from "../profile/certificate-server.js";

const openssl = hasOpenssl("the tests of proxies and TLS");

const it = proxiedTest;

// Node reads NODE_EXTRA_CA_CERTS at its start.
const list = (args: readonly string[], env: Record<string, string>) =>
  runProcess([...LIST, ...args], { env: { AGENTAUTH_API_TOKEN: TOKEN, ...env } });

it.skipIf(!openssl)("trusts NODE_EXTRA_CA_CERTS, with a proxy and beside --ca-file", async ({ service }) => {
  const env = { NODE_EXTRA_CA_CERTS: service.ca };
  expect(await list(["--base-url", service.origin], env)).toMatchObject(LISTED);
  expect(await list(["--proxy", service.proxyUrl()], env)).toMatchObject(LISTED);
  expect(await list(["--proxy", service.proxyUrl(), "--ca-file", service.otherCa], env)).toMatchObject(LISTED);
});

const hasCertificates = hasOpenssl("the tests of client certificates");

it.skipIf(!hasCertificates)("the profile's paths of a client certificate hold in every working folder", async () => {
  const at = await startCertificateServer();
  onTestFinished(() => void at.close());
  const env = { AGENTAUTH_HOME: temporaryFolder() };
  const cwd = at.authority.path(".");
  await runProcess(["config", "set", "client_cert", "mine.pem"], { env, cwd });
  await runProcess(["config", "set", "client_key", "mine.key"], { env, cwd });
  expect((await runProcess(at.list, { env: { ...LIST_ENV, ...env } })).code).toBe(0);
  expect(at.callers).toEqual(["the agent"]);
});

const PAGE = JSON.stringify({ status: "success", pagination: {}, summaries: [{ id: "dev_1", type: "device" }] });

/** Whether Node reads the authorities of the system, and from a file that a test can name. */
function canName(): boolean {
  if (!hasOpenssl("the test of the certificate authorities of the system")) return false;
  if ("getCACertificates" in tls && ON_LINUX) return true;
  process.stderr.write("SKIPPED: the test of the certificate authorities of the system needs Node 22.15 on Linux\n");
  return false;
}

it.skipIf(!canName())(
  "trusts an authority of the system with --use-system-ca or the setting, and not without",
  async () => {
    const authority = makeAuthority();
    const { cert, key } = authority.sign({ name: "server", subject: "/CN=server", names: "IP:127.0.0.1" });
    const own = { cert: readFileSync(cert), key: readFileSync(key) };
    const server = await listening(
      createServer(own, (_request, response) =>
        response.writeHead(200, { "content-type": "application/json" }).end(PAGE),
      ) as unknown as Server,
    );
    onTestFinished(() => void server.close());
    const env = {
      AGENTAUTH_HOME: temporaryFolder(),
      AGENTAUTH_API_TOKEN: "tok_0123456789abcdef",
      // Where OpenSSL, and so Node, finds the authorities of a Linux system.
      SSL_CERT_FILE: authority.ca,
      SSL_CERT_DIR: temporaryFolder(),
    };
    const origin = `https://127.0.0.1:${portOf(server)}`;
    const list = ["devices", "list", "--pool", "p", "-o", "id", "--retries", "0", "--base-url", origin];
    const listed = { code: 0, stdout: "dev_1\n" };
    const refused = await runProcess(list, { env });
    expect([refused.code, refused.stderr]).toEqual([
      5,
      expect.stringContaining("--use-system-ca trusts those of this"),
    ]);
    expect(await runProcess([...list, "--use-system-ca"], { env })).toMatchObject(listed);
    // Each list of a named file is in place of Node's own: the system stays trusted beside it.
    const other = makeAuthority("other").ca;
    expect(await runProcess([...list, "--use-system-ca", "--ca-file", other], { env })).toMatchObject(listed);
    expect(await runProcess([...list, "--ca-file", other], { env: { ...env, NODE_USE_SYSTEM_CA: "1" } })).toMatchObject(
      listed,
    );
    expect((await runProcess([...list, "--ca-file", other], { env })).code).toBe(5);
    await runProcess(["config", "set", "use_system_ca", "yes"], { env });
    expect(await runProcess(list, { env })).toMatchObject(listed);
    const doctor = await runProcess(["doctor", "--jq", '.checks[] | select(.name == "connections") | .found'], { env });
    expect(doctor.stdout).toContain("1 of the system (profile default)");
  },
);
