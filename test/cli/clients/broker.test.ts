import { describe, expect, it } from "vitest";
import { policyOfFlags } from "../../../src/cli/clients/broker.js";

const CLIENT = { listen: "unix:/run/a.sock" };
const policy = (...grants: string[]) => policyOfFlags(grants, CLIENT, "--grant");

describe("the policy that flags describe", () => {
  it("has each server by its name, with every key, for one client", () => {
    const all = "tools=a*,tools=b,hide-tools=c,methods=POST,methods=GET,paths=/x,scope=a b,account=ann,rpm=60";
    expect(
      policy(`crm=https://crm.example/mcp?a=b,c&d=e,${all},until=2030-01-01T00:00:00Z`, "b=https://b.example/"),
    ).toEqual({
      grants: {
        crm: {
          server: "https://crm.example/mcp?a=b,c&d=e",
          tools: ["a*", "b"],
          hideTools: ["c"],
          methods: ["POST", "GET"],
          paths: ["/x"],
          scope: "a b",
          account: "ann",
          requestsPerMinute: 60,
          until: "2030-01-01T00:00:00Z",
        },
        b: { server: "https://b.example/" },
      },
      clients: { default: CLIENT },
    });
  });

  it.each([
    [["crm"], '--grant "crm" is not <name>=<url>', "--grant crm=https://crm.example/mcp"],
    [["a=https://a.example/", "a=https://b.example/"], '--grant names "a" twice', "give each server its own name"],
    [
      ["a=https://a.example/,tool=x"],
      '--grant has the unknown key "tool"',
      "its keys are tools, hide-tools, methods, paths, scope, account, rpm, until",
    ],
    [["a=https://a.example/,constructor=x"], '--grant has the unknown key "constructor"', expect.any(String)],
    [
      ["a=https://a.example/,rpm=6x"],
      '--grant: grants.a.requestsPerMinute "6x" is not a whole number of at least 1',
      undefined,
    ],
    [
      ["a=https://a.example/,rpm=x6"],
      '--grant: grants.a.requestsPerMinute "x6" is not a whole number of at least 1',
      undefined,
    ],
    [["A=https://a.example/"], expect.stringMatching(/^--grant: grants has the name "A": /), undefined],
    [[], "--grant: grants is empty", undefined],
  ])("is refused for %j", (grants, message, hint) => {
    expect(() => policy(...grants)).toThrow(expect.objectContaining({ code: "usage", message }));
    try {
      policy(...grants);
    } catch (error) {
      expect((error as { hint?: string }).hint).toEqual(hint);
    }
  });
});
