import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it, vi } from "vitest";
import { Listing } from "../../../../src/api/listing.js";
import { runCli, temporaryFolder } from "../../../helpers/cli.js";
import { fixedText } from "../../../helpers/fixed-text.js";

describe("demo", () => {
  it("ends with 0, survives its faults, reads the whole list, and leaves nothing behind", async () => {
    const home = join(temporaryFolder(), "none");
    const { code, stdout, stderr } = await runCli(["demo"], { env: { AGENTAUTH_HOME: home } });
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    for (const title of [
      "The domains of an account",
      "The pools of a domain",
      "Sorted by the service",
      "Filtered client-side",
      "What was requested",
    ]) {
      expect(stdout).toContain(`# ${title}\n`);
    }
    expect(stdout).toContain("8 of 8 clients, which share the login, were answered after 1 refresh.\n");
    expect(stdout.indexOf("# A token for")).toBeLessThan(stdout.indexOf("# The domains"));
    expect(stdout).toMatch(/^\$ agentauth devices list --pool pool_\w+ --sort last_seen:desc --limit 5$/m);
    const seen = Date.parse(/^dev_\w+ +agentauth demo .* (\d{4}-\S+Z) /m.exec(stdout)?.[1] ?? "");
    expect(Date.now() - seen).toBeGreaterThanOrEqual(0);
    const domains = /^ID +TITLE +STATUS +ACCOUNT\n((?:dom_.*\n)+)/m.exec(stdout)?.[1] ?? "";
    expect(domains.split("\n")).toHaveLength(4);
    expect(domains).toMatch(/^[\p{Script=Latin}\p{Script=Common}]+$/u);
    expect(stdout).toMatch(/^shown 5 of 1201; continue with: /m);
    expect(stdout).toMatch(/^Survived: HTTP 503, .*HTTP 429/m);
    expect(stdout).toContain("1201 of 1201 devices arrived in order, none twice, with four pages in flight.\n");
    expect(stdout).not.toMatch(/<CLIENT_SECRET>|sandbox_/);
    expect(existsSync(home)).toBe(false);
    // Not the sample data, nor how many pages were read in all.
    const lasting = fixedText(stdout)
      .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "<time>")
      .replace(/"client_id":"[^"]*"/, '"client_id":"<client_id>"')
      .replace(/ {2,}/g, "  ")
      .replace(/"expires_at":\d+/, '"expires_at":<time>')
      .replace(/^(?:<(?:dev|pool|dom)_id>|\{"id"| +\d+ {2}(?:GET \/api\/v1\/device {2}200|in total)).*\n/gm, "");
    expect(lasting).toMatchSnapshot();
  });

  it("ignores the settings and the profile of the user", async () => {
    const env = {
      AGENTAUTH_PROFILE: "nope",
      AGENTAUTH_BASE_URL: "https://agentauth.example",
      AGENTAUTH_API_TOKEN: "tok_of_theirs",
    };
    expect((await runCli(["demo"], { env })).code).toBe(0);
  });

  it("ends at once on SIGINT", async () => {
    const { code } = await runCli(["demo"], { signalAfter: { characters: 100, signal: "SIGINT" } });
    expect(code).toBe(130);
  });
});

describe("demo, where a list is wrong,", () => {
  afterEach(() => void vi.restoreAllMocks());

  const read = Listing.prototype[Symbol.asyncIterator];
  it.each<[string, string, (items: object[]) => object[]]>([
    ["lacks a device", "of 1201 devices, 1200 arrived, and 1200 of them in order", (items) => items.slice(0, -1)],
    [
      "has one too many",
      "of 1201 devices, 1202 arrived, and 1201 of them in order",
      (items) => [...items, { id: "x" }],
    ],
    ["has two in the wrong order", "and 1199 of them in order", ([a = {}, b = {}, ...rest]) => [b, a, ...rest]],
  ])("because it %s, fails and says so", async (_what, message, change) => {
    vi.spyOn(Listing.prototype, Symbol.asyncIterator).mockImplementation(async function* (this: Listing<object>) {
      const items: object[] = [];
      for await (const item of { [Symbol.asyncIterator]: () => read.call(this) }) items.push(item);
      yield* change(items);
    } as never);
    const { code, stderr } = await runCli(["demo"]);
    expect(code).not.toBe(0);
    expect(stderr).toContain(message);
  });
});
