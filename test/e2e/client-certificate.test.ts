import { chmodSync, copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import type { PeerCertificate, TLSSocket } from "node:tls";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { hasOpenssl, makeAuthority } from "../helpers/certificates.js";
import { runCli, temporaryFolder } from "../helpers/cli.js";

const openssl = hasOpenssl("the tests of client certificates");

let authority: ReturnType<typeof makeAuthority>;
let mine: { cert: string; key: string };
let stranger: { cert: string; key: string };
/** Who was there, by the certificate, for each request. */
let callers: (string | undefined)[] = [];
let server: Server;

const PAGE = JSON.stringify({ status: "success", pagination: {}, summaries: [{ id: "dev_1", type: "device" }] });

beforeAll(async () => {
  if (!openssl) return;
  authority = makeAuthority();
  mine = authority.sign({ name: "mine", subject: "/CN=the agent" });
  stranger = makeAuthority("other").sign({ name: "stranger", subject: "/CN=a stranger" });
  for (const { key } of [mine, stranger]) chmodSync(key, 0o600);
  const { cert, key } = authority.sign({ name: "server", subject: "/CN=server", names: "IP:127.0.0.1" });
  const own = { cert: readFileSync(cert), key: readFileSync(key), ca: readFileSync(authority.ca) };
  server = createServer({ ...own, requestCert: true, rejectUnauthorized: true }, (request, response) => {
    const peer = (request.socket as TLSSocket).getPeerCertificate() as PeerCertificate | undefined;
    callers.push(peer?.subject.CN as string | undefined);
    if (request.url?.startsWith("/mcp")) response.writeHead(401, { "www-authenticate": "Bearer" }).end();
    else response.writeHead(200, { "content-type": "application/json" }).end(PAGE);
  });
  server.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
});
beforeEach(() => {
  callers = [];
});
afterAll(() => server?.close());

const origin = () => `https://127.0.0.1:${(server.address() as AddressInfo).port}`;

function list(args: readonly string[] = [], env: Record<string, string> = {}) {
  const fixed = ["devices", "list", "--pool", "p", "-o", "id", "--retries", "0", "--base-url", origin()];
  const trusted = ["--ca-file", authority.ca];
  return runCli([...fixed, ...trusted, ...args], { env: { AGENTAUTH_API_TOKEN: "tok_0123456789abcdef", ...env } });
}

describe.skipIf(!openssl)("a server that asks for a client certificate", () => {
  it("gets the one that is named, and its key stays here", async () => {
    const { code, stdout, stderr } = await list(["--client-cert", mine.cert, "--client-key", mine.key, "--debug"]);
    expect([code, stdout, callers]).toEqual([0, "dev_1\n", ["the agent"]]);
    expect(stderr).not.toContain("PRIVATE KEY");
  });

  it("gets it from one file that has both", async () => {
    const both = authority.path("both.pem");
    writeFileSync(both, readFileSync(mine.cert, "utf8") + readFileSync(mine.key, "utf8"), { mode: 0o600 });
    expect((await list(["--client-cert", both])).code).toBe(0);
    expect(callers).toEqual(["the agent"]);
  });

  it("gets it from the profile, whose paths hold in every folder", async () => {
    const home = temporaryFolder();
    const env = { AGENTAUTH_HOME: home };
    const cwd = authority.path(".");
    await runCli(["config", "set", "client_cert", "mine.pem"], { env, cwd });
    await runCli(["config", "set", "client_key", "mine.key"], { env, cwd });
    expect((await list([], env)).code).toBe(0);
    expect(callers).toEqual(["the agent"]);
  });

  it("is shown a flag's certificate with its own key, never with the profile's", async () => {
    const env = { AGENTAUTH_HOME: temporaryFolder() };
    await runCli(["config", "set", "client_cert", stranger.cert], { env });
    await runCli(["config", "set", "client_key", stranger.key], { env });
    const { code, stderr } = await list(["--client-cert", mine.cert], env);
    expect([code, stderr]).toEqual([2, expect.stringContaining("holds a certificate, and no private key")]);
  });

  it("gets it from the requests for tokens too", async () => {
    const discover = ["discover", `${origin()}/mcp`, "--ca-file", authority.ca, "--retries", "0"];
    const without = await runCli(discover);
    expect([without.code, callers]).toEqual([5, []]);
    expect(without.stderr).toContain("requires a client certificate");
    await runCli([...discover, "--client-cert", mine.cert, "--client-key", mine.key]);
    expect(callers[0]).toBe("the agent");
    expect(new Set(callers).size).toBe(1);
  });

  it("and gets none: exit 5, with the flag that helps", async () => {
    const { code, stdout, stderr } = await list();
    expect([code, stdout, callers]).toEqual([5, "", []]);
    expect(stderr).toMatch(/^error: 127\.0\.0\.1:\d+: .* requires a client certificate does \(ERR_SSL_\w*ALERT/);
    expect(stderr).toContain("\nhint: --client-cert <file> gives a client certificate");
  });

  it("and gets one that it does not take: exit 5, and the token stays here", async () => {
    const { code, stdout } = await list(["--client-cert", stranger.cert, "--client-key", stranger.key]);
    expect([code, stdout, callers]).toEqual([5, "", []]);
  });
});

describe.skipIf(!openssl)("a client certificate that cannot be used is refused before anything is sent", () => {
  const refused = async (args: readonly string[]) => {
    const { code, stdout, stderr } = await list(args);
    expect([stdout, callers]).toEqual(["", []]);
    return { code, stderr };
  };

  it("where others can read its key, with the command that helps", async () => {
    const open = authority.path("open.key");
    copyFileSync(mine.key, open);
    chmodSync(open, 0o640);
    const { code, stderr } = await refused(["--client-cert", mine.cert, "--client-key", open]);
    expect([code, stderr]).toEqual([8, expect.stringContaining(`hint: chmod 600 ${open}`)]);
  });

  it("where its key is encrypted, with the command that makes a plain one", async () => {
    authority.openssl("pkey", "-in", "mine.key", "-aes256", "-passout", "pass:secret", "-out", "sealed.key");
    const sealed = authority.path("sealed.key");
    chmodSync(sealed, 0o600);
    const { code, stderr } = await refused(["--client-cert", mine.cert, "--client-key", sealed]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("is encrypted")]);
    expect(stderr).toContain(`hint: (umask 077; openssl pkey -in ${sealed} -out ${sealed}.plain)`);
  });

  it.each<[string, () => string[], RegExp]>([
    [
      "the key is another's",
      () => ["--client-cert", mine.cert, "--client-key", stranger.key],
      /is not that of the certi/,
    ],
    ["there is a key alone", () => ["--client-key", mine.key], /and no client certificate/],
    ["there is no such file", () => ["--client-cert", "/nowhere.pem", "--client-key", mine.key], /cannot be read/],
    ["there is no such key", () => ["--client-cert", mine.cert, "--client-key", "/nowhere.key"], /is not there/],
    ["it is none", () => ["--client-cert", mine.key, "--client-key", mine.key], /holds no PEM certificate/],
    ["the key is none", () => ["--client-cert", mine.cert, "--client-key", privateCopy()], /holds no private key/],
  ])("where %s", async (_what, args, words) => {
    const { code, stderr } = await refused(args());
    expect([code, stderr]).toEqual([2, expect.stringMatching(words)]);
    expect(stderr).toContain("\nhint: ");
  });

  function privateCopy(): string {
    const copy = authority.path("copy.pem");
    copyFileSync(mine.cert, copy);
    chmodSync(copy, 0o600);
    return copy;
  }
});
