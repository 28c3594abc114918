import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import nock from "nock";
import { describe, expect, it, onTestFinished } from "vitest";
import { DOCUMENT_REDIRECTS } from "../../../../src/oauth/client/metadata-document.js";
import { hasOpenssl, makeAuthority } from "../../../helpers/certificates.js";
import { runCli, temporaryFolder } from "../../../helpers/cli.js";
import { fixedText } from "../../../helpers/fixed-text.js";
import { useNock } from "../../../helpers/nock.js";

const openssl = hasOpenssl("the test of a document on this machine");

const PAGE = "https://client.example/agentauth/client.json";
const URL_FLAG = ["--client-metadata-url", PAGE];
const OURS = JSON.parse(
  readFileSync(new URL("../../../../docs/public/agentauth/client.json", import.meta.url), "utf8"),
) as Record<string, unknown>;

interface Row {
  state: string;
  check: string;
  found: string;
}

async function print(...args: string[]) {
  const { code, stdout, stderr } = await runCli(["client", "document", ...args]);
  return { code, stderr, document: code === 0 ? (JSON.parse(stdout) as Record<string, unknown>) : undefined };
}

describe("client document", () => {
  it("prints the document that docs/ has, with the address where it is published", async () => {
    const { code, stderr, document } = await print("--client-metadata-url", String(OURS["client_id"]));
    expect([code, document]).toEqual([0, OURS]);
    const url = OURS["client_id"];
    expect(stderr).toBe(
      `publish it yourself at "${url}", as application/json; then: agentauth client document --check ${url}\n`,
    );
    expect(document).toMatchObject({ redirect_uris: DOCUMENT_REDIRECTS, application_type: "native" });
  });

  it("takes the address of the setting, and other redirect addresses and names", async () => {
    const home = { AGENTAUTH_HOME: temporaryFolder() };
    expect(await runCli(["config", "set", "client_metadata_url", PAGE], { env: home })).toMatchObject({ code: 0 });
    const uri = "https://client.example/callback";
    const args = ["client", "document", "--redirect-uri", uri, "--client-name", "Portal", "--jq", "."];
    const { stdout } = await runCli(args, { env: home });
    expect(JSON.parse(stdout)).toMatchObject({
      client_id: PAGE,
      client_name: "Portal",
      redirect_uris: [uri],
      application_type: "web",
    });
    const both = await print(...URL_FLAG, "--redirect-uri", uri, "--redirect-uri", "http://127.0.0.1/callback");
    expect(both.document).toMatchObject({ client_name: "agentauth", application_type: "native" });
  });

  it.each([
    [[], "--client-metadata-url is required"],
    [["--client-metadata-url", "https://client.example"], "must have a path"],
    [
      [...URL_FLAG, "--redirect-uri", "https://other.example/cb"],
      '--redirect-uri "https://other.example/cb" is foreign',
    ],
    [[...URL_FLAG, "--redirect-uri", "http://client.example/cb"], "is foreign"],
    [[...URL_FLAG, "--redirect-uri", "http://127.0.0.1/cb#x"], "must have no fragment"],
    [[...URL_FLAG, "--redirect-uri", "x"], "is no address"],
  ])("with %j is a wrong call", async (args, message) => {
    const { code, stderr } = await print(...args);
    expect([code, stderr]).toEqual([2, expect.stringContaining(message)]);
    expect(fixedText(stderr)).toMatchSnapshot();
  });

  it.each(["http://client.example/x", "https://client.example/#x"])(
    "config set refuses the address %s",
    async (url) => {
      const { code, stderr } = await runCli(["config", "set", "client_metadata_url", url]);
      expect([code, stderr]).toEqual([2, expect.stringMatching(/^error: client_metadata_url ".*" must/)]);
    },
  );
});

