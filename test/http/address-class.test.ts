import ipaddr from "ipaddr.js";
import { describe, expect, it } from "vitest";
import { isLoopbackHost } from "../../src/http/address.js";
import {
  type AddressClass,
  checkAddress,
  classifyHost,
  findRule,
  mostPublic,
  policyFor,
} from "../../src/http/address-class.js";
import { fc } from "../helpers/properties.js";

/** How far the host of a URL is. */
const reachOfUrl = (host: string) => classifyHost(new URL(`https://${host}/`).hostname);

const SPELLINGS: Readonly<Record<Exclude<AddressClass, "public">, string>> = {
  loopback: `
    127.0.0.1 127.1 127.0.1 127.255.255.254 2130706433 0x7f000001 0x7F.1 0177.0.0.1 0177.1 017700000001
    127.0.0.1. %31%32%37.0.0.1 １２７.0.0.1 127。0。0。1 [::1] [0:0:0:0:0:0:0:1] [::ffff:127.0.0.1]
    [::ffff:7f00:1] [::FFFF:7F00:0001] [64:ff9b::127.0.0.1] [2002:7f00:1::] localhost LOCALHOST localhost.
    a.b.localhost a.localhost. loc%61lhost ｌocalhost`,
  private: `
    10.0.0.1 10.255.255.255 012.0.0.1 0xa.1 167772161 172.16.0.1 172.31.255.255 192.168.0.1 0xC0A80001
    3232235521 100.64.0.1 100.127.255.255 192.0.0.8 198.18.0.1 198.19.255.255 [fc00::1] [fd12:3456:789a::1]
    [fdff:ffff::] [fec0::1] [::ffff:10.0.0.1] [::ffff:c0a8:1] [::ffff:0:10.0.0.1] [64:ff9b::a00:1]
    [64:ff9b:1::1.1.1.1] [2002:a00:1::5] [2001:0:5ef5:79fb:0:0:f5ff:fffe] [2001:2::1]`,
  forbidden: `
    169.254.169.254 169.254.0.1 0xA9FEA9FE 0xa9.0xfe.0xa9.0xfe 2852039166 0251.0376.0251.0376
    0251.254.169.254 169.254.43518 169.16689662 169.254.169.254. %31%36%39.254.169.254 ①⑥⑨.254.169.254
    [::ffff:169.254.169.254] [::ffff:a9fe:a9fe] [::ffff:0:a9fe:a9fe] [64:ff9b::a9fe:a9fe]
    [64:ff9b:1::a9fe:a9fe] [2002:a9fe:a9fe::] [2001:0:0:0:0:0:5601:5601] [::169.254.169.254] [::127.0.0.1]
    [fe80::1] [febf::1] [fd00:ec2::254] [fd00:0EC2:0:0:0:0:0:254] [fd20:ce::254] [fd00:c1::a9fe:a9fe]
    [fd00:42::42] 100.100.100.200 168.63.129.16 192.0.0.192 metadata.google.internal
    METADATA.google.internal. metadata.goog metadata metadata.azure.internal metadata.tencentyun.com
    instance-data instance-data.eu-west-1.compute.internal 0.0.0.0 0 0.1.2.3 [::] 255.255.255.255 224.0.0.1
    239.255.255.255 240.0.0.1 192.0.2.1 198.51.100.1 203.0.113.1 192.88.99.1 [ff02::1] [2001:db8::1]
    [3fff::1] [100::1] [5f00::1] [4000::1] [2001:20::1]`,
};

describe("how far a host is", () => {
  const cases = Object.entries(SPELLINGS).flatMap(([reach, hosts]) =>
    hosts
      .trim()
      .split(/\s+/)
      .map((host) => [host, reach] as const),
  );

  it.each(cases)("%s is %s", (host, reach) => {
    expect(reachOfUrl(host)).toBe(reach);
  });

  it.each(
    `
    1.1.1.1 93.184.215.14 0x01010101 172.15.255.255 172.32.0.0 100.63.255.255 100.128.0.0 169.253.255.255
    169.255.0.0 128.0.0.1 223.255.255.255 192.31.196.1 192.52.193.1 [2606:4700::1111] [2a00::1]
    [2620:4f:8000::1] [::ffff:1.1.1.1] [64:ff9b::1.1.1.1] [2002:101:101::]
  `
      .trim()
      .split(/\s+/),
  )("%s is public", (host) => {
    expect(reachOfUrl(host)).toBe("public");
  });

  it.each(
    `
    mcp.example localhost.example 127.0.0.1.example 10.0.0.1.nip.io metadata.example internal
    a-metadata.internal localhostx
  `
      .trim()
      .split(/\s+/),
  )("%s says nothing by itself", (host) => {
    expect(reachOfUrl(host)).toBeUndefined();
  });

  it("is said of addresses as resolvers write them too, zone and all", () => {
    expect(["fe80::1%eth0", "::127.0.0.1", "::1", "::ffff:10.0.0.1", "10.0.0.1"].map(classifyHost)).toEqual([
      "forbidden",
      "forbidden",
      "loopback",
      "private",
      "private",
    ]);
  });

  it("cannot be hidden in a zone: a URL has none", () => {
    for (const host of ["[fe80::1%25eth0]", "[::1%eth0]"]) expect(URL.canParse(`https://${host}/`)).toBe(false);
  });
});

