import { chmodSync, copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { relative } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { readClientCertificate } from "../../src/profile/connection-settings.js";
import { hasOpenssl } from "../helpers/certificates.js";
import { runCli, temporaryFolder } from "../helpers/cli.js";
import { type CertificateServer, LIST_ENV, startCertificateServer } from "./certificate-server.js";

const openssl = hasOpenssl("the tests of client certificates");

let at: CertificateServer;
beforeAll(async () => {
  if (openssl) at = await startCertificateServer();
});
beforeEach(() => {
  if (openssl) at.callers.length = 0;
});
afterAll(() => at?.close());

const REQUIRES_CERTIFICATE =
  /^error: 127\.0\.0\.1:\d+: TLS failed \(ERR_SSL_\w*ALERT.*\nhint: --client-cert <file> gives a client certificate/;
const list = (args: readonly string[] = [], env: Record<string, string> = {}) =>
  runCli([...at.list, ...args], { env: { ...LIST_ENV, ...env } });

describe.skipIf(!openssl)("a server that asks for a client certificate", () => {
  it("gets the one that is named, and its key stays here", async () => {
    const { code, stdout, stderr } = await list([
      "--client-cert",
      at.mine.cert,
      "--client-key",
      at.mine.key,
      "--debug",
    ]);
    expect([code, stdout, at.callers]).toEqual([0, "dev_1\n", ["the agent"]]);
    expect(stderr).not.toContain("PRIVATE KEY");
  });

  it("gets it with a key that a variable has", async () => {
    const env = { AGENTAUTH_HOME: temporaryFolder(), MY_KEY: readFileSync(at.mine.key, "utf8") };
    expect((await list(["--client-cert", at.mine.cert, "--client-key", "env:MY_KEY"], env)).code).toBe(0);
    await runCli(["config", "set", "client_cert", at.mine.cert], { env });
    await runCli(["config", "set", "client_key", "env:MY_KEY"], { env });
    expect([(await list([], env)).code, at.callers]).toEqual([0, ["the agent", "the agent"]]);
  });

  it("gets it from one file that has both", async () => {
    const both = at.authority.path("both.pem");
    writeFileSync(both, readFileSync(at.mine.cert, "utf8") + readFileSync(at.mine.key, "utf8"), { mode: 0o600 });
    expect((await list(["--client-cert", both])).code).toBe(0);
    expect(at.callers).toEqual(["the agent"]);
  });

  it("gets it from the profile, whose paths hold in every folder", async () => {
    const env = { AGENTAUTH_HOME: temporaryFolder() };
    const { cert, key } = at.mine;
    await runCli(["config", "set", "client_cert", relative(process.cwd(), cert)], { env });
    await runCli(["config", "set", "client_key", relative(process.cwd(), key)], { env });
    const { stdout } = await runCli(["config", "get", "client_cert"], { env });
    expect([stdout, (await list([], env)).code, at.callers]).toEqual([`${cert}\n`, 0, ["the agent"]]);
  });

  it("is shown a flag's certificate with its own key, never with the profile's", async () => {
    const env = { AGENTAUTH_HOME: temporaryFolder() };
    await runCli(["config", "set", "client_cert", at.stranger.cert], { env });
    await runCli(["config", "set", "client_key", at.stranger.key], { env });
    const { code, stderr } = await list(["--client-cert", at.mine.cert], env);
    expect([code, stderr]).toEqual([2, expect.stringContaining("holds a certificate, and no private key")]);
  });

  it("gets it from the requests for tokens too", async () => {
    const discover = ["discover", `${at.origin}/mcp`, "--ca-file", at.authority.ca, "--retries", "0"];
    const without = await runCli(discover);
    expect([without.code, at.callers]).toEqual([5, []]);
    expect(without.stderr).toMatch(REQUIRES_CERTIFICATE);
    await runCli([...discover, "--client-cert", at.mine.cert, "--client-key", at.mine.key]);
    expect(at.callers[0]).toBe("the agent");
    expect(new Set(at.callers).size).toBe(1);
  });

  it("and gets none: exit 5, with the flag that helps", async () => {
    const { code, stdout, stderr } = await list();
    expect([code, stdout, at.callers]).toEqual([5, "", []]);
    expect(stderr).toMatch(REQUIRES_CERTIFICATE);
  });

  it("and gets one that it does not take: exit 5, and the token stays here", async () => {
    const { code, stdout } = await list(["--client-cert", at.stranger.cert, "--client-key", at.stranger.key]);
    expect([code, stdout, at.callers]).toEqual([5, "", []]);
  });
});

describe.skipIf(!openssl)("a client certificate that cannot be used is refused before anything is sent", () => {
  const refused = async (args: readonly string[]) => {
    const { code, stdout, stderr } = await list(args);
    expect([stdout, at.callers]).toEqual(["", []]);
    return { code, stderr };
  };

  it("where others can read its key, with the command that helps", async () => {
    const open = at.authority.path("open.key");
    copyFileSync(at.mine.key, open);
    chmodSync(open, 0o640);
    const { code, stderr } = await refused(["--client-cert", at.mine.cert, "--client-key", open]);
    expect([code, stderr]).toEqual([8, expect.stringContaining(`hint: chmod 600 ${open}`)]);
  });

  it("where its key is encrypted, with the command that makes a plain one", async () => {
    at.authority.openssl("pkey", "-in", "mine.key", "-aes256", "-passout", "pass:secret", "-out", "sealed.key");
    const sealed = at.authority.path("sealed.key");
    chmodSync(sealed, 0o600);
    const { code, stderr } = await refused(["--client-cert", at.mine.cert, "--client-key", sealed]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("is encrypted")]);
    expect(stderr).toContain(`hint: (umask 077; openssl pkey -in ${sealed} -out ${sealed}.plain)`);
  });

  const CERTIFICATE = "name a certificate that was issued to you, in PEM form: --client-cert <file>";
  const KEY = "name the file of its key: --client-key <file>, or agentauth config set client_key <file>";

  it.each<[string, () => string[], () => string, string]>([
    [
      "the key is another's",
      () => ["--client-cert", at.mine.cert, "--client-key", at.stranger.key],
      () =>
        `the key in --client-key "${at.stranger.key}" is not that of the certificate in --client-cert "${at.mine.cert}"`,
      "name the certificate and the key that were made together",
    ],
    [
      "there is a key alone",
      () => ["--client-key", at.mine.key],
      () => `a private key is named (--client-key "${at.mine.key}"), and no client certificate`,
      "name its certificate with --client-cert <file>, or agentauth config set client_cert <file>",
    ],
    [
      "there is no such file",
      () => ["--client-cert", "/nowhere.pem", "--client-key", at.mine.key],
      () => '--client-cert "/nowhere.pem" cannot be read',
      CERTIFICATE,
    ],
    [
      "there is no such key",
      () => ["--client-cert", at.mine.cert, "--client-key", "/nowhere.key"],
      () => '--client-key "/nowhere.key" is not there',
      KEY,
    ],
    [
      "it is none",
      () => ["--client-cert", at.mine.key, "--client-key", at.mine.key],
      () => `--client-cert "${at.mine.key}" contains no PEM certificate`,
      CERTIFICATE,
    ],
    [
      "it has no key",
      () => ["--client-cert", at.mine.cert],
      () => `--client-cert "${at.mine.cert}" holds a certificate, and no private key`,
      KEY,
    ],
    [
      "the key is none",
      () => ["--client-cert", at.mine.cert, "--client-key", privateCopy()],
      () => `--client-key "${at.authority.path("copy.pem")}" contains no private key in PEM form`,
      KEY,
    ],
  ])("where %s", async (_what, args, message, hint) => {
    const { code, stderr } = await refused(args());
    expect([code, stderr]).toEqual([2, `error: ${message()}\nhint: ${hint}\n`]);
  });

  it.each(["-----BEGIN ENCRYPTED PRIVATE KEY-----\n", "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n"])(
    "where its key is encrypted, as the profile that names it has it: %j",
    (text) => {
      const sealed = at.authority.path("sealed of a profile.key");
      writeFileSync(sealed, text, { mode: 0o600 });
      const from = (value: string) => ({ value, source: "profile default" });
      expect(() => readClientCertificate({ cert: from(at.mine.cert), key: from(sealed) }, {})).toThrow(
        expect.objectContaining({
          code: "usage",
          message: `the private key in "${sealed}" (profile default) is encrypted, and password prompts are not supported`,
          hint: expect.stringMatching(/openssl pkey -in .*, and name \S* ?.*\.plain'? as the key$/),
        }),
      );
    },
  );

  function privateCopy(): string {
    const copy = at.authority.path("copy.pem");
    copyFileSync(at.mine.cert, copy);
    chmodSync(copy, 0o600);
    return copy;
  }
});
