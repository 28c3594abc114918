import { describe, expect, it } from "vitest";
import type { Exemptions } from "../../../src/http/address-class.js";
import { createSsrfGuard, type SsrfGuard } from "../../../src/http/node/agents.js";
import { refusedAddress } from "../../helpers/named-network.js";
import { rejection } from "../../helpers/service.js";

const PUBLIC = "93.184.215.14";
const OTHER_PUBLIC = "2606:4700::1111";

/** Names and, for each lookup in turn, their addresses; the last ones stay. */
type Zone = Record<string, readonly (readonly string[])[]>;

/** A guard over names that a test gives, and the names that it looked up. */
function guardOf(server: string, zone: Zone, options: { exemptions?: Exemptions; isBehindProxy?: boolean } = {}) {
  const lookups: string[] = [];
  const lookup = async (hostname: string) => {
    const answers = zone[hostname] ?? [];
    const nth = lookups.filter((name) => name === hostname).length;
    lookups.push(hostname);
    const addresses = answers[Math.min(nth, answers.length - 1)];
    if (!addresses) throw Object.assign(new Error("no such name"), { code: "ENOTFOUND" });
    return addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
  };
  return {
    guard: createSsrfGuard(server, { exemptions: new Set(), isBehindProxy: false, lookup, ...options }),
    lookups,
  };
}

const addressesOf = async (guard: SsrfGuard, hostname: string) =>
  (await guard.resolve(hostname)).map(({ address }) => address);
const refusalOf = (guard: SsrfGuard, hostname: string) => rejection(guard.resolve(hostname));