/** Ways to write the same IPv4 address in a URL. */
function spellings([a = 0, b = 0, c = 0, d = 0]: readonly number[]): string[] {
  const whole = ((a * 256 + b) * 256 + c) * 256 + d;
  const hex = (part: number) => `0x${part.toString(16)}`;
  const octal = (part: number) => `0${part.toString(8)}`;
  return [
    `${a}.${b}.${c}.${d}`,
    `${a}.${b}.${c}.${d}.`,
    `${a}.${b}.${c * 256 + d}`,
    `${a}.${(b * 256 + c) * 256 + d}`,
    `${whole}`,
    hex(whole),
    octal(whole),
    [a, b, c, d].map(hex).join("."),
    [a, b, c, d].map(octal).join("."),
    `${hex(a)}.${octal(b)}.${c}.${d}`,
    `[::ffff:${a}.${b}.${c}.${d}]`,
    `[64:ff9b::${a}.${b}.${c}.${d}]`,
  ];
}

const byte = fc.nat(255);
const octets = fc.tuple(byte, byte, byte, byte);
// Most of all addresses are public: those that are not come up this way too.
const nearOctets = fc
  .tuple(fc.constantFrom([10], [127], [0], [172, 16], [192, 168], [169, 254], [100, 64], [100, 100], [224]), octets)
  .map(([start, rest]) => [...start, ...rest].slice(0, 4));

describe("an address of any kind", () => {
  const RANGES: Readonly<Record<string, AddressClass>> = {
    loopback: "loopback",
    private: "private",
    carrierGradeNat: "private",
    unicast: "public",
    as112: "public",
    amt: "public",
  };
  const apart = new Set(["100.100.100.200", "168.63.129.16"]);

  it("is as far in every spelling as its range says", () => {
    fc.assert(
      fc.property(fc.oneof(octets, nearOctets), (parts) => {
        const address = new ipaddr.IPv4([...parts]);
        fc.pre(!apart.has(address.toString()) && address.range() !== "reserved");
        const expected = RANGES[address.range()] ?? "forbidden";
        for (const host of spellings(parts)) expect([host, reachOfUrl(host)]).toEqual([host, expected]);
      }),
      { numRuns: 500 },
    );
  });

  it("of IPv6 is public only where such addresses were assigned, and never where the library says it is special", () => {
    const special = new Set(["uniqueLocal", "linkLocal", "loopback", "multicast", "unspecified", "reserved"]);
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 16, maxLength: 16 }), fc.boolean(), (bytes, isGlobal) => {
        const address = new ipaddr.IPv6([...bytes.map((byte, at) => (at === 0 && isGlobal ? 0x2a : byte))]);
        const reach = reachOfUrl(`[${address.toString()}]`);
        if (special.has(address.range())) expect(reach).not.toBe("public");
        if (address.range() === "unicast") expect(reach === "public").toBe((address.toByteArray()[0] ?? 0) >> 5 === 1);
      }),
      { numRuns: 500 },
    );
  });

  it("is this machine for one rule exactly when it is for the other", () => {
    fc.assert(
      fc.property(nearOctets, (parts) => {
        for (const host of spellings(parts).slice(0, -1)) {
          const { hostname } = new URL(`https://${host}/`);
          expect([host, isLoopbackHost(hostname)]).toEqual([host, classifyHost(hostname) === "loopback"]);
        }
      }),
      { numRuns: 300 },
    );
  });
});

