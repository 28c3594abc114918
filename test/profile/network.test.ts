import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import * as tls from "node:tls";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { buildSendOptions, proxySettings, readAuthorities, withSource } from "../../src/profile/connection-settings.js";
import { agentNetwork, networkFetch } from "../../src/profile/network.js";
import { quote, Redactor } from "../../src/redact.js";
import { LIST, LISTED, listening, portOf, proxiedTest, TOKEN } from "../cli/clients/proxied-service.js";
import { pendingError } from "../helpers/captured.js";
import { hasOpenssl } from "../helpers/certificates.js";
import { runCli } from "../helpers/cli.js";
import { CLOSED_PORT } from "../helpers/port.js";
import { sendJson, startServer } from "../helpers/server.js";

const openssl = hasOpenssl("the tests of proxies and TLS");

const it = proxiedTest;

const PASSWORD = "s3cret-of-the-proxy";

/** Lists the devices of `https://service.test`, without retries. */
function list(args: readonly string[] = [], env: Record<string, string> = {}) {
  return runCli([...LIST, ...args], { env: { AGENTAUTH_API_TOKEN: TOKEN, ...env } });
}

describe.skipIf(!openssl)("a proxy", () => {
  it("is asked for a tunnel, and sees nothing of what goes through it", async ({ service }) => {
    expect(await list(["--proxy", service.proxyUrl(), "--ca-file", service.ca])).toMatchObject(LISTED);
    expect(service.seen.proxied.map(({ target }) => target)).toEqual(["service.test:443"]);
    expect(JSON.stringify(service.seen.proxied)).not.toContain(TOKEN);
    expect(service.seen.served).toEqual([{ path: "/api/v1/device", token: `Bearer ${TOKEN}` }]);
  });

  it.for(["HTTPS_PROXY", "https_proxy"])("is taken from %s", async (name, { service }) => {
    expect(await list(["--ca-file", service.ca], { [name]: service.proxyUrl() })).toMatchObject(LISTED);
    expect(service.seen.proxied).toHaveLength(1);
  });

  it("is named by the flag before the environment, also without http://", async ({ service }) => {
    const args = ["--proxy", service.proxyUrl().replace("http://", ""), "--ca-file", service.ca];
    expect(await list(args, { HTTPS_PROXY: "http://127.0.0.1:9" })).toMatchObject(LISTED);
  });

  it.for(["service.test", ".test", "other.example, service.test", "*"])(
    "is passed by for what NO_PROXY=%s names",
    async (names, { service }) => {
      const { code, stderr } = await list(["--ca-file", service.ca], {
        HTTPS_PROXY: service.proxyUrl(),
        NO_PROXY: names,
      });
      expect([code, service.seen.proxied]).toEqual([5, []]);
      expect(stderr).toContain("service.test: the host name could not be resolved");
    },
  );

  it("gets its user and password", async ({ service }) => {
    expect(await list(["--ca-file", service.ca], { HTTPS_PROXY: service.proxyUrl(`me:${PASSWORD}@`) })).toMatchObject(
      LISTED,
    );
    const basic = Buffer.from(`me:${PASSWORD}`).toString("base64");
    expect(service.seen.proxied[0]?.headers["proxy-authorization"]).toBe(`Basic ${basic}`);
  });

  it.for<[string, RegExp]>([
    ["407 Proxy Authentication Required", /requires a user name and password/],
    ["403 Forbidden", /refused the connection \(HTTP 403\)/],
  ])("that answers %s: exit 5, the proxy is named, its password is not", async ([answer, words], { service }) => {
    service.seen.refusal = answer;
    for (const flags of [[], ["-v"], ["--debug"], ["-o", "json"]]) {
      const { code, stdout, stderr } = await list(["--ca-file", service.ca, ...flags], {
        HTTPS_PROXY: service.proxyUrl(`me:${PASSWORD}@`),
      });
      expect({ code, stdout }).toEqual({ code: 5, stdout: "" });
      expect(stderr).toMatch(words);
      expect(stderr).toContain(`service.test: the proxy ${service.proxyHost} `);
      expect(stderr).not.toContain(PASSWORD);
      expect(stderr).not.toContain(Buffer.from(`me:${PASSWORD}`).toString("base64"));
    }
    expect(service.seen.served).toEqual([]);
  });

  it("that is not there: exit 5, and it is the proxy that is named", async () => {
    const url = `http://me:${PASSWORD}@127.0.0.1:${CLOSED_PORT}`;
    const { code, stderr } = await list(["--debug"], { HTTPS_PROXY: url });
    expect(code).toBe(5);
    expect(stderr).toMatch(
      /error: service\.test: the proxy 127\.0\.0\.1:\d+ cannot be reached \(ECONNREFUSED\)\nhint: check (?:--proxy|HTTPS_PROXY)/,
    );
    expect(stderr).not.toContain(PASSWORD);
  });

  it("with an address that is none does not show its password either", async () => {
    const { code, stderr } = await list([], { HTTPS_PROXY: `socks5://me:${PASSWORD}@127.0.0.1:1` });
    expect([code, stderr.includes(PASSWORD)]).toEqual([2, false]);
    const broken = await list([], { HTTPS_PROXY: `http://me:${PASSWORD}@[` });
    expect([broken.code, broken.stderr]).toEqual([2, expect.stringContaining("is not an http:// or https:// address")]);
  });

  it("of the environment is never used for this machine; one that is named is", async ({ service }) => {
    const local = await listening(createServer(service.serve));
    try {
      for (const host of ["127.0.0.1", "localhost"]) {
        const args = ["--base-url", `http://${host}:${portOf(local)}`];
        expect(await list(args, { HTTP_PROXY: service.proxyUrl() })).toMatchObject(LISTED);
      }
      expect([service.seen.proxied, service.seen.served.length]).toEqual([[], 2]);
      await list(["--base-url", `http://127.0.0.1:${portOf(local)}`, "--proxy", service.proxyUrl()]);
      expect(service.seen.proxied.map(({ target }) => target)).toContain(`127.0.0.1:${portOf(local)}`);
    } finally {
      local.close();
    }
  });
});

