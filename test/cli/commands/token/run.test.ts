import { generateKeyPairSync } from "node:crypto";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { decodeJwt } from "jose";
import { expect } from "vitest";
import type { SandboxMachine } from "../../../../src/sandbox/index.js";
import { type RunOptions, temporaryFolder } from "../../../helpers/cli.js";
import { fixedText } from "../../../helpers/fixed-text.js";
import { machineTest, startHarness } from "../harness.js";

const it = machineTest().extend("token", ({ harness, me }) => {
  return (flags: readonly string[] = [], more: RunOptions = {}) => me.run(["token", harness.url, ...flags], more);
});

it("prints the stored token and nothing else", async ({ harness, token }) => {
  const { code, stdout, stderr } = await token();
  expect([code, stderr, decodeJwt(stdout.trim()).aud]).toEqual([0, "", harness.url]);
});

it.for<[string, RegExp]>([
  ["header", /^Authorization: Bearer \S+\n$/],
  ["headers-json", /^\{"Authorization":"Bearer [^"]+"\}\n$/],
  ["json", /^\{"access_token":"[^"]+","token_type":"Bearer","expires_at":/],
  ["env", /^AGENTAUTH_TOKEN=\S+\n$/],
  ["k8s", /^\{"apiVersion":"client.authentication.k8s.io\/v1","kind":"ExecCredential"/],
])("prints it as %s", async ([format, expected], { token }) => {
  expect(await token(["--format", format])).toMatchObject({ code: 0, stdout: expect.stringMatching(expected) });
});

it("gets a new one with --force-refresh, and exits with 5 where the issuer is down", async ({ faults, token }) => {
  const before = (await token()).stdout;
  const { code, stdout } = await token(["--force-refresh"]);
  expect([code, stdout === before]).toEqual([0, false]);
  faults.add({ kind: "status", status: 503, path: "token", times: 0 });
  expect(await token(["--force-refresh", "--retries", "0"])).toMatchObject({ code: 5, stdout: "" });
});

it("exits with 4 where no login is stored", async ({ harness }) => {
  const { code, stdout, stderr } = await harness.user().run(["token", harness.url]);
  expect([code, stdout, stderr]).toEqual([4, "", expect.stringContaining(`hint: agentauth login ${harness.url}\n`)]);
});

it("answers git and bazel for its own server, and no other", async ({ harness, token }) => {
  const { host, origin } = new URL(harness.url);
  const request = (name: string) => `protocol=http\nhost=${name}\ncapability[]=authtype\n\n`;
  const git = (stdin: string) => token(["--format", "git", "get"], { stdin });
  expect((await git(request(host))).stdout).toContain("authtype=Bearer\n");
  expect(await git(request("other.example"))).toMatchObject({ code: 0, stdout: "", stderr: "" });
  const verbose = await token(["--format", "git", "get", "--verbose"], { stdin: request("other.example") });
  expect([verbose.stdout, verbose.stderr]).toEqual([
    "",
    expect.stringContaining(`git asks for another server than ${harness.url}: nothing is printed\n`),
  ]);
  for (const text of [
    "protocol=http\n\n",
    `host=${host}\n\n`,
    `protocol=https\nhost=${host}\n\n`,
    `protocol=http\nhost=${host}/x\n\n`,
    `protocol=http\nhost=u@${host}\n\n`,
    `protocol=http\nhost=${host}\nhost=other.example\n\n`,
    `\nprotocol=http\nhost=${host}\n\n`,
    "",
  ]) {
    expect([text, (await git(text)).stdout]).toEqual([text, ""]);
  }
  const windows = await git(request(host).replaceAll("\n", "\r\n").replace("capability[]=authtype\r\n", ""));
  expect(windows.stdout).toMatch(/^username=.*\npassword=/);
  expect((await token(["--format", "git"], { stdin: "" })).stdout).not.toBe("");
  for (const operation of ["store", "erase"]) {
    expect(await token(["--format", "git", operation])).toMatchObject({ code: 0, stdout: "" });
  }
  const bazel = (stdin: string) => token(["--format", "bazel", "get"], { stdin });
  expect((await bazel(JSON.stringify({ uri: `${origin}/x` }))).stdout).toContain('"Authorization":["Bearer ');
  const other = await bazel('{"uri":"https://other.example/"}');
  expect([other.code, other.stdout, other.stderr]).toEqual([3, "", expect.stringContaining("bazel asks for")]);
});

it.for<[string, string[], string, Record<string, string>, RegExp]>([
  ["an operation without a format", ["get"], "", {}, /the operation "get" needs --format git or bazel/],
  ["an unknown operation", ["--format", "git", "put"], "", {}, /the operation "put" must be one of/],
  ["a request that is no JSON", ["--format", "bazel", "get"], "{", {}, /is not JSON/],
  ["a request without an address", ["--format", "bazel", "get"], "{}", {}, /has no "uri"/],
  ["a request with an address that is none", ["--format", "bazel", "get"], '{"uri":"x"}', {}, /which is not a URL/],
  ["a version that kubectl does not have", ["--format", "k8s"], "", { KUBERNETES_EXEC_INFO: "{}" }, /apiVersion/],
  ["a request of kubectl that is no JSON", ["--format", "k8s"], "", { KUBERNETES_EXEC_INFO: "{" }, /is not JSON/],
  [
    "a secret on the input that carries the request",
    ["--format", "git", "get", "--client-id", "x", "--client-secret-file", "-"],
    "x",
    {},
    /reads standard input, which carries the request of git/,
  ],
  ["an address that is none", [], "", {}, /nowhere/],
])("refuses %s", async ([what, flags, stdin, env, words], { harness, me }) => {
  const url = what === "an address that is none" ? "nowhere" : harness.url;
  const { code, stdout, stderr } = await me.run(["token", url, ...flags], { stdin, env });
  expect([code, stdout, stderr]).toEqual([2, "", expect.stringMatching(words)]);
  expect(fixedText(stderr)).toMatchSnapshot();
});

it("hands over no token that is bound to a key, but as JSON", async () => {
  const bound = await startHarness({ dpop: "required" });
  const owner = bound.user();
  await owner.logIn();
  const raw = await owner.run(["token", bound.url]);
  const json = await owner.run(["token", bound.url, "--format", "json"]);
  await bound.close();
  expect([raw.code, raw.stdout]).toEqual([2, ""]);
  expect([json.code, JSON.parse(json.stdout)]).toMatchObject([0, { token_type: "DPoP" }]);
});

const folder = temporaryFolder();
/** A file of this text and mode. */
function file(name: string, text: string, mode = 0o600): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}
/** The flags of a grant with a client. */
const grant = ({ issuer }: SandboxMachine, name: string, clientId: string, ...flags: string[]) => [
  ...["--grant", name, "--client-id", clientId, "--issuer", issuer],
  ...flags,
];
const idpFlags = ({ idp }: SandboxMachine) => [
  "--idp-token-endpoint",
  idp.tokenEndpoint,
  "--idp-client-id",
  idp.clientId,
];

it.for<[string, (machine: SandboxMachine) => [flags: string[], env: Record<string, string>, stdin?: string]]>([
  [
    "a client secret in the environment",
    (machine) => [
      grant(machine, "client-credentials", machine.secretClient.clientId),
      { AGENTAUTH_CLIENT_SECRET: machine.secretClient.clientSecret },
    ],
  ],
  [
    "a client secret in a file",
    (machine) => {
      const path = file("secret", `${machine.secretClient.clientSecret}\n`);
      return [grant(machine, "client-credentials", machine.secretClient.clientId, "--client-secret-file", path), {}];
    },
  ],
  [
    "a private key in a file",
    (machine) => {
      const flags = ["--private-key", file("key.pem", machine.keyClient.privateKey)];
      return [grant(machine, "client-credentials", machine.keyClient.clientId, ...flags), {}];
    },
  ],
  [
    "a private key on standard input",
    (machine) => {
      const flags = ["--private-key", "-"];
      return [
        grant(machine, "client-credentials", machine.keyClient.clientId, ...flags),
        {},
        machine.keyClient.privateKey,
      ];
    },
  ],
  [
    "an assertion",
    (machine) => {
      const path = file("assertion", machine.assertion(), 0o644);
      return [grant(machine, "jwt-bearer", machine.workloadClient.clientId, "--assertion", `file:${path}`), {}];
    },
  ],
  ...["environment", "file"].map((from): [string, (machine: SandboxMachine) => [string[], Record<string, string>]] => [
    `an ID token in the ${from}`,
    (machine) => {
      const secrets = {
        AGENTAUTH_CLIENT_SECRET: machine.secretClient.clientSecret,
        AGENTAUTH_IDP_CLIENT_SECRET: machine.idp.clientSecret,
      };
      const flags = grant(machine, "id-jag", machine.secretClient.clientId, ...idpFlags(machine));
      const token = machine.idp.idToken();
      const set = from === "environment" ? token : `file:${file("id-token", token)}`;
      return [flags, { ...secrets, AGENTAUTH_ID_TOKEN: set }];
    },
  ]),
])("gets the token of a machine with %s", async ([_what, given], { harness, machine }) => {
  const [flags, env, stdin = ""] = given(machine);
  const { code, stdout, stderr } = await harness.user().run(["token", harness.url, ...flags], { env, stdin });
  expect([code, stderr]).toEqual([0, ""]);
  expect(stdout.trim().split(".")).toHaveLength(3);
});

it.for<[string, () => string[], number, RegExp]>([
  ["an assertion file that is absent", () => ["/nowhere"], 2, /cannot be read/],
  ["an assertion file that is a folder", () => [folder], 8, /is not an ordinary file/],
  [
    "an assertion file that is too large",
    () => [file("large", "x".repeat(65 * 1024))],
    2,
    /is larger than 65536 bytes/,
  ],
  ["an assertion file that others can write", () => [file("open", "x", 0o666)], 8, /can be written by others/],
])("refuses %s", async ([_what, args, exit, words], { harness, machine }) => {
  const flags = grant(machine, "jwt-bearer", machine.workloadClient.clientId, "--assertion", `file:${args()}`);
  const { code, stdout, stderr } = await harness.user().run(["token", harness.url, ...flags]);
  expect([code, stdout, stderr]).toEqual([exit, "", expect.stringMatching(words)]);
  expect(fixedText(stderr)).toMatchSnapshot();
});

it("refuses a key on the command line, an open file with a secret, and a user's grant without an ID token", async ({
  machine,
  token,
}) => {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const pem = privateKey.export({ format: "pem", type: "pkcs8" }).toString();
  const typed = await token(grant(machine, "client-credentials", "x", "--private-key", pem));
  expect([typed.code, typed.stderr]).toEqual([2, expect.stringContaining("a key must not be on the command line")]);
  expect(typed.stderr).not.toContain(pem.split("\n")[1]);
  const open = file("open-secret", "some-secret", 0o644);
  const shared = await token(grant(machine, "client-credentials", "x", "--client-secret-file", open));
  expect([shared.code, shared.stdout]).toEqual([8, ""]);
  const env = { AGENTAUTH_IDP_CLIENT_SECRET: machine.idp.clientSecret };
  const without = await token(grant(machine, "id-jag", machine.secretClient.clientId, ...idpFlags(machine)), { env });
  expect([without.code, without.stderr]).toEqual([2, expect.stringContaining("requires the ID token of a user")]);
});