describe("a public server", () => {
  const zone: Zone = {
    "mcp.example": [[PUBLIC]],
    "as.example": [[PUBLIC, OTHER_PUBLIC]],
    "inner.example": [["10.0.0.7"]],
    "here.example": [["127.0.0.1"]],
    "mixed.example": [[PUBLIC, "192.168.0.1"]],
    "mapped.example": [["::ffff:10.0.0.7"]],
    "meta.example": [[PUBLIC, "169.254.169.254"]],
    "sole.example": [["169.254.169.254"]],
    "unique.example": [[OTHER_PUBLIC, "fd12::1"]],
  };

  it("leads to public ones: to all of their addresses, which were looked up once, and its own were not needed", async () => {
    const { guard, lookups } = guardOf("mcp.example", zone);
    expect(await addressesOf(guard, "as.example")).toEqual([PUBLIC, OTHER_PUBLIC]);
    expect(lookups).toEqual(["as.example"]);
  });

  it.each([
    ["inner.example", "10.0.0.7", "private network"],
    ["here.example", "127.0.0.1", "this machine"],
    ["mixed.example", "192.168.0.1", "private network"],
    ["mapped.example", "::ffff:10.0.0.7", "private network"],
    ["unique.example", "fd12::1", "private network"],
  ])(
    "does not lead to %s, where one address is %s: the refusal says so, and how to lift it",
    async (host, at, where) => {
      const { guard } = guardOf("mcp.example", zone);
      const error = await refusalOf(guard, host);
      expect(error).toEqual(refusedAddress(`the host "${host}" ("${at}") leads`, "allowPrivateNetwork"));
      expect(error).toEqual(refusedAddress(where));
      expect(error).toEqual(refusedAddress("RFC 9728 section 7.7"));
    },
  );

  it.each(["10.0.0.7", "127.0.0.1", "[::1]", "::1", "[fd12::1]"])(
    "does not lead to %s, which needs no lookup",
    async (host) => {
      const { guard, lookups } = guardOf("mcp.example", zone);
      expect(await refusalOf(guard, host)).toEqual(refusedAddress(`the host "${host}" `, "allowPrivateNetwork"));
      expect(lookups).toEqual(["mcp.example"]);
    },
  );

  it("leads anywhere but to forbidden addresses once the rule is lifted, and for the lifted hosts alone", async () => {
    const all = guardOf("mcp.example", zone, { exemptions: "all" }).guard;
    for (const host of ["inner.example", "here.example", "mixed.example", "127.0.0.1"]) await all.resolve(host);
    const one = guardOf("mcp.example", zone, { exemptions: new Set(["inner.example"]) }).guard;
    expect(await addressesOf(one, "inner.example")).toEqual(["10.0.0.7"]);
    expect(await refusalOf(one, "here.example")).toEqual(refusedAddress("this machine"));
    // URLs have brackets around it, connections have none.
    const six = guardOf("mcp.example", zone, { exemptions: new Set(["[fd12::1]"]) }).guard;
    for (const host of ["[fd12::1]", "fd12::1"]) expect(await addressesOf(six, host)).toEqual(["fd12::1"]);
    expect(await refusalOf(six, "fd12::2")).toEqual(refusedAddress("private network"));
  });

  it.each(["meta.example", "169.254.169.254", "metadata.google.internal", "[fe80::1]", "0.0.0.0"])(
    "never leads to %s, whatever was lifted, and no flag is named",
    async (host) => {
      for (const exemptions of ["all", new Set([host]), new Set<string>()] as const) {
        const error = await refusalOf(guardOf("mcp.example", zone, { exemptions }).guard, host);
        expect(error).toEqual(refusedAddress("where nothing is ever sent"));
        expect(error).not.toHaveProperty("hint");
      }
    },
  );

  it.each(["meta.example", "sole.example"])(
    "whose own name %s leads to a forbidden address is never asked",
    async (own) => {
      for (const exemptions of ["all", new Set<string>()] as const) {
        const { guard } = guardOf(own, zone, { exemptions });
        expect(await refusalOf(guard, own)).toEqual(refusedAddress('("169.254.169.254") leads to a link-local'));
      }
    },
  );

  it("that has a private address beside the public one is refused itself, unless that was lifted", async () => {
    expect(await refusalOf(guardOf("mixed.example", zone).guard, "mixed.example")).toEqual(
      refusedAddress('the host "mixed.example" leads to "192.168.0.1" beside public addresses', "allowPrivateNetwork"),
    );
    const { guard } = guardOf("mixed.example", zone, { exemptions: "all" });
    expect(await addressesOf(guard, "mixed.example")).toEqual([PUBLIC, "192.168.0.1"]);
  });

  it("does not come to count as a private one by changing its answers", async () => {
    const { guard } = guardOf("mcp.example", { ...zone, "mcp.example": [[PUBLIC], ["10.0.0.1"]] });
    await guard.resolve("mcp.example");
    expect(await guard.addressClass()).toBe("public");
    expect(await refusalOf(guard, "inner.example")).toEqual(refusedAddress("private network"));
  });
});

describe("a private server", () => {
  const zone: Zone = {
    "mcp.corp": [["10.0.0.1"]],
    "both.corp": [["10.0.0.1", "127.0.0.1"]],
    "as.corp": [["10.0.0.7"]],
    "as.example": [[PUBLIC]],
    "here.example": [["127.0.0.1"]],
  };

  it.each(["mcp.corp", "10.0.0.1", "[fd12::1]", "both.corp"])(
    "such as %s leads to private and public ones, not to this machine",
    async (server) => {
      const { guard } = guardOf(server, zone);
      for (const host of ["as.corp", "as.example", "192.168.0.1"]) await guard.resolve(host);
      for (const host of ["here.example", "127.0.0.1"]) {
        expect(await refusalOf(guard, host)).toEqual(refusedAddress("this machine", "allowPrivateNetwork"));
      }
      expect(await refusalOf(guard, "169.254.169.254")).toEqual(refusedAddress("where nothing is ever sent"));
    },
  );

  it("that turns public counts as such from then on", async () => {
    const { guard } = guardOf("mcp.corp", { ...zone, "mcp.corp": [["10.0.0.1"], [PUBLIC], ["10.0.0.1"]] });
    for (const address of ["10.0.0.1", PUBLIC]) expect(await addressesOf(guard, "mcp.corp")).toEqual([address]);
    expect(await refusalOf(guard, "as.corp")).toEqual(refusedAddress("private network"));
    expect(await refusalOf(guard, "mcp.corp")).toEqual(refusedAddress("beside public addresses"));
  });
});

