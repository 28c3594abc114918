import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, vi } from "vitest";
import { createAgentClient, createManagementClient } from "../../src/node.js";
import { proxiedTest, TOKEN } from "../cli/clients/proxied-service.js";
import { hasOpenssl } from "../helpers/certificates.js";
import { temporaryFolder } from "../helpers/folder.js";
import { rejection } from "../helpers/service.js";

const openssl = hasOpenssl("the tests of authorities and proxies of the clients");
const PROXIES = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "NO_PROXY"];

const it = proxiedTest;

beforeEach(() => {
  const names = Object.keys(process.env).filter((name) => name.startsWith("AGENTAUTH_"));
  for (const name of [...names, ...PROXIES, ...PROXIES.map((one) => one.toLowerCase())]) vi.stubEnv(name, undefined);
  vi.stubEnv("AGENTAUTH_HOME", temporaryFolder());
  onTestFinished(() => void vi.unstubAllEnvs());
});

/** A management client of the service behind the proxy. */
const management = (options: Parameters<typeof createManagementClient>[0] = {}) =>
  createManagementClient({ baseUrl: "https://service.test", token: TOKEN, maxRetries: 0, ...options });

const firstDevice = (options?: Parameters<typeof createManagementClient>[0]) =>
  management(options).devices.list({ pool_id: "p" }).first();

describe.skipIf(!openssl)("createManagementClient", () => {
  it("trusts the authorities of caFile, and sends through proxy", async ({ service }) => {
    expect(await firstDevice({ caFile: service.ca, proxy: service.proxyUrl() })).toMatchObject({ id: "dev_1" });
    expect(service.seen.proxied.map(({ target }) => target)).toEqual(["service.test:443"]);
    expect(service.seen.served).toEqual([{ path: "/api/v1/device", token: `Bearer ${TOKEN}` }]);
  });

  it("sends nothing to a server whose authority is not named", async ({ service }) => {
    for (const caFile of [undefined, service.otherCa]) {
      expect(await rejection(firstDevice({ caFile, proxy: service.proxyUrl() }))).toMatchObject({ code: "tls_failed" });
    }
    expect(service.seen.served).toEqual([]);
  });

  it("takes the proxy of the environment, and that of the option before it", async ({ service }) => {
    vi.stubEnv("HTTPS_PROXY", service.proxyUrl());
    expect(await firstDevice({ caFile: service.ca })).toBeDefined();
    vi.stubEnv("HTTPS_PROXY", "http://127.0.0.1:9");
    expect(await firstDevice({ caFile: service.ca, proxy: service.proxyUrl() })).toBeDefined();
    expect(service.seen.proxied).toHaveLength(2);
  });

  it("sends the credentials of a proxy, which a program does not type", async ({ service }) => {
    expect(await firstDevice({ caFile: service.ca, proxy: service.proxyUrl("me:pass@") })).toBeDefined();
    const basic = `Basic ${Buffer.from("me:pass").toString("base64")}`;
    expect(service.seen.proxied[0]?.headers["proxy-authorization"]).toBe(basic);
  });
});

describe.skipIf(!openssl)("createAgentClient", () => {
  it("trusts the authorities of caFile, and sends through proxy", async ({ service }) => {
    await createAgentClient({ caFile: service.ca, proxy: service.proxyUrl() }).discover("https://service.test/mcp");
    expect(service.seen.proxied[0]?.target).toBe("service.test:443");
    expect(service.seen.served.map(({ path }) => path)).toContain("/mcp");
  });

  it("sends nothing to a server whose authority is not named", async ({ service }) => {
    const { error } = await createAgentClient({ proxy: service.proxyUrl(), maxRetries: 0 }).discover(
      "https://service.test/mcp",
    );
    expect(error).toMatchObject({ code: "tls_failed" });
    expect(service.seen.served).toEqual([]);
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
    expect(() => create({ useSystemCa: true, fetch: globalThis.fetch })).toThrow(
      expect.objectContaining({
        code: "usage",
        class: "usage",
        message: "the option useSystemCa and the option fetch exclude each other: fetch makes its own connections",
        hint: "leave out one of them",
      }),
    );
  });

  it("of createAgentClient are refused beside a network of the caller", () => {
    const network = { connectTo: () => ({ fetch: globalThis.fetch }) } as never;
    const message = "the option caFile and the option network exclude each other: network makes its own connections";
    expect(() => createAgentClient({ caFile: "/ca.pem", network })).toThrow(message);
    expect(() => createAgentClient({ network })).not.toThrow();
  });
});
