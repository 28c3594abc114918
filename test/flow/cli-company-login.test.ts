import { decodeJwt } from "jose";
import { describe, expect } from "vitest";
import { fileStore } from "../../src/store/file/file.js";
import { expireIdToken, loginAtIdp, machineTest, tokenRequests } from "./machine-support.js";
import { callbackOf, FETCH_BROWSER, fastClock } from "./support.js";

const BROWSER = ["--browser", FETCH_BROWSER];

interface Begun {
  login_id: string;
  url: string;
  finish: string;
}

const it = machineTest({ revocation: true, deviceFlow: true })
  /** `agentauth login --idp`. */
  .extend(
    "logInAtIdp",
    ({ me, machine }) =>
      (...flags: string[]) =>
        me.run(loginAtIdp(machine, ...flags)),
  )
  /** The first of two steps, with one of the flows. */
  .extend(
    "begin",
    ({ me, machine: { idp } }) =>
      (flow: string) =>
        me.run([
          ...["login", "--idp", idp.issuer, "--idp-client-id", idp.nativeClient.clientId],
          ...["--flow", flow, "--no-wait", "--json"],
        ]),
  )
  /** The flags of the first call at a server, which name its client and the issuer of that. */
  .extend("client", ({ machine }) => ["--client-id", machine.workloadClient.clientId, "--issuer", machine.issuer]);

