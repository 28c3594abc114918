import { describe, expect, it } from "vitest";
import { bypassesProxy } from "../../src/transport/no-proxy.js";
import { proxyChooser } from "../../src/transport/proxies.js";

const passes = (noProxy: string, url: string) => bypassesProxy(noProxy)(new URL(url));

describe("NO_PROXY", () => {
  it.each([
    ["*", "https://mcp.example/"],
    ["mcp.example", "https://mcp.example/"],
    ["MCP.Example", "https://mcp.example/"],
    ["mcp.example", "https://mcp.example./"],
    ["mcp.example.", "https://mcp.example/"],
    ["example", "https://mcp.example/"],
    [".example", "https://mcp.example/"],
    [".mcp.example", "https://mcp.example/"],
    ["*.example", "https://a.mcp.example/"],
    ["other.example,mcp.example", "https://mcp.example/"],
    [" other.example ,  mcp.example ", "https://mcp.example/"],
    ["other.example mcp.example", "https://mcp.example/"],
    ["mcp.example:443", "https://mcp.example/"],
    ["mcp.example:8443", "https://mcp.example:8443/"],
    [".example:8443", "https://mcp.example:8443/"],
    ["10.0.0.1", "https://10.0.0.1/"],
    ["10.0.0.1", "https://0xa.1/"],
    ["10.0.0.1", "https://[::ffff:10.0.0.1]/"],
    ["10.0.0.1:8443", "https://10.0.0.1:8443/"],
    ["10.0.0.0/8", "https://10.200.3.4/"],
    ["10.0.0.0/8", "https://[::ffff:a00:1]/"],
    ["192.168.7.0/25", "https://192.168.7.127/"],
    ["0.0.0.0/0", "https://1.1.1.1/"],
    ["fd00::/8", "https://[fd12::1]/"],
    ["2001:db8::1", "https://[2001:db8:0::1]/"],
    ["[2001:db8::1]", "https://[2001:db8::1]/"],
    ["[2001:db8::1]:8443", "https://[2001:db8::1]:8443/"],
  ])("%s names %s", (noProxy, url) => {
    expect(passes(noProxy, url)).toBe(true);
  });

  it.each([
    ["", "https://mcp.example/"],
    [" , ,", "https://mcp.example/"],
    ["mcp.example", "https://xmcp.example/"],
    ["mcp.example", "https://mcp.example.other/"],
    [".mcp.example", "https://xmcp.example/"],
    ["mcp.example:8443", "https://mcp.example/"],
    ["mcp.example:443", "https://mcp.example:8443/"],
    ["10.0.0.1", "https://10.0.0.10/"],
    ["10.0.0.1:443", "https://10.0.0.1:8443/"],
    ["10.0.0.0/8", "https://11.0.0.1/"],
    ["10.0.0.0/8", "https://10.example/"],
    ["10.0.0.0/8", "https://[fd00::1]/"],
    ["192.168.7.0/25", "https://192.168.7.128/"],
    ["10.0.0.0/33", "https://10.0.0.1/"],
    ["fd00::/8", "https://[fe00::1]/"],
    ["*x", "https://mcp.example/"],
    ["m*.example", "https://mcp.example/"],
  ])("%j does not name %s", (noProxy, url) => {
    expect(passes(noProxy, url)).toBe(false);
  });
});

describe("the proxy for an address", () => {
  const proxies = { https: "http://one.example/", http: "http://two.example/" };
  const choose = (url: string, options = { proxies }) => proxyChooser(options)(new URL(url));

  it("is the one of its scheme; one that is set for http alone does for https too", () => {
    expect(choose("https://mcp.example/")).toBe(proxies.https);
    expect(choose("http://mcp.example/")).toBe(proxies.http);
    expect(proxyChooser({ proxies: { http: "http://two.example/" } })(new URL("https://mcp.example/"))).toBe(
      "http://two.example/",
    );
    expect(proxyChooser({ proxies: { https: "http://one.example/" } })(new URL("http://mcp.example/"))).toBeUndefined();
    expect(proxyChooser({})(new URL("https://mcp.example/"))).toBeUndefined();
  });

  it.each([
    "http://localhost/",
    "https://a.localhost./",
    "http://127.1/",
    "http://[::1]/",
    "https://[::ffff:127.0.0.1]/",
  ])("is never one for %s, which is this machine", (url) => {
    expect(choose(url)).toBeUndefined();
  });
});
