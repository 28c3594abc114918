import { expect } from "vitest";
import type { Grant } from "../../../../src/oauth/model/grant.js";
import { fixedText } from "../../../helpers/fixed-text.js";
import { machineTest } from "../desk.js";

const it = machineTest()
  /** The client of the sandbox that is registered already. */
  .extend("clientId", { scope: "file" }, ({ machine }) => machine.secretClient.clientId)
  /** Gets a token with the client, which binds it. */
  .extend("bind", ({ desk, machine, clientId, user }) => async (...flags: string[]) => {
    const args = ["token", desk.url, "--grant", "client-credentials", "--client-id", clientId, "--issuer"];
    const env = { AGENTAUTH_CLIENT_SECRET: machine.secretClient.clientSecret };
    expect(await user.run([...args, machine.issuer, ...flags], { env })).toMatchObject({ code: 0, stderr: "" });
  });

it("list prints the issuer that each client is bound to", async ({ desk, user, clientId, bind }) => {
  await bind();
  const { code, stdout } = await user.run(["client", "list", "--json"]);
  const issuer = desk.sandbox.machine?.issuer;
  const row = { client_id: clientId, issuer, bound_by: "issuer", bound_at: expect.any(String), profile: "default" };
  expect([code, JSON.parse(stdout)]).toEqual([0, [row]]);
});

it("list is of one profile, and of every profile with --all", async ({ desk, user, clientId, bind }) => {
  await bind();
  await user.run(["config", "set", "pool", "p", "--profile", "work"]);
  const own = await user.run(["client", "list", "--json", "--profile", "work"]);
  expect(own).toMatchObject({ code: 0, stdout: "[]\n", stderr: "no client is bound to an issuer in profile work\n" });
  const all = await user.run(["client", "list", "--all", "--json", "--profile", "work"]);
  expect(JSON.parse(all.stdout)).toMatchObject([{ client_id: clientId, profile: "default" }]);
  for (const format of ["table", "csv"]) {
    const shown = await user.run(["client", "list", "-o", format]);
    const fixed = [
      [clientId, "<client>"],
      [desk.sandbox.machine?.issuer ?? "", "<issuer>"],
    ] as const;
    const text = fixed.reduce((all, [from, to]) => all.replaceAll(from, to), shown.stdout);
    expect(text.replace(/\d{4}-[-\dT:.]+Z/g, "<time>").replace(/ +/g, " ")).toMatchSnapshot(format);
  }
  const none = await desk.user().run(["client", "list", "--all"]);
  expect(none).toMatchObject({ code: 0, stdout: "", stderr: "no client is bound to an issuer\n" });
});

it("list sorts by client", async ({ user }) => {
  for (const id of ["b", "a"]) {
    const binding = {
      profile: "default",
      clientId: id,
      issuer: "https://as.example",
      boundBy: "issuer",
      boundAt: 0,
    } as const;
    await user.store.saveBinding(binding, undefined);
  }
  expect((await user.run(["client", "list", "--jq", ".[].client_id"])).stdout).toBe("a\nb\n");
  const removed = await user.run(["client", "forget", "b", "-o", "table"]);
  expect(removed.stdout).toMatchSnapshot();
  expect((await user.run(["client", "list", "--jq", ".[].client_id"])).stdout).toBe("a\n");
});

it("forget removes a binding, and says where a stored login still has it", async ({ desk, user, clientId, bind }) => {
  await bind();
  await user.logIn();
  await user.change(({ client }) => ({ client: { ...client, clientId, source: "pre-registered" } }));
  const first = await user.run(["client", "forget", "--json", "--", clientId]);
  expect([first.code, JSON.parse(first.stdout)]).toEqual([
    0,
    [{ client_id: clientId, removed: true, profile: "default" }],
  ]);
  const [{ issuer }] = (await user.store.list()) as [Grant];
  expect(first.stderr.split("\n")).toEqual([
    `the client "${clientId}" is no longer bound to an issuer in profile default`,
    `warning: a stored login still binds this client to "${issuer}"; log out first, then run client forget again: agentauth logout ${desk.url}`,
    "",
  ]);
  const other = await user.run(["client", "forget", "other"]);
  expect(other.stderr).toBe('the client "other" was not bound to an issuer in profile default\n');
  const registered = desk.user();
  await registered.logIn();
  const [{ client }] = (await registered.store.list()) as [Grant];
  const dynamic = await registered.run(["client", "forget", "--", client.clientId]);
  expect(dynamic.stderr).toBe(`the client "${client.clientId}" was not bound to an issuer in profile default\n`);
});

it("forget of a client that is not bound says so, and prints nothing without a format", async ({ user }) => {
  expect(await user.run(["client", "forget", "nobody"])).toMatchObject({
    code: 0,
    stdout: "",
    stderr: 'the client "nobody" was not bound to an issuer in profile default\n',
  });
});

it("forget without a client is refused", async ({ user }) => {
  const { code, stdout, stderr } = await user.run(["client", "forget"]);
  expect([code, stdout, stderr]).toEqual([2, "", expect.stringContaining("client_id")]);
  expect(fixedText(stderr)).toMatchSnapshot();
});
