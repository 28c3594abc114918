import { expect, it, onTestFinished } from "vitest";
import { hasOpenssl } from "../helpers/certificates.js";
import { runProcess, temporaryFolder } from "../helpers/cli.js";
import { LIST_ENV, startCertificateServer } from "../profile/certificate-server.js";

const openssl = hasOpenssl("the tests of client certificates");

it.skipIf(!openssl)("the profile's paths of a client certificate hold in every working folder", async () => {
  const at = await startCertificateServer();
  onTestFinished(() => void at.close());
  const env = { AGENTAUTH_HOME: temporaryFolder() };
  const cwd = at.authority.path(".");
  await runProcess(["config", "set", "client_cert", "mine.pem"], { env, cwd });
  await runProcess(["config", "set", "client_key", "mine.key"], { env, cwd });
  expect((await runProcess(at.list, { env: { ...LIST_ENV, ...env } })).code).toBe(0);
  expect(at.callers).toEqual(["the agent"]);
});
