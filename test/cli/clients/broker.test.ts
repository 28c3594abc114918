import { describe, expect, it } from "vitest";
import { buildBroker, policyOfFlags } from "../../../src/cli/clients/broker.js";
import { fileStore } from "../../../src/store/file/file.js";
import { temporaryFolder } from "../../helpers/folder.js";
import { madeGrant } from "../../helpers/grant.js";
import { sendJson, startServer } from "../../helpers/server.js";
import { startRun } from "../run-support.js";

const CLIENT = { listen: "unix:/run/a.sock" };
const policy = (...grants: string[]) => policyOfFlags(grants, CLIENT, "--grant");

describe("the policy that flags describe", () => {
  it("has each server by its name, with every key, for one client", () => {
    const all =
      "tools=a*,tools=b,hide-tools=c,methods=POST,methods=GET,paths=/x,headers=x-a,scope=a b,account=ann,rpm=60";
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
          headers: ["x-a"],
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
      "its keys are tools, hide-tools, methods, paths, headers, scope, account, rpm, until",
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

it("a broker logs each request, uses the login of the account, and says once which login is needed", async () => {
  const { origin, close } = await startServer((response, { headers }) => {
    if (headers.authorization === undefined) response.writeHead(401, { "www-authenticate": "Bearer" }).end();
    else sendJson(response, { jsonrpc: "2.0", id: 1, result: { tools: [], content: [] } });
  });
  const server = { url: `${origin}/mcp` };
  const home = temporaryFolder();
  const made = madeGrant({ server: server.url, resource: server.url, requestedScope: undefined });
  const tokens = { ...made.tokens, refreshToken: undefined, expiresAt: Date.now() + 3_600_000, obtainedAt: Date.now() };
  await fileStore(home).save({ ...made, tokens }, undefined);
  const { context, io } = startRun({ env: { AGENTAUTH_HOME: home }, verbose: true, tty: true });
  const clients = { job: { listen: "unix:/run/a.sock" } };
  const grants = {
    own: { server: server.url, tools: ["a"] },
    ann: { server: server.url, account: "ann" },
    scoped: { server: server.url, scope: "more" },
  };
  const asked: unknown[] = [];
  const broker = await buildBroker({ grants, clients }, {}, context, (...args) => asked.push(args));
  const send = async (name: string, tool?: string) => {
    const call = tool === undefined ? { method: "tools/list" } : { method: "tools/call", params: { name: tool } };
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream" };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, ...call });
    const response = await broker.fetch(new Request(`http://broker/${name}`, { method: "POST", headers, body }), "job");
    await response.text();
    return response.status;
  };
  expect([await send("own"), await send("own", "a"), await send("another")]).toEqual([200, 200, 404]);
  await send("own", "b\u001b");
  for (const name of ["ann", "ann", "scoped"]) expect(await send(name)).toBe(503);
  const lines = io
    .err()
    .replaceAll(server.url, "<url>")
    .replace(/in \d+ ms/g, "in - ms")
    .split("\n");
  expect(lines.filter((line) => line.includes("job: "))).toMatchSnapshot();
  const [ofAnn, ofScope] = [
    `agentauth login ${server.url} --account-hint ann`,
    `agentauth login ${server.url} --scope more`,
  ];
  expect(asked).toEqual([
    ["ann", grants.ann, ofAnn],
    ["scoped", grants.scoped, ofScope],
  ]);
  expect(lines.filter((line) => line.includes("needs a login"))).toHaveLength(2);
  expect(io.err()).toContain(`ann needs a login: ${ofAnn}\n`);
  await close();
});
