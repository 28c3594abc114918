import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { createAgentClient, createManagementClient } from "../../src/node/index.js";
import { hasOpenssl } from "../helpers/certificates.js";
import { temporaryFolder } from "../helpers/folder.js";
import { rejection } from "../helpers/service.js";
import { type ProxiedService, startProxiedService, TOKEN } from "./clients/proxied-service.js";

const openssl = hasOpenssl("the tests of authorities and proxies of the clients");
const PROXIES = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"];

let at: ProxiedService;
beforeAll(async () => {
  if (openssl) at = await startProxiedService();
});
beforeEach(() => {
  at?.reset();
  const names = Object.keys(process.env).filter((name) => name.startsWith("AGENTAUTH_"));
  for (const name of [...names, ...PROXIES, ...PROXIES.map((one) => one.toLowerCase())]) vi.stubEnv(name, undefined);
  vi.stubEnv("AGENTAUTH_HOME", temporaryFolder());
  onTestFinished(() => void vi.unstubAllEnvs());
});
afterAll(() => at?.close());

/** A management client of the service behind the proxy. */
const management = (options: Parameters<typeof createManagementClient>[0] = {}) =>
  createManagementClient({ baseUrl: "https://service.test", token: TOKEN, maxRetries: 0, ...options });

const firstDevice = (options?: Parameters<typeof createManagementClient>[0]) =>
  management(options).devices.list({ pool_id: "p" }).first();

describe.skipIf(!openssl)("createManagementClient", () => {
  it("trusts the authorities of caFile, and sends through proxy", async () => {
    expect(await firstDevice({ caFile: at.ca, proxy: at.proxyUrl() })).toMatchObject({ id: "dev_1" });
    expect(at.seen.proxied.map(({ target }) => target)).toEqual(["service.test:443"]);
    expect(at.seen.served).toEqual([{ path: "/api/v1/device", token: `Bearer ${TOKEN}` }]);
  });

  it("sends nothing to a server whose authority is not named", async () => {
    for (const caFile of [undefined, at.strangerCa]) {
      expect(await rejection(firstDevice({ caFile, proxy: at.proxyUrl() }))).toMatchObject({ code: "tls_failed" });
    }
    expect(at.seen.served).toEqual([]);
  });

  it("takes the proxy of the environment, and that of the option before it", async () => {
    vi.stubEnv("HTTPS_PROXY", at.proxyUrl());
    expect(await firstDevice({ caFile: at.ca })).toBeDefined();
    vi.stubEnv("HTTPS_PROXY", "http://127.0.0.1:9");
    expect(await firstDevice({ caFile: at.ca, proxy: at.proxyUrl() })).toBeDefined();
    expect(at.seen.proxied).toHaveLength(2);
  });

  it("sends the credentials of a proxy, which a program does not type", async () => {
    expect(await firstDevice({ caFile: at.ca, proxy: at.proxyUrl("me:pass@") })).toBeDefined();
    const basic = `Basic ${Buffer.from("me:pass").toString("base64")}`;
    expect(at.seen.proxied[0]?.headers["proxy-authorization"]).toBe(basic);
  });
});

describe.skipIf(!openssl)("createAgentClient", () => {
  it("trusts the authorities of caFile, and sends through proxy", async () => {
    await createAgentClient({ caFile: at.ca, proxy: at.proxyUrl() }).discover("https://service.test/mcp");
    expect(at.seen.proxied[0]?.target).toBe("service.test:443");
    expect(at.seen.served.map(({ path }) => path)).toContain("/mcp");
  });

  it("sends nothing to a server whose authority is not named", async () => {
    const { error } = await createAgentClient({ proxy: at.proxyUrl(), maxRetries: 0 }).discover(
      "https://service.test/mcp",
    );
    expect(error).toMatchObject({ code: "tls_failed" });
    expect(at.seen.served).toEqual([]);
  });
});

describe("the options caFile and proxy", () => {
  const both = [
    ["createAgentClient", createAgentClient],
    ["createManagementClient", management],
  ] as const;

  it.each(both)("of %s are refused at once where they cannot be used", (_name, create) => {
    const missing = join(temporaryFolder(), "missing.pem");
    const caught = (work: () => unknown) => {
      try {
        return work();
      } catch (error) {
        return error;
      }
    };
    expect(caught(() => create({ caFile: missing }))).toMatchObject({
      class: "usage",
      message: `the option caFile ${JSON.stringify(missing)} cannot be read`,
      hint: "name a file with the certificates of your authorities, in PEM form",
    });
    const empty = join(temporaryFolder(), "empty.pem");
    writeFileSync(empty, "");
    expect(() => create({ caFile: empty })).toThrow(`the option caFile ${JSON.stringify(empty)} contains no PEM`);
    expect(caught(() => create({ proxy: "socks5://127.0.0.1:1" }))).toMatchObject({
      message: expect.stringContaining('the option proxy "socks5://127.0.0.1:1" is a SOCKS proxy'),
    });
    expect(caught(() => create({ proxy: "ftp://me:secret@host" }))).toMatchObject({
      message: expect.not.stringContaining("secret"),
      hint: "correct or unset the option proxy, such as http://proxy.example:3128",
    });
  });

  it.each(both)("of %s are refused beside a fetch that would ignore them", (_name, create) => {
    const message = "the option caFile and the option fetch exclude each other";
    expect(() => create({ caFile: "/ca.pem", fetch: globalThis.fetch })).toThrow(message);
    expect(() => create({ proxy: "http://proxy.example", fetch: globalThis.fetch })).toThrow("the option proxy and");
    expect(() => create({ fetch: globalThis.fetch })).not.toThrow();
  });
});
