import { execFileSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { checkHandOver, formatToken, type TokenFormat, UNKNOWN_ASKER } from "../../../src/cli/clients/token-formats.js";
import { readCredentialRequest } from "../../../src/cli/commands/token/run.js";
import type { TokenFlags } from "../../../src/cli/flags/agent.js";
import { AccessToken } from "../../../src/oauth/model/grant.js";
import { Secret } from "../../../src/redact.js";
import { madeGrant } from "../../helpers/grant.js";
import type { MemoryIoOptions } from "../../helpers/memory-io.js";
import { failureOf, memoryContext } from "../commands/request/support.js";

const SERVER = "https://mcp.example/mcp";
const NOW = 1_900_000_000_000;

function tokenOf(value: string, expiresAt: number | undefined = 2_000_000_000_500): AccessToken {
  const grant = madeGrant();
  return new AccessToken({ ...grant, tokens: { ...grant.tokens, accessToken: new Secret(value), expiresAt } });
}

function print(format: TokenFormat, token = tokenOf("abc"), asker = {}): string {
  return formatToken(format, token, { now: NOW, ...UNKNOWN_ASKER, ...asker });
}

describe("the forms of a token", () => {
  it("are those of their protocols", () => {
    expect(print("raw")).toBe("abc\n");
    expect(print("header")).toBe("Authorization: Bearer abc\n");
    expect(JSON.parse(print("headers-json"))).toEqual({ Authorization: "Bearer abc" });
    expect(print("env")).toBe("AGENTAUTH_TOKEN=abc\n");
    expect(JSON.parse(print("k8s"))).toEqual({
      apiVersion: "client.authentication.k8s.io/v1",
      kind: "ExecCredential",
      status: { token: "abc", expirationTimestamp: "2033-05-18T03:33:20Z" },
    });
    expect(JSON.parse(print("bazel"))).toEqual({
      headers: { Authorization: ["Bearer abc"] },
      expires: "2033-05-18T03:33:20Z",
    });
    const whole = {
      ...{ access_token: "abc", token_type: "Bearer", expires_at: "2033-05-18T03:33:20.500Z", expires_in: 100_000_000 },
      ...{ scope: "tools", resource: "https://mcp.example/mcp", issuer: "https://as.example/pool" },
    };
    expect(JSON.parse(print("json"))).toEqual(whole);
    const expired = { ...whole, expires_at: new Date(NOW - 1).toISOString(), expires_in: 0 };
    expect(JSON.parse(print("json", tokenOf("abc", NOW - 1)))).toEqual(expired);
    const bound = { value: "abc", expiresAt: undefined, scope: undefined, issuer: "i", tokenType: "DPoP" };
    expect(JSON.parse(formatToken("json", bound, { now: NOW, ...UNKNOWN_ASKER }))).toEqual({
      ...{ access_token: "abc", token_type: "DPoP", expires_at: null, expires_in: null, scope: null, issuer: "i" },
    });
    for (const format of ["headers-json", "json", "k8s", "bazel"] as const) expect(print(format)).toMatch(/[^\n]\n$/);
  });

  it("set the variable in PowerShell and cmd.exe, and run nothing there", () => {
    expect(print("powershell")).toBe("$env:AGENTAUTH_TOKEN = 'abc'\n");
    expect(print("powershell", tokenOf("a'; calc; '\u2019$(x)"))).toBe(
      "$env:AGENTAUTH_TOKEN = 'a''; calc; ''\u2019\u2019$(x)'\n",
    );
    expect(print("cmd", tokenOf("a.b_c~d+e/f-g=="))).toBe('set "AGENTAUTH_TOKEN=a.b_c~d+e/f-g=="\n');
    for (const value of ['a" & calc', "%PATH%", "a^b", "a!b!", ""])
      expect(() => print("cmd", tokenOf(value))).toThrow("cmd.exe may interpret");
  });

  it("give git the token as such where it knows what that is, else as a password", () => {
    const expiry = "password_expiry_utc=2000000000\n";
    expect(print("git")).toBe(`capability[]=authtype\nauthtype=Bearer\nephemeral=1\ncredential=abc\n${expiry}`);
    expect(print("git", tokenOf("abc"), { authtype: false })).toBe(`username=agentauth\npassword=abc\n${expiry}`);
  });

  it("leave the end out where it is not known", () => {
    const endless = new AccessToken(madeGrant({ tokens: { ...madeGrant().tokens, expiresAt: undefined } }));
    expect(print("git", endless)).not.toContain("expiry");
    expect(print("bazel", endless)).not.toContain("expires");
    expect(print("k8s", endless)).not.toContain("expiration");
    expect(JSON.parse(print("json", endless))).toMatchObject({ expires_at: null, expires_in: null });
  });

  it.each([
    ...["abc", "a.b_c~d+e/f-g==", "~root", "=ls", "a'b", "a b", "$(id)", "`id`", 'a"b', "a;b", "a&b", "a\\b", "#a"],
    ...["*"],
  ])("as a variable, %s comes back from a shell's eval as it was", (value) => {
    const script = `${'eval "$1"\n'}printf %s "$AGENTAUTH_TOKEN"`;
    const read = execFileSync("sh", ["-c", script, "sh", print("env", tokenOf(value))], { encoding: "utf8" });
    expect(read).toBe(value);
  });

  it("as a variable, a token of the usual characters has no quotes, which files of variables would keep", () => {
    expect(print("env", tokenOf("aZ0.b_c~d+e/f-g=="))).toBe("AGENTAUTH_TOKEN=aZ0.b_c~d+e/f-g==\n");
  });
});

it("a token that is bound to a key is not handed over alone", () => {
  const server = "https://mcp.example/mcp?a=$b";
  expect(checkHandOver({ tokenType: "Bearer", server }, "exec")).toBeUndefined();
  expect(() => checkHandOver({ tokenType: "DPoP", server }, "exec")).toThrow(
    expect.objectContaining({
      code: "usage",
      message: `the token for "${server}" is bound to a key of this machine (DPoP, RFC 9449), and exec hands over the token alone`,
      hint: `agentauth request '${server}' and agentauth mcp prove the key; token --format json says of what type the token is`,
    }),
  );
  expect(() => print("cmd", tokenOf("a b"))).toThrow(
    expect.objectContaining({
      code: "usage",
      message: "the token has characters that cmd.exe may interpret",
      hint: "use --format raw, or agentauth exec",
    }),
  );
});

describe("what a credential helper is asked", () => {
  const ask = (flags: Partial<TokenFlags>, io: MemoryIoOptions = {}, server = SERVER) =>
    readCredentialRequest(server, { url: server, ...flags }, memoryContext(io));
  const git = (stdin: string, operation: string | undefined = "get", server = SERVER) =>
    ask({ format: "git", ...(operation !== undefined && { operation }) }, { stdin }, server);

  it("by git with the capability, and without", async () => {
    const requested = "protocol=https\nhost=mcp.example\n";
    expect(await git(`capability[]=authtype\ncapability[]=state\n${requested}\n`)).toMatchObject({ authtype: true });
    expect(await git(`${requested}wwwauth[]=Bearer realm="x"\n\n`)).toMatchObject({ authtype: false });
  });

  it.each([
    ["the port that is meant anyway", "protocol=https\nhost=mcp.example:443\n", SERVER],
    ["another spelling of the case", "protocol=HTTPS\nhost=MCP.example\n", SERVER],
    ["a port", "protocol=http\nhost=127.0.0.1:8080\n", "http://127.0.0.1:8080/mcp"],
    ["an IPv6 address", "protocol=http\nhost=[::1]:8080\n", "http://[::1]:8080/mcp"],
    ["line ends of Windows", "protocol=https\r\nhost=mcp.example\r\n\r\n", SERVER],
    ["a path, which every repository has", "protocol=https\nhost=mcp.example\npath=other.git\n", SERVER],
  ])("is answered for %s", async (_what, stdin, server) => {
    expect(await git(stdin, "get", server)).toBeDefined();
  });

  it.each([
    ["another host", "protocol=https\nhost=evil.example\n"],
    ["a host that begins alike", "protocol=https\nhost=mcp.example.evil.example\n"],
    ["another port", "protocol=https\nhost=mcp.example:8443\n"],
    ["another scheme", "protocol=http\nhost=mcp.example\n"],
    ["a user name for a host", "protocol=https\nhost=evil.example@mcp.example\n"],
    ["a host with a path", "protocol=https\nhost=mcp.example/x\n"],
    ["a host with a backslash", "protocol=https\nhost=mcp.example\\@evil.example\n"],
    ["a scheme with a host in it", "protocol=https://mcp.example/?\nhost=evil.example\n"],
    ["two hosts", "protocol=https\nhost=mcp.example\nhost=evil.example\n"],
    ["no host", "protocol=https\n"],
    ["no scheme", "host=mcp.example\n"],
    ["the host behind the end of the request", "protocol=https\n\nhost=mcp.example\n"],
    ["nothing at all", ""],
  ])("is not answered for %s", async (_what, stdin) => {
    expect(await git(stdin)).toBeUndefined();
  });

  it("is checked also where the operation is missing, unless nothing is asked", async () => {
    expect(await ask({ format: "git" }, { stdin: "protocol=https\nhost=evil.example\n" })).toBeUndefined();
    expect(await ask({ format: "git" })).toMatchObject({ authtype: true });
    expect(await ask({ format: "git", operation: "get" }, { tty: true })).toMatchObject({ authtype: true });
  });

  it.each(["git", "bazel"] as const)("is not answered where %s wants to store or to erase", async (format) => {
    expect(await ask({ format, operation: "store" })).toBeUndefined();
    expect(await ask({ format, operation: "erase" })).toBeUndefined();
  });

  it.each([
    ["an operation that there is not", { format: "git", operation: "approve" }, {}],
    ["an operation for another format", { format: "raw", operation: "get" }, {}],
    ["an operation for no format", { operation: "get" }, {}],
    ["a secret on the same standard input", { format: "git", operation: "get", clientSecretFile: "-" }, {}],
    ["more than a request can be", { format: "git", operation: "get" }, { stdin: "x".repeat(65_537) }],
    ["no request of bazel's", { format: "bazel", operation: "get" }, {}],
    ["no JSON", { format: "bazel", operation: "get" }, { stdin: "{" }],
    ["no uri", { format: "bazel", operation: "get" }, { stdin: "{}" }],
    ["a uri that is none", { format: "bazel", operation: "get" }, { stdin: '{"uri":"x"}' }],
    ["two uris", { format: "bazel", operation: "get" }, { stdin: `{"uri":"${SERVER}","uri":"https://evil.example"}` }],
  ] as const)("must not be %s", async (_what, flags, io) => {
    expect(await failureOf(ask(flags, io))).toMatchObject({ class: "usage" });
  });

  it("is refused where bazel asks for another origin", async () => {
    const bazel = (uri: string) => ask({ format: "bazel", operation: "get" }, { stdin: JSON.stringify({ uri }) });
    expect(await bazel("https://mcp.example/some/thing")).toBeDefined();
    for (const uri of ["https://evil.example/mcp", "http://mcp.example/mcp", "https://mcp.example@evil.example/"]) {
      expect(await failureOf(bazel(uri))).toMatchObject({ class: "refused", code: "bad_address" });
    }
  });

  it("by kubectl decides the version of the answer", async () => {
    const k8s = (info: string | undefined) => ask({ format: "k8s" }, { env: { KUBERNETES_EXEC_INFO: info } });
    const versionOf = (version: unknown) => JSON.stringify({ kind: "ExecCredential", apiVersion: version });
    expect(await k8s(undefined)).toMatchObject({ apiVersion: "client.authentication.k8s.io/v1" });
    for (const version of ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"]) {
      expect(await k8s(versionOf(version))).toMatchObject({ apiVersion: version });
    }
    for (const info of [versionOf("client.authentication.k8s.io/v1alpha1"), versionOf(1), "{}", "[]", "{"]) {
      expect(await failureOf(k8s(info))).toMatchObject({ class: "usage" });
    }
  });
});