describe("agentauth login --idp", () => {
  it("logs in once, and later commands need neither a prompt nor flags", async ({ client, logInAtIdp, me, url }) => {
    const login = await logInAtIdp("--json");
    expect([login.code, JSON.parse(login.stdout)]).toEqual([
      0,
      expect.objectContaining({ logged_in: true, grant: "idp", client_id: "sandbox-desktop", refreshable: true }),
    ]);
    expect(login.stderr).toContain("agentauth token <mcp_url> needs no login");
    const unnamed = await me.run(["mcp", "tools", url, "--no-login"]);
    const flags = `--client-id <client_id> --issuer ${client.at(-1)}`;
    expect([unnamed.code, unnamed.stderr]).toEqual([
      4,
      expect.stringContaining(`\nhint: name it: agentauth token ${url} ${flags}\n`),
    ]);
    const first = await me.run(["token", url, "--no-login", ...client]);
    expect([first.code, first.stderr]).toEqual([0, ""]);
    expect(decodeJwt(first.stdout.trim())).toMatchObject({ sub: "alice", aud: url });
    const tools = await me.run(["mcp", "tools", url, "--no-login", "--json"]);
    expect([tools.code, tools.stderr]).toEqual([0, ""]);
    expect((await me.run(["token", url, "--no-login"])).stdout).toBe(first.stdout);
    const status = JSON.parse((await me.run(["status", "--json"])).stdout) as { grant: string; server: string }[];
    expect(status.map(({ grant }) => grant).sort()).toEqual(["id-jag", "idp"]);
  });

  it("prints that login, whatever other logins have the address of the provider", async ({
    logInAtIdp,
    machine,
    me,
  }) => {
    await me.logIn();
    const [grant] = await me.grants();
    if (grant === undefined) throw new Error("no login is stored");
    await fileStore(me.home).save({ ...grant, server: machine.idp.issuer, generation: 1 }, undefined);
    const login = await logInAtIdp("--json");
    expect([login.code, JSON.parse(login.stdout)]).toMatchObject([0, { grant: "idp", account: "grant:idp" }]);
  });

  it("is renewed once by many commands at the same time", async ({ client, logInAtIdp, machine, me, url }) => {
    await logInAtIdp();
    await me.run(["token", url, ...client]);
    await me.age(0);
    await expireIdToken(me, machine);
    const before = tokenRequests(me).length;
    const runs = await Promise.all(Array.from({ length: 6 }, () => me.run(["token", url, "--no-login"])));
    expect(runs.map(({ code, stderr }) => [code, stderr])).toEqual(runs.map(() => [0, ""]));
    expect(new Set(runs.map(({ stdout }) => stdout)).size).toBe(1);
    expect(tokenRequests(me).slice(before)).toEqual([
      "POST /idp/token refresh_token 200",
      "POST /idp/token urn:ietf:params:oauth:grant-type:token-exchange 200",
      "POST /<pool>/token urn:ietf:params:oauth:grant-type:jwt-bearer 200",
    ]);
  });

  it("is suggested again, with its flags, where the provider has ended it", async ({
    client,
    faults,
    logInAtIdp,
    machine,
    me,
    url,
  }) => {
    await logInAtIdp();
    await expireIdToken(me, machine);
    faults.add({ kind: "refuse-refresh", times: 0 });
    const { code, stderr } = await me.run(["token", url, "--no-login", ...client]);
    expect([code, stderr]).toEqual([4, expect.stringContaining(`agentauth login --idp ${machine.idp.issuer}`)]);
    const agents = await me.run(["token", url, ...client], { env: { AGENTAUTH_AGENT: "1" } });
    expect(agents.stderr).toContain(`login --idp ${machine.idp.issuer} --no-wait --json`);
    faults.clear();
    // The client is that of the earlier login.
    expect((await me.run(["login", "--idp", machine.idp.issuer, ...BROWSER])).code).toBe(0);
    expect((await me.run(["token", url, "--no-login", ...client])).code).toBe(0);
  });

  it("ends with logout --idp, and so does all that came from it", async ({ client, logInAtIdp, me, url }) => {
    await logInAtIdp();
    await me.run(["token", url, ...client]);
    const { code, stdout } = await me.run(["logout", "--idp", "--json"]);
    expect([code, JSON.parse(stdout)]).toMatchObject([
      0,
      [
        { removed: true, revoked: true, account: "grant:idp" },
        { removed: true, server: url },
      ],
    ]);
    expect(await me.grants()).toEqual([]);
    expect((await me.run(["token", url, "--no-login", ...client])).code).toBe(4);
    expect((await me.run(["logout", "--idp"])).stderr).toBe("not logged in at an identity provider\n");
  });

  it("can be made in two steps, as an agent does it", async ({ begin, client, machine, me, url }) => {
    const { issuer } = machine.idp;
    const begun = await begin("paste");
    const { finish, login_id, ...started } = JSON.parse(begun.stdout) as Begun;
    expect(finish).toBe(`agentauth login --idp ${issuer} --wait ${login_id}`);
    const status = await me.run(["status", "--json"]);
    expect([JSON.parse(status.stdout), status.stderr]).toEqual([
      [expect.objectContaining({ grant: "idp", state: "pending", login_id })],
      expect.stringContaining(finish),
    ]);
    const atServer = await me.run(["login", url, "--wait", login_id]);
    expect([atServer.code, atServer.stderr]).toEqual([2, expect.stringContaining(`is for ${issuer}`)]);
    const { code, stdout, stderr } = await me.run([...finish.split(" ").slice(1), "--json"], {
      stdin: await callbackOf(started.url),
    });
    expect([code, stderr]).toEqual([0, expect.stringContaining(`logged in at the identity provider ${issuer}`)]);
    expect(JSON.parse(stdout)).toMatchObject({ logged_in: true, grant: "idp", client_id: "sandbox-desktop" });
    expect((await me.run(["token", url, "--no-login", ...client])).code).toBe(0);
  });

  it("can be made with a code on another device", async ({ begin, me }) => {
    const begun = await begin("device");
    const { finish, url } = JSON.parse(begun.stdout) as Begun;
    await (await fetch(url)).text();
    const { code, stdout } = await me.run([...finish.split(" ").slice(1), "--json"], { clock: fastClock(20) });
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { logged_in: true, grant: "idp" }]);
  });

  it.for<[string, string[], RegExp]>([
    ["a server", ["https://mcp.example/mcp", ...BROWSER], /--idp and a server do not go together/],
    ["--client-id", ["--client-id", "x", ...BROWSER], /--idp-client-id <id>/],
    ["--callback-url alone", ["--callback-url", "-", ...BROWSER], /--callback-url finishes a login in two steps/],
    ["--grant", ["--grant", "jwt-bearer", "--assertion", "env:A", ...BROWSER], /--idp and --grant do not go together/],
  ])("is refused with %s", async ([_what, flags, said], { machine, me }) => {
    const { code, stderr } = await me.run(["login", "--idp", machine.idp.issuer, ...flags]);
    expect([code, stderr]).toEqual([2, expect.stringMatching(said)]);
    const both = await me.run(["logout", "https://mcp.example/mcp", "--idp"]);
    expect([both.code, both.stderr]).toEqual([
      2,
      expect.stringContaining("give one MCP server, --idp, --hand-over, or --all"),
    ]);
  });
});
