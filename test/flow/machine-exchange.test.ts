import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { decodeJwt } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { SandboxMachine } from "../../src/sandbox/index.js";
import { plant } from "../helpers/canaries.js";
import { temporaryFolder } from "../helpers/cli.js";
import { type Desk, type Newcomer, SIGN_IN, startDesk } from "./support.js";

const API = "https://api.example";
let desk: Desk;
let machine: SandboxMachine;
let url: string;
let person: Newcomer;

beforeAll(async () => {
  desk = await startDesk({ machineGrants: true, exchangeAudiences: [API, "billing"] });
  url = desk.url;
  if (!desk.sandbox.machine) throw new Error("there should be machines");
  machine = desk.sandbox.machine;
  plant("client_secret", machine.secretClient.clientSecret);
  person = desk.newcomer();
  await person.signIn("--scope", "a b");
});
afterAll(() => desk.close());

const SECRET = () => ({ AGENTAUTH_CLIENT_SECRET: machine.secretClient.clientSecret });
const toIssuer = () => ["--issuer", desk.sandbox.authUrl(desk.sandbox.ids.pool)];
const asService = () => ["--grant", "client-credentials", "--client-id", machine.secretClient.clientId, ...toIssuer()];

describe("exchange", () => {
  it("prints a token in the person's name for somebody else, and nothing else", async () => {
    const { code, stdout, stderr } = await person.run(["exchange", url, "--audience", API]);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout.endsWith("\n")).toBe(true);
    expect(decodeJwt(stdout.trim())).toMatchObject({ sub: "alice", aud: API, scope: "a b" });
  });

  it("asks for fewer scopes, and names a resource where that is wanted", async () => {
    const flags = ["--resource", API, "--scope", "a", "--requested-token-type", "access_token", "--format", "json"];
    const { stdout } = await person.run(["exchange", url, ...flags]);
    const said = JSON.parse(stdout) as Record<string, unknown>;
    expect(said).toMatchObject({
      issued_token_type: "urn:ietf:params:oauth:token-type:access_token",
      token_type: "Bearer",
      scope: "a",
      issuer: desk.sandbox.authUrl(desk.sandbox.ids.pool),
    });
    expect(said["expires_in"]).toBeGreaterThan(3500);
  });

  it.each([
    ["header", /^Authorization: Bearer eyJ\S+\n$/],
    ["headers-json", /^\{"Authorization":"Bearer eyJ[^"]+"\}\n$/],
    ["env", /^AGENTAUTH_TOKEN=eyJ\S+\n$/],
  ])("prints it as %s", async (format, expected) => {
    expect((await person.run(["exchange", url, "--audience", API, "--format", format])).stdout).toMatch(expected);
  });

  it("goes from a machine's own token", async () => {
    const me = desk.newcomer();
    const { stdout } = await me.run(["exchange", url, ...asService(), "--audience", "billing"], { env: SECRET() });
    expect(decodeJwt(stdout.trim())).toMatchObject({ sub: machine.secretClient.clientId, aud: "billing" });
  });

  it("logs the user in first, with --login", async () => {
    const { code, stdout } = await desk.newcomer().run(["exchange", url, "--audience", API, ...SIGN_IN]);
    expect(code).toBe(0);
    expect(decodeJwt(stdout.trim())).toMatchObject({ sub: "alice" });
  });

  it.each(["file", "stdin", "environment"])("takes the subject token from %s, and keeps it nowhere", async (from) => {
    const subject = (await person.run(["token", url])).stdout.trim();
    const me = desk.newcomer();
    const path = join(temporaryFolder(), "subject");
    writeFileSync(path, `${subject}\n`, { mode: 0o600 });
    const named = { file: ["--subject-token-file", path], stdin: ["--subject-token-file", "-"], environment: [] };
    const env = { ...SECRET(), ...(from === "environment" && { AGENTAUTH_SUBJECT_TOKEN: subject }) };
    const flags = [
      ...named[from as keyof typeof named],
      "--client-id",
      machine.secretClient.clientId,
      ...toIssuer(),
      "--audience",
      API,
    ];
    const { code, stdout, stderr } = await me.run(["exchange", url, ...flags], { env, stdin: subject });
    expect([code, stderr]).toEqual([0, ""]);
    expect(decodeJwt(stdout.trim())).toMatchObject({ sub: "alice", aud: API });
    expect(await me.grants()).toEqual([]);
  });

  it.each<[string, string[], number, RegExp]>([
    ["an audience that the issuer does not serve", ["--audience", "other"], 6, /invalid_target/],
    ["scopes that the token does not have", ["--audience", API, "--scope", "c"], 6, /invalid_scope/],
    ["no audience", [], 2, /--audience/],
    ["a type that is none", ["--audience", API, "--requested-token-type", "paper"], 2, /"paper" is not a token type/],
    ["a type of nothing", ["--audience", API, "--subject-token-type", "jwt"], 2, /--subject-token-file/],
    ["a type of no actor", ["--audience", API, "--actor-token-type", "jwt"], 2, /--actor-token-file/],
    [
      "two secrets in standard input",
      ["--audience", API, "--subject-token-file", "-", "--actor-token-file", "-"],
      2,
      /--subject-token-file - and --actor-token-file -/,
    ],
  ])("ends for %s, with nothing on standard output", async (_what, flags, exit, said) => {
    const { code, stdout, stderr } = await person.run(["exchange", url, ...flags]);
    expect([code, stdout]).toEqual([exit, ""]);
    expect(stderr).toMatch(said);
  });

  it("of a token that is none of the issuer's shows the token to nobody", async () => {
    const flags = ["--subject-token-file", "-", "--audience", API, "-v"];
    const { code, stdout, stderr } = await person.run(["exchange", url, ...flags], { stdin: "canary-subject-token" });
    expect([code, stdout]).toEqual([6, ""]);
    expect(stderr).toContain("invalid_request");
    expect(stderr).not.toContain("canary-subject-token");
  });

  it("needs a client where no login is stored", async () => {
    const me = desk.newcomer();
    const { code, stderr } = await me.run(["exchange", url, "--audience", API], {
      env: { AGENTAUTH_SUBJECT_TOKEN: "some-subject-token" },
    });
    expect(code).toBe(4);
    expect(stderr).toMatch(/--client-id/);
    expect(me.asked()).toEqual([]);
  });
});
