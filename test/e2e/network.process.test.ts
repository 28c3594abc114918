import { expect } from "vitest";
import { LIST, LISTED, proxiedTest, TOKEN } from "../cli/clients/proxied-service.js";
import { hasOpenssl } from "../helpers/certificates.js";
import { runProcess } from "../helpers/cli.js";

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