describe("a server on this machine", () => {
  it.each(["localhost", "127.0.0.1", "[::1]", "[::ffff:7f00:1]"])(
    "such as %s leads anywhere but to forbidden addresses",
    async (server) => {
      const { guard } = guardOf(server, { localhost: [["127.0.0.1", "::1"]], "as.corp": [["10.0.0.7"]] });
      for (const host of ["localhost", "127.0.0.1", "as.corp", "1.1.1.1", "[::1]"]) await guard.resolve(host);
      for (const host of ["169.254.169.254", "metadata.google.internal"]) {
        expect(await refusalOf(guard, host)).toEqual(refusedAddress("where nothing is ever sent"));
      }
    },
  );

  it.each([PUBLIC, "10.0.0.1"])("is not one that a resolver says is at %s, whatever its name", async (address) => {
    for (const exemptions of [new Set<string>(), "all"] as const) {
      for (const addresses of [
        ["127.0.0.1", address],
        [address, "127.0.0.1"],
      ]) {
        const { guard } = guardOf("localhost", { localhost: [addresses] }, { exemptions });
        expect(await refusalOf(guard, "localhost")).toEqual(
          refusedAddress(`("${address}") leads away from this machine`),
        );
      }
    }
  });
});

describe("a server behind a proxy", () => {
  it("counts as public without being looked up", async () => {
    const { guard, lookups } = guardOf("mcp.corp", { "as.corp": [["10.0.0.7"]] }, { isBehindProxy: true });
    expect(await guard.addressClass()).toBe("public");
    expect(await refusalOf(guard, "as.corp")).toEqual(refusedAddress("private network"));
    expect(lookups).toEqual(["as.corp"]);
  });

  it.each([
    ["mcp.corp", "10.0.0.7", "private network"],
    ["mcp.corp", "[::1]", "this machine"],
    ["mcp.corp", "169.254.169.254", "where nothing is ever sent"],
    ["10.0.0.1", "127.0.0.1", "this machine"],
    ["10.0.0.1", "metadata.goog", "where nothing is ever sent"],
  ])("%s does not lead to %s, judged as it is written", (server, host, words) => {
    const { guard } = guardOf(server, {}, { isBehindProxy: true });
    expect(() => guard.checkWritten(host)).toThrow(refusedAddress(words));
  });

  it.each([
    ["mcp.corp", "as.example"],
    ["mcp.corp", PUBLIC],
    ["10.0.0.1", "10.0.0.1"],
    ["10.0.0.1", "192.168.0.1"],
  ])("%s may lead to %s", (server, host) => {
    const { guard } = guardOf(server, {}, { isBehindProxy: true });
    expect(() => guard.checkWritten(host)).not.toThrow();
  });
});

it("is told once where an address is what was written", async () => {
  const { guard } = guardOf("mcp.example", { "mcp.example": [[PUBLIC]] });
  expect(await refusalOf(guard, "10.0.0.7")).toEqual(refusedAddress('the host "10.0.0.7" leads'));
});

it("sends nothing to what a resolver says and is no address", async () => {
  const { guard } = guardOf("mcp.example", { "odd.example": [[PUBLIC, "odd"]] }, { exemptions: "all" });
  expect(await refusalOf(guard, "odd.example")).toEqual(refusedAddress("where nothing is ever sent"));
});

it("takes a server that answered without being looked up for a public one, and that alone", async () => {
  const { guard, lookups } = guardOf("mcp.corp", { "mcp.corp": [["10.0.0.1"]] });
  guard.onResponse("mcp.corp");
  expect([await guard.addressClass(), lookups]).toEqual(["public", []]);
  const other = guardOf("mcp.corp", { "mcp.corp": [["10.0.0.1"]] }).guard;
  other.onResponse("as.corp");
  expect(await other.addressClass()).toBe("private");
  other.onResponse("mcp.corp");
  expect(await other.addressClass()).toBe("private");
});

it("passes on what the resolver says of a name that is none", async () => {
  const { guard } = guardOf("mcp.example", {});
  expect(await refusalOf(guard, "as.example")).toMatchObject({ code: "ENOTFOUND" });
});