describe("client document --check", () => {
  useNock();

  const document = { ...OURS, client_id: PAGE };

  async function check(body: unknown, headers: Record<string, string> = {}, status = 200) {
    nock("https://client.example")
      .get("/agentauth/client.json")
      .reply(status, typeof body === "string" ? body : JSON.stringify(body), {
        "content-type": "application/json",
        ...headers,
      });
    const { code, stdout, stderr } = await runCli(["client", "document", "--check", PAGE, "--json"]);
    const rows = JSON.parse(stdout) as Row[];
    return { code, stderr, rows, bad: rows.filter(({ state }) => state !== "ok") };
  }

  it("names every rule that our own document keeps", async () => {
    const { code, stderr, rows, bad } = await check(document);
    expect([code, stderr, bad]).toEqual([0, "", []]);
    expect(rows).toMatchSnapshot();
  });

  it.each([
    ["csv", /^state,check,found\r\nok,address,/],
    ["table", /^STATE +CHECK +FOUND\nok +address /],
  ])("prints each check as a row of %s", async (format, rows) => {
    nock("https://client.example").get("/agentauth/client.json").reply(200, document);
    expect((await runCli(["client", "document", "--check", PAGE, "-o", format])).stdout).toMatch(rows);
  });

  it.each([
    ["another client_id", { client_id: `${PAGE}/` }, "client_id"],
    ["no client_id", { client_id: undefined }, "client_id"],
    ["no name", { client_name: " " }, "client_name"],
    ["no redirect addresses", { redirect_uris: [] }, "redirect_uris"],
    ["a text of redirect addresses", { redirect_uris: "http://127.0.0.1/callback" }, "redirect_uris"],
    ["a foreign redirect address", { redirect_uris: ["https://evil.example/callback"] }, "redirect_uris"],
    ["a redirect address in the clear", { redirect_uris: ["http://client.example/callback"] }, "redirect_uris"],
    ["no authentication method", { token_endpoint_auth_method: undefined }, "token_endpoint_auth_method"],
    ["a secret", { client_secret: "x" }, "secrets"],
    ["the expiry of a secret", { client_secret_expires_at: 0 }, "secrets"],
    ["a private key", { jwks: { keys: [{ kty: "OKP", d: "x" }] } }, "keys"],
    ["a private exponent", { jwks: { keys: [{ kty: "oct", k: "x" }] } }, "keys"],
    ["a private key beside a public one", { jwks: { keys: [{ kty: "OKP", x: "x" }, { d: "" }] } }, "keys"],
    ["a secret with its expiry", { client_secret: "x", client_secret_expires_at: 0 }, "secrets"],
    ["a name that is none", { client_name: 7 }, "client_name"],
    ["a client_id that is none", { client_id: 7 }, "client_id"],
    [
      "an authentication with a secret",
      { token_endpoint_auth_method: "client_secret_post" },
      "token_endpoint_auth_method",
    ],
    ["a redirect address with a fragment", { redirect_uris: ["https://client.example/cb#x"] }, "redirect_uris"],
    ["a redirect address that is none", { redirect_uris: ["https://client.example/cb", "x"] }, "redirect_uris"],
    ["a logo in the clear", { logo_uri: "http://client.example/logo" }, "links"],
    ["a policy that is no address", { tos_uri: "https://client.example/tos", policy_uri: 7 }, "links"],
  ])("refuses a document with %s, and names the member", async (_what, members, member) => {
    const { code, stderr, bad } = await check({ ...document, ...members });
    expect([code, bad.map((row) => row.check)]).toEqual([3, [member]]);
    const { error } = JSON.parse(stderr) as { error: { message: string; hint: string } };
    expect(error.hint).toBe(`publish what this prints: agentauth client document ${URL_FLAG.join(" ")}`);
    expect(error.message).toBe(
      `issuers must refuse the client metadata document "${PAGE}": ${member}: ${bad[0]?.found}`,
    );
    expect(bad[0]?.found).toMatchSnapshot();
  });

  it.each([
    ["a redirect", "", { location: "https://www.example/x" }, 302, "status"],
    ["another status", document, {}, 404, "status"],
    ["a page", document, { "content-type": "text/html" }, 200, "content type"],
    ["5 KiB and a byte", { ...document, x: "x".repeat(5120) }, {}, 200, "size"],
    ["an array", [], {}, 200, "JSON"],
    ["half of a document", '{"client_id":', {}, 200, "JSON"],
    ["a member twice", '{"client_id":"a","client_id":"b"}', {}, 200, "JSON"],
  ])("refuses %s", async (_what, body, headers, status, failed) => {
    const { code, bad, stderr } = await check(body, headers, status);
    const isOfHost = failed === "status" || failed === "content type";
    expect(stderr).toContain(isOfHost ? "publish it at a public https address" : "publish what this prints");
    expect([code, bad.map((row) => row.check)]).toEqual([3, [failed]]);
    expect([bad[0]?.found, stderr]).toMatchSnapshot();
  });

  it.each([
    ["application/cimd+json; charset=utf-8", 0],
    ["Application/JSON", 0],
    ["application/json ;charset=utf-8", 0],
    ["application/a.b-c+json", 0],
    ["application/jsonp", 3],
    ["text/application/json", 3],
    ["application/+json", 3],
    ["application/json x", 3],
    ["", 3],
  ])("takes the media type %s: %i", async (type, code) => {
    expect((await check(document, { "content-type": type })).code).toBe(code);
  });

  it("names every rule that is broken, and takes what breaks none", async () => {
    const both = await check({ ...document, client_name: "", client_secret: "x", jwks: { keys: [{ d: "x" }] } });
    expect([both.code, both.bad.map((row) => row.check)]).toEqual([3, ["client_name", "secrets", "keys"]]);
    expect(JSON.parse(both.stderr).error.message).toMatch(/: client_name: must be a name; also: secrets, keys$/);
    for (const jwks of [{ keys: [{ kty: "OKP", x: "x" }] }, { keys: "x" }, "x", { keys: [7, null] }]) {
      const links = { logo_uri: "https://client.example/logo", a_uri_of: "http://x.example" };
      expect(await check({ ...document, jwks, ...links })).toMatchObject({ code: 0, bad: [] });
    }
  });

  it("asks for JSON in its own name, once unless --retries says more, and fails where no server answers", async () => {
    const asked: unknown[] = [];
    const site = () => nock("https://client.example").get("/agentauth/client.json");
    site().reply(503, "", { "retry-after": "0" });
    const once = await runCli(["client", "document", "--check", PAGE, "--json"]);
    expect(JSON.parse(once.stdout).at(-1)).toEqual({
      state: "failed",
      check: "status",
      found: "must be 200, and is 503",
    });
    site().replyWithError(Object.assign(new Error("reset"), { code: "ECONNRESET" }));
    const broken = await runCli(["client", "document", "--check", PAGE, "--json"]);
    expect([broken.code, broken.stdout]).toEqual([5, ""]);
    site().reply(503, "", { "retry-after": "0" });
    site().reply(function reply() {
      asked.push(this.req.headers);
      return [200, JSON.stringify(document), { "content-type": "application/json" }];
    });
    const again = await runCli(["client", "document", "--check", PAGE, "--json", "--retries", "1", "--timeout", "5"]);
    expect([again.code, asked]).toEqual([
      0,
      [expect.objectContaining({ accept: "application/json", "user-agent": expect.stringContaining("agentauth-cli") })],
    ]);
  });

  it("refuses an address that no issuer asks, and sends nothing there", async () => {
    const { code, stdout, stderr } = await runCli([
      "client",
      "document",
      "--check",
      "http://client.example/x",
      "--json",
    ]);
    expect([code, JSON.parse(stdout).map((row: Row) => `${row.state} ${row.check}`)]).toEqual([3, ["failed address"]]);
    expect([JSON.parse(stdout)[0].found, JSON.parse(stderr).error.hint]).toMatchSnapshot();
  });

  it("refuses an answer without a media type", async () => {
    nock("https://client.example").get("/agentauth/client.json").reply(200, JSON.stringify(document));
    const { code, stdout } = await runCli(["client", "document", "--check", PAGE, "--json"]);
    expect([code, JSON.parse(stdout).filter(({ state }: Row) => state !== "ok")]).toEqual([
      3,
      [{ state: "failed", check: "content type", found: 'must be application/json, and is ""' }],
    ]);
  });

  it.each([
    ["no fixed ports", { redirect_uris: ["http://127.0.0.1/callback", "http://localhost/callback"] }, "redirect_uris"],
    ["one fixed port less", { redirect_uris: DOCUMENT_REDIRECTS.slice(0, -1) }, "redirect_uris"],
    ["no refresh tokens", { grant_types: undefined }, "grant_types"],
    ["no refresh tokens in a list", { grant_types: ["authorization_code"] }, "grant_types"],
  ])("warns of %s", async (_what, members, member) => {
    const { code, bad } = await check({ ...document, ...members });
    expect([code, bad]).toEqual([0, [{ state: "warning", check: member, found: expect.stringContaining("lacks") }]]);
    expect(bad).toMatchSnapshot();
  });

  it("has no advice about ports for a web app", async () => {
    const { code, bad } = await check({ ...document, redirect_uris: ["https://client.example/callback"] });
    expect([code, bad]).toEqual([0, []]);
  });
});

it.skipIf(!openssl)("client document --check refuses a document on this machine, and checks the rest", async () => {
  const authority = makeAuthority();
  const { cert, key } = authority.sign({ name: "server", subject: "/CN=server", names: "IP:127.0.0.1" });
  const server = createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (request, response) => {
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ ...OURS, client_id: `https://${request.headers.host}${request.url}` }));
  });
  server.listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}/client.json`;
  const { code, stdout } = await runCli(["client", "document", "--check", url, "--json", "--ca-file", authority.ca]);
  const bad = (JSON.parse(stdout) as Row[]).filter(({ state }) => state !== "ok");
  const found = "must be a public address, and is a loopback one";
  expect([code, bad]).toEqual([3, [{ state: "failed", check: "host", found }]]);
});