describe("where a server may lead", () => {
  const NONE = new Set<string>();
  const allowed = (server: AddressClass | undefined, lifted: "all" | Set<string> = NONE) =>
    (["loopback", "private", "public", "forbidden"] as const).filter((reach) =>
      policyFor(server, lifted)("as.example", reach),
    );

  it("is never nearer to us than it is itself", () => {
    expect(allowed("loopback")).toEqual(["loopback", "private", "public"]);
    expect(allowed("private")).toEqual(["private", "public"]);
    expect(allowed("public")).toEqual(["public"]);
    expect(allowed(undefined)).toEqual(["public"]);
    expect(allowed("forbidden")).toEqual(["public"]);
  });

  it("allows all but forbidden addresses for the hosts that the user exempted", () => {
    expect(allowed("public", "all")).toEqual(["loopback", "private", "public"]);
    expect(allowed("public", new Set(["as.example"]))).toEqual(["loopback", "private", "public"]);
    expect(allowed("public", new Set(["other.example"]))).toEqual(["public"]);
  });

  it("names the option that disables it, where there is one", () => {
    expect(findRule("private").override).toBe("allowPrivateNetwork");
    expect(findRule("loopback").override).toBe("allowPrivateNetwork");
    expect(findRule("forbidden").override).toBeUndefined();
  });

  it("counts a name by the farthest of its addresses", () => {
    expect(mostPublic(["loopback", "public", "private"])).toBe("public");
    expect(mostPublic(["loopback", "private"])).toBe("private");
    expect(mostPublic(["loopback", "forbidden"])).toBe("forbidden");
    expect(mostPublic([])).toBe("forbidden");
  });
});

/** Checks what a server names that lies so far away itself. */
const check = (value: unknown, server: AddressClass = "public") =>
  checkAddress(value, "token_endpoint", "https://as.example/doc", { bounds: policyFor(server, new Set()) });

describe("checkAddress", () => {
  it.each([
    "https://as.example/token",
    "https://as.example:8443/a?b=c",
    "https://AS.example",
    "https://as.example/%20",
  ])("gives %s back as it was", (value) => {
    expect(check(value)).toBe(value);
  });

  it.each([undefined, null, 7, {}, "", "/token", "as.example/token", "-https://as.example/"])(
    "refuses %j, which is no absolute address",
    (value) => {
      expect(() => check(value)).toThrow("must be an absolute URL");
    },
  );

  it.each([
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "\tjavascript:alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "blob:https://as.example/x",
    "file:///etc/passwd",
    "ftp://as.example/",
    "smb://as.example/",
    "search-ms:x",
    "vscode://as.example/",
    "com.example.app:/cb",
  ])("[41] refuses the scheme of %j: only https, and http on this machine (2026-07-28)", (value) => {
    expect(() => check(value, "loopback")).toThrow("must be an https address");
  });

  it.each(["http://as.example/token", "http://10.0.0.1/", "http://127.0.0.1.example/"])(
    "[31] refuses %s: an endpoint is https, or on this machine (2025-06-18)",
    (value) => {
      expect(() => check(value, "loopback")).toThrow("must be an https address (OAuth 2.1 section 1.5)");
    },
  );

  it.each(
    `
    http://127.0.0.1/ https://localhost/ https://api.localhost/ https://[::1]/ https://2130706433/
    https://0x7f000001/ https://0177.0.0.1/ https://127.1/
  `
      .trim()
      .split(/\s+/),
  )("[40] refuses %s, this machine, from a server elsewhere, however it is spelled (2026-07-28)", (value) => {
    expect(() => check(value)).toThrow("leads to this machine");
    expect(check(value, "loopback")).toBe(value);
  });

  it.each(["https://login.example@evil.example/", "https://user:pass@as.example/"])(
    "refuses the user in %s",
    (value) => {
      expect(() => check(value)).toThrow("must not contain a user name or password");
    },
  );

  it.each(["https://as.example/#a", "https://as.example/#"])("refuses the fragment in %s", (value) => {
    expect(() => check(value)).toThrow("must not have a fragment");
  });

  it.each([
    "https://as.example/a b",
    "https://as.example\\@evil.example/",
    " https://as.example/",
    "https://as.example/\u202ecod",
    "https://as.exam\u200bple/",
    "https://as.example/\n",
  ])("refuses %j for what cannot be seen in it", (value) => {
    expect(() => check(value)).toThrow(/must/);
  });

  it("names the field, the value made harmless, where it came from, and the rule", () => {
    expect(() => check("ftp://as.example/\u001b[31m")).toThrow(
      expect.objectContaining({
        code: "bad_address",
        class: "refused",
        message: 'token_endpoint "ftp://as.example/\\e[31m" (from "https://as.example/doc") must be an https address',
      }),
    );
  });
});
