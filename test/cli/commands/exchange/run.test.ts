import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { decodeJwt } from "jose";
import { expect } from "vitest";
import { AgentClient } from "../../../../src/oauth/agent.js";
import { fileStore } from "../../../../src/store/file/file.js";
import { runCli, temporaryFolder } from "../../../helpers/cli.js";
import { startScene } from "../../../helpers/issuer.js";
import { harnessTest } from "../harness.js";

const API = "https://api.example";
const TYPE = "urn:ietf:params:oauth:token-type:";
const it = harnessTest({ machineGrants: true, exchangeAudiences: [API] }, "a b").extend(
  "exchange",
  ({ harness, me }) =>
    (...flags: string[]) =>
      me.run(["exchange", harness.url, ...flags]),
);

it("prints the new token and nothing else", async ({ exchange }) => {
  const { code, stdout, stderr } = await exchange("--audience", API);
  expect([code, stderr]).toEqual([0, ""]);
  expect(decodeJwt(stdout.trim())).toMatchObject({ sub: "alice", aud: API });
});

it("prints what the issuer said of it as JSON", async ({ exchange }) => {
  const { stdout } = await exchange("--resource", API, "--scope", "a", "--format", "json");
  expect(JSON.parse(stdout)).toMatchObject({ token_type: "Bearer", scope: "a", expires_in: expect.any(Number) });
});

it.for([
  ["header", /^Authorization: Bearer eyJ\S+\n$/],
  ["headers-json", /^\{"Authorization":"Bearer eyJ[^"]+"\}\n$/],
  ["env", /^AGENTAUTH_TOKEN=eyJ\S+\n$/],
] as const)("prints it as %s", async ([format, expected], { exchange }) => {
  expect((await exchange("--audience", API, "--format", format)).stdout).toMatch(expected);
});

it.for(["access_token", `${TYPE}access_token`])(
  "takes the subject token from a file, of type %s",
  async (type, { harness, me, exchange }) => {
    const file = join(temporaryFolder(), "subject");
    const { stdout: token } = await me.run(["token", harness.url]);
    writeFileSync(file, token, { mode: 0o600 });
    const { code, stdout } = await exchange(
      "--audience",
      API,
      "--subject-token-file",
      file,
      "--subject-token-type",
      type,
    );
    expect([code, decodeJwt(stdout.trim()).aud]).toEqual([0, API]);
  },
);

it.for<[string, string[], number, RegExp]>([
  ["an audience that the issuer does not serve", ["--audience", "other"], 6, /invalid_target/],
  ["scopes that the token does not have", ["--audience", API, "--scope", "c"], 6, /invalid_scope/],
  ["neither an audience nor a resource", [], 2, /--audience or --resource is required/],
  ["an unknown type", ["--audience", API, "--subject-token-type", "paper"], 2, /"paper" is not a token type/],
  [
    "the type of a subject token that is not given",
    ["--audience", API, "--subject-token-type", "jwt"],
    2,
    /--subject-token-type needs a subject token/,
  ],
  ["a subject token file that is absent", ["--audience", API, "--subject-token-file", "/nowhere"], 8, /\/nowhere/],
])("exits for %s, with nothing on standard output", async ([_what, flags, exit, words], { exchange }) => {
  const { code, stdout, stderr } = await exchange(...flags);
  expect([code, stdout, stderr]).toEqual([exit, "", expect.stringMatching(words)]);
  expect(stderr.replace(/127\.0\.0\.1:\d+/g, "<server>")).toMatchSnapshot();
});

it("exits with 4 without a login or a client", async ({ harness }) => {
  const env = { AGENTAUTH_SUBJECT_TOKEN: "some-subject-token" };
  const { code, stdout, stderr } = await harness.user().run(["exchange", harness.url, "--audience", API], { env });
  expect([code, stdout, stderr]).toEqual([4, "", expect.stringContaining("--client-id")]);
});

it("refuses an address that is none", async ({ me }) => {
  expect(await me.run(["exchange", "nowhere", "--audience", API])).toMatchObject({ code: 2, stdout: "" });
});

it("puts a token that is no access token in no header", async () => {
  const { mcp, issuer, login } = await startScene();
  const home = temporaryFolder();
  const exchange = "urn:ietf:params:oauth:grant-type:token-exchange";
  issuer.metadata["grant_types_supported"] = ["authorization_code", "refresh_token", exchange];
  await new AgentClient({ store: fileStore(home), login }).login(mcp.url);
  issuer.tokenAnswer = { token_type: "N_A", issued_token_type: `${TYPE}jwt` };
  const run = (format: string) =>
    runCli(["exchange", mcp.url, "--audience", API, "--format", format], { env: { AGENTAUTH_HOME: home } });
  for (const format of ["header", "headers-json"]) {
    const { code, stdout, stderr } = await run(format);
    expect([code, stdout, stderr]).toEqual([
      2,
      "",
      'error: the token is not an access token but "jwt", and cannot be sent in a header\nhint: use --format raw, or json\n',
    ]);
  }
  const json = JSON.parse((await run("json")).stdout);
  expect(json).toMatchObject({ token_type: "N_A", issued_token_type: `${TYPE}jwt` });
  expect((await run("raw")).stdout).toMatch(/^access-as-\d+\n$/);
  expect((await run("env")).stdout).toMatch(/^AGENTAUTH_TOKEN=access-as-\d+\n$/);
});

it("refuses the type of a subject token where none is given, without a login", async ({ harness }) => {
  const args = ["exchange", harness.url, "--audience", API, "--subject-token-type", "jwt", "--client-id", "x"];
  expect(await harness.user().run(args)).toMatchObject({ code: 2, stdout: "" });
});