describe.skipIf(!openssl)("TLS", () => {
  it("with an unknown authority: exit 5, and the token stays here", async ({ service }) => {
    const { code, stdout, stderr } = await list(["--proxy", service.proxyUrl()]);
    expect({ code, stdout }).toEqual({ code: 5, stdout: "" });
    expect(stderr).toMatch(
      /^error: service\.test: TLS failed \(UNABLE_TO_VERIFY_LEAF_SIGNATURE: .*\nhint: --ca-file <file> trusts .*\n$/,
    );
    expect([service.seen.served, service.seen.proxied.length]).toEqual([[], 1]);
  });

  it("with a certificate for another name: exit 5", async ({ service }) => {
    const { code, stderr } = await list([
      "--proxy",
      service.proxyUrl(),
      "--ca-file",
      service.ca,
      "--base-url",
      "https://other.test",
    ]);
    expect([code, stderr]).toEqual([
      5,
      expect.stringMatching(/^error: other\.test: TLS failed \(ERR_TLS_CERT_ALTNAME_INVALID/),
    ]);
    expect(service.seen.served).toEqual([]);
  });

  it("trusts --ca-file without a proxy too", async ({ service }) => {
    const url = ["--base-url", service.origin];
    expect((await list(url)).code).toBe(5);
    expect(await list([...url, "--ca-file", service.ca])).toMatchObject(LISTED);
  });

  it("has its password masked in what a server says, as it was written and decoded", async () => {
    const message = `${PASSWORD}%21 and ${PASSWORD}! are`;
    const { origin } = await startServer((response) => sendJson(response, { code: "bad_request", message }, 400));
    const env = { AGENTAUTH_BASE_URL: origin, HTTPS_PROXY: `http://me:${PASSWORD}%21@127.0.0.1:${CLOSED_PORT}` };
    const { code, stderr } = await runCli(["devices", "list", "--pool", "p"], {
      env: { AGENTAUTH_API_TOKEN: TOKEN, ...env },
    });
    expect([code, stderr]).toEqual([6, expect.stringMatching(/\S+ and \S+ are/)]);
    expect(stderr).not.toContain(PASSWORD);
  });

  it("trusts NODE_EXTRA_CA_CERTS beside --ca-file, and a file of it that is absent is no error", async ({
    service,
  }) => {
    const flags = ["--proxy", service.proxyUrl(), "--ca-file"];
    expect(await list([...flags, service.otherCa], { NODE_EXTRA_CA_CERTS: service.ca })).toMatchObject(LISTED);
    expect(await list([...flags, service.ca], { NODE_EXTRA_CA_CERTS: "/nowhere.pem" })).toMatchObject(LISTED);
  });

  it("shows no password of a proxy that has a % which encodes nothing", async ({ service }) => {
    const { stdout, stderr } = await list(["--debug"], { HTTPS_PROXY: service.proxyUrl("me:a%zzb-planted@") });
    expect([stdout, stderr.includes("planted")]).toEqual(["", false]);
  });
});

describe("the proxies", () => {
  const from = (value: string, source: string) => ({ value, source });

  it.each<[string, Record<string, string>, string | undefined, object]>([
    ["none", {}, undefined, { https: undefined, http: undefined, except: undefined }],
    [
      "each for its scheme",
      { HTTPS_PROXY: "a", HTTP_PROXY: "b", NO_PROXY: "c", ALL_PROXY: "d" },
      undefined,
      { https: from("a", "HTTPS_PROXY"), http: from("b", "HTTP_PROXY"), except: from("c", "NO_PROXY") },
    ],
    [
      "those in small letters first, unless they are empty",
      { https_proxy: "a", HTTPS_PROXY: "A", http_proxy: "", HTTP_PROXY: "B", no_proxy: "c" },
      undefined,
      { https: from("a", "https_proxy"), http: from("B", "HTTP_PROXY"), except: from("c", "no_proxy") },
    ],
    [
      "that for all schemes where none is named for one",
      { ALL_PROXY: "d" },
      undefined,
      { https: from("d", "ALL_PROXY"), http: undefined, except: undefined },
    ],
    [
      "that of http alone, without that for all",
      { HTTP_PROXY: "b", all_proxy: "d" },
      undefined,
      { https: undefined, http: from("b", "HTTP_PROXY"), except: undefined },
    ],
    [
      "the one that is named, for both",
      { HTTPS_PROXY: "a", NO_PROXY: "c" },
      "e",
      { https: from("e", "--proxy"), http: from("e", "--proxy"), except: from("c", "NO_PROXY") },
    ],
    [
      "those of the environment where the one that is named is empty",
      { HTTPS_PROXY: "a" },
      "",
      { https: from("a", "HTTPS_PROXY"), http: undefined, except: undefined },
    ],
  ])("are %s", (_what, env, named, expected) => {
    expect(proxySettings(withSource(named, "--proxy"), env)).toEqual(expected);
  });

  const outlet = (source: string, value: string) =>
    buildSendOptions({ proxy: { value, source }, caFile: undefined, env: { NO_PROXY: "b" } }, new Redactor());

  it("are addresses, with or without a scheme", () => {
    for (const value of ["proxy.example:3128", "http://proxy.example:3128"])
      expect(outlet("--proxy", value)).toMatchObject({
        proxies: { https: "http://proxy.example:3128/", http: "http://proxy.example:3128/" },
        noProxy: "b",
      });
    expect(outlet("--proxy", "https://proxy.example")).toMatchObject({ proxies: { https: "https://proxy.example/" } });
  });

  it.each([
    ["--proxy", "ftp://a", "is not an http:// or https:// address", "correct or unset --proxy, such as --proxy "],
    [
      "HTTPS_PROXY",
      "ftp://a",
      "is not an http:// or https:// address",
      "correct or unset HTTPS_PROXY, such as HTTPS_PROXY=",
    ],
    [
      "the option proxy",
      "http://[",
      "is not an http:// or https:// address",
      "correct or unset the option proxy, such as ",
    ],
  ])("from %s are refused as %s, with a right one", (source, value, rule, hint) => {
    expect(() => outlet(source, value)).toThrow(
      expect.objectContaining({
        code: "usage",
        class: "usage",
        message: `${source} "${value}" ${rule}`,
        hint: `${hint}http://proxy.example:3128`,
      }),
    );
  });

  it("of SOCKS are refused with what can be used", () => {
    expect(() => outlet("HTTPS_PROXY", "socks5://127.0.0.1:1")).toThrow(
      expect.objectContaining({
        message:
          'HTTPS_PROXY "socks5://127.0.0.1:1" is a SOCKS proxy, which is not supported: it must be an http:// or https:// address',
        hint: "name an HTTP proxy with --proxy or HTTPS_PROXY, or unset it",
      }),
    );
    expect(() => outlet("HTTPS_PROXY", "x-socks5://127.0.0.1:1")).toThrow("is not an http");
  });

  it("on the command line must not have a password", () => {
    for (const scheme of ["http", "socks5"])
      expect(() => outlet("--proxy", `${scheme}://me:pw@proxy.example`)).toThrow(
        expect.objectContaining({
          code: "usage",
          class: "usage",
          message:
            "--proxy: a password must not be on the command line, where other programs can read it and the shell stores it",
          hint: "give the whole address in the variable HTTPS_PROXY; and change the password that was typed here",
        }),
      );
    expect(() => outlet("--proxy", "http://me@proxy.example")).not.toThrow();
  });
});

describe("the authorities", () => {
  const PEM = "test/fixtures/self-signed.pem";
  const withTls = (tls: object) => {
    const builtin = vi.spyOn(process, "getBuiltinModule").mockReturnValue(tls as never);
    onTestFinished(() => void builtin.mockRestore());
  };
  const caOf = (env: Record<string, string>, systemCa?: string) =>
    buildSendOptions(
      {
        proxy: undefined,
        caFile: { value: PEM, source: "the option caFile" },
        systemCa: withSource(systemCa, "x"),
        env,
      },
      new Redactor(),
    ).ca;
  const own = readFileSync(PEM, "utf8");

  it("are those of Node, of its variable, of the system where they are wanted, and of the file", () => {
    withTls({ rootCertificates: ["r"], getCACertificates: (type: string) => [type] });
    expect(caOf({})).toEqual(["default", own]);
    expect(caOf({ NODE_EXTRA_CA_CERTS: PEM }, "yes")).toEqual(["default", own, "system", own]);
  });

  it("are the built-in ones of a Node that lists no others", () => {
    withTls({ rootCertificates: ["r"] });
    expect(caOf({ NODE_EXTRA_CA_CERTS: "/nowhere.pem" })).toEqual(["r", own]);
  });

  it("of the system are refused with a Node that cannot read them", () => {
    withTls({ rootCertificates: ["r"] });
    expect(() => caOf({}, "yes")).toThrow(
      expect.objectContaining({
        code: "usage",
        class: "usage",
        message: `x: Node ${process.versions.node} cannot read the certificate authorities of the system; that needs Node 22.15 or later, or 24`,
        hint: "use such a Node, or name a file with your authorities (PEM) in NODE_EXTRA_CA_CERTS or with --ca-file <file>",
      }),
    );
  });

  it.each([
    ["--ca-file", "name a file with the certificates of your authorities, in PEM form: --ca-file <file>"],
    ["the option caFile", "name a file with the certificates of your authorities, in PEM form"],
  ])("of %s are read from a file that has some", (source, hint) => {
    expect(readAuthorities({ value: PEM, source })).toBe(own);
    for (const [value, why] of [
      ["/nowhere.pem", "cannot be read"],
      [fileURLToPath(import.meta.url), "contains no PEM certificate"],
    ] as const)
      expect(() => readAuthorities({ value, source })).toThrow(
        expect.objectContaining({ code: "usage", class: "usage", message: `${source} ${quote(value)} ${why}`, hint }),
      );
  });
});

describe("a network that accepts every certificate", () => {
  const env = { NODE_TLS_REJECT_UNAUTHORIZED: "0" };
  const options = { proxy: undefined, caFile: undefined, env };
  const refused = {
    code: "tls_failed",
    class: "refused",
    message:
      "NODE_TLS_REJECT_UNAUTHORIZED is 0: any server could impersonate x.example and read the tokens, so nothing was sent",
    hint: "unset it; --ca-file <file> trusts a certificate authority of your own",
  };

  it("sends nothing over TLS, and the rest as ever", async () => {
    const { origin } = await startServer((response) => void response.end("hello"));
    const agent = agentNetwork(options, new Redactor()).connectTo(new URL(origin), new Set()).fetch;
    for (const fetch of [networkFetch(options, new Redactor()), agent]) {
      expect(await pendingError(fetch("https://x.example/a"))).toMatchObject(refused);
      expect(await pendingError(fetch(new Request("https://x.example/a")))).toMatchObject(refused);
      expect(await (await fetch(origin)).text()).toBe("hello");
    }
  });
});

it("keeps what a request authenticates with from being shown by what follows, whatever a server makes of it", async () => {
  const { origin } = await startServer((response) => void response.end("hello"));
  const redactor = new Redactor();
  const network = await agentNetwork({ proxy: undefined, caFile: undefined, env: {} }, redactor);
  const { fetch } = network.connectTo(new URL(origin), new Set());
  expect(redactor.redactKnown("it was opaque-token-1")).toContain("opaque-token-1");
  await fetch(origin, { headers: { authorization: "Bearer opaque-token-1" } });
  await fetch(new Request(origin, { headers: { authorization: "DPoP opaque-token-2" } }));
  const said = redactor.redactKnown("it was opaque-token-1, then opaque-token-2");
  expect(said).toBe("it was ********, then ********");
});

const canRead = "getCACertificates" in tls;
const PEM = "test/fixtures/self-signed.pem";

const caOf = (options: { file?: string; system?: string }) =>
  buildSendOptions(
    {
      proxy: undefined,
      caFile: options.file === undefined ? undefined : { value: options.file, source: "--ca-file" },
      systemCa: options.system === undefined ? undefined : { value: options.system, source: "--use-system-ca" },
      env: {},
    },
    new Redactor(),
  ).ca;

test.skipIf(!canRead)("adds the authorities of the system to those that Node trusts, and to those of --ca-file", () => {
  const read = (tls as unknown as { getCACertificates: (type: string) => string[] }).getCACertificates;
  const [own, system] = [read("default"), read("system")];
  expect(caOf({ system: "yes" })).toEqual([...own, ...system]);
  expect(caOf({ system: "yes", file: PEM })).toEqual([...own, ...system, readFileSync(PEM, "utf8")]);
});

test("trusts what Node trusts without the flag, and with the setting no", () => {
  expect(caOf({})).toBeUndefined();
  expect(caOf({ system: "no" })).toBeUndefined();
  expect(caOf({ system: "no", file: PEM })?.at(-1)).toBe(readFileSync(PEM, "utf8"));
});
