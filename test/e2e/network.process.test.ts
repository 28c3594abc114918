import { afterAll, beforeAll, expect, it } from "vitest";
import { LIST, LISTED, type ProxiedService, startProxiedService, TOKEN } from "../cli/clients/proxied-service.js";
import { hasOpenssl } from "../helpers/certificates.js";
import { runProcess } from "../helpers/cli.js";

const openssl = hasOpenssl("the tests of proxies and TLS");

let at: ProxiedService;
beforeAll(async () => {
  if (openssl) at = await startProxiedService();
});
afterAll(() => at?.close());

// Node reads NODE_EXTRA_CA_CERTS at its start.
const list = (args: readonly string[], env: Record<string, string>) =>
  runProcess([...LIST, ...args], { env: { AGENTAUTH_API_TOKEN: TOKEN, ...env } });

it.skipIf(!openssl)("trusts NODE_EXTRA_CA_CERTS, with a proxy and beside --ca-file", async () => {
  const env = { NODE_EXTRA_CA_CERTS: at.ca };
  expect(await list(["--base-url", at.origin], env)).toMatchObject(LISTED);
  expect(await list(["--proxy", at.proxyUrl()], env)).toMatchObject(LISTED);
  expect(await list(["--proxy", at.proxyUrl(), "--ca-file", at.strangerCa], env)).toMatchObject(LISTED);
});
