import { describe, expect } from "vitest";
import { flowTest, type User } from "./support.js";

const it = flowTest();

const attributes = (address: string) => {
  const { protocol, host } = new URL(address);
  return `protocol=${protocol.slice(0, -1)}\nhost=${host}\n\n`;
};

describe("the program as a credential helper", () => {
  const helper = (of: User, format: string, words: string[], stdin = "", env: Record<string, string> = {}) =>
    of.run(["token", of.url, "--format", format, ...words], { stdin, env });

  it("hands git the token as such where git knows what that is", async ({ url, user }) => {
    const { code, stdout, stderr } = await helper(user, "git", ["get"], `capability[]=authtype\n${attributes(url)}`);
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(
      /^capability\[\]=authtype\nauthtype=Bearer\nephemeral=1\ncredential=\S+\npassword_expiry_utc=\d+\n$/,
    );
    expect(stdout).toContain(`credential=${user.token}\n`);
  });

  it("hands bazel the headers for its server, and refuses another", async ({ url, user }) => {
    const mine = await helper(user, "bazel", ["get"], JSON.stringify({ uri: `${url}/x` }));
    expect(JSON.parse(mine.stdout)).toMatchObject({ headers: { Authorization: [`Bearer ${user.token}`] } });
    const other = await helper(user, "bazel", ["get"], '{"uri":"https://evil.example/"}');
    expect([other.code, other.stdout]).toEqual([3, ""]);
    expect(other.stderr).toContain('"https://evil.example/"');
  });

  it("answers kubectl in the version that kubectl reads", async ({ user }) => {
    const info = (version: string) => ({ KUBERNETES_EXEC_INFO: JSON.stringify({ apiVersion: version }) });
    const beta = await helper(user, "k8s", [], "", info("client.authentication.k8s.io/v1beta1"));
    expect(JSON.parse(beta.stdout)).toMatchObject({
      apiVersion: "client.authentication.k8s.io/v1beta1",
      kind: "ExecCredential",
      status: { token: user.token },
    });
    const unknown = await helper(user, "k8s", [], "", info("client.authentication.k8s.io/v9"));
    expect([unknown.code, unknown.stdout]).toEqual([2, ""]);
  });

  it.for<[string, string[]]>([
    ["git", ["get"]],
    ["bazel", ["get"]],
    ["k8s", []],
    ["env", []],
    ["headers-json", []],
    ["json", []],
    ["header", []],
    ["raw", []],
  ])("%s prints nothing where no login is stored, and ends with 4", async ([format, words], { me, url }) => {
    const stdin = format === "git" ? attributes(url) : format === "bazel" ? JSON.stringify({ uri: url }) : "";
    const { code, stdout, stderr } = await helper(me, format, words, stdin);
    expect([code, stdout]).toEqual([4, ""]);
    expect(stderr).toContain("agentauth login");
  });

  it.for([
    ["git", "list"],
    ["bazel", "list"],
    ["raw", "get"],
  ])("%s does not take %s for an operation", async ([format = "", word = ""], { user }) => {
    const { code, stdout } = await helper(user, format, [word]);
    expect([code, stdout]).toEqual([2, ""]);
  });
});
