import { expect, test } from "vitest";
import { fileStore } from "../../../../src/store/file/file.js";
import { FETCH_BROWSER } from "../../../flow/support.js";
import { runCli } from "../../../helpers/cli.js";
import { temporaryFolder } from "../../../helpers/folder.js";
import { startScene } from "../../../helpers/issuer.js";

const runIn = (home: string, ...args: string[]) => runCli(args, { env: { AGENTAUTH_HOME: home } });
const loginIn = (home: string, url: string, ...flags: string[]) =>
  runIn(home, "login", url, "--browser", FETCH_BROWSER, ...flags);

/** A server that names an issuer whose metadata, which have one origin, are of another one that publishes none. */
const it = test
  .extend("servers", async () => {
    const scene = await startScene();
    const named = await scene.another("named");
    named.metadata["issuer"] = scene.issuer.issuer;
    scene.mcp.metadata["authorization_servers"] = [named.issuer];
    delete scene.issuer.routes["/pool/.well-known/oauth-authorization-server"];
    return { scene, named };
  })
  .extend("scene", ({ servers }) => servers.scene)
  .extend("named", ({ servers }) => servers.named)
  .extend("home", () => temporaryFolder())
  .extend(
    "run",
    ({ home }) =>
      (...args: string[]) =>
        runIn(home, ...args),
  )
  .extend(
    "login",
    ({ home, scene }) =>
      (...flags: string[]) =>
        loginIn(home, scene.mcp.url, ...flags),
  );

it("needs the flag of the hint once, and stores with the login what the server named", async ({
  scene,
  named,
  home,
  run,
  login,
}) => {
  const flag = ["--issuer", scene.issuer.issuer];
  const refused = await login();
  expect([refused.code, refused.stderr]).toEqual([3, expect.stringContaining(`add ${flag.join(" ")} to expect`)]);
  expect(refused.stderr).toContain(`"${scene.issuer.issuer}"`);
  expect(refused.stderr).toContain(`must be exactly "${named.issuer}"`);
  expect((await login(...flag)).code).toBe(0);
  expect(await fileStore(home).list()).toEqual([
    expect.objectContaining({ issuer: scene.issuer.issuer, namedIssuer: named.issuer }),
  ]);
  const token = await run("token", scene.mcp.url, "--force-refresh");
  expect([token.code, token.stdout]).toEqual([0, "access-named-2\n"]);
  expect((await login()).code).toBe(0);
});

it("takes the issuer from the environment and from the profile too", async ({ scene, home }) => {
  const env = { AGENTAUTH_HOME: home, AGENTAUTH_ISSUER: scene.issuer.issuer };
  const args = ["login", scene.mcp.url, "--browser", FETCH_BROWSER];
  expect((await runCli(args, { env })).code).toBe(0);
  const other = temporaryFolder();
  expect((await runIn(other, "config", "set", "issuer", scene.issuer.issuer)).code).toBe(0);
  expect((await loginIn(other, scene.mcp.url)).code).toBe(0);
});

it("is refused with the stored login once the server names a third issuer", async ({ scene, login }) => {
  await login("--issuer", scene.issuer.issuer);
  const evil = await scene.another("evil");
  scene.mcp.metadata["authorization_servers"] = [evil.issuer];
  const { code, stderr } = await login();
  expect([code, stderr]).toEqual([4, expect.stringContaining(`now names "${evil.issuer}"`)]);
  expect(stderr).toContain(`--issuer ${evil.issuer}`);
  expect(evil.requests).toEqual([]);
});

it("is shown by discover, which ends with the login that works", async ({ scene, named, run }) => {
  const { url } = scene.mcp;
  const command = `agentauth login ${url} --issuer ${scene.issuer.issuer}`;
  const refused = await run("discover", url, "--allow-cross-origin-metadata");
  expect([refused.code, refused.stderr]).toEqual([
    3,
    expect.stringMatching(
      new RegExp(
        `expect that issuer for it\n {6}the login and its tokens then go to ${new URL(named.origin).host}, which says that it is this issuer, unless the issuer publishes its own metadata: agentauth login \\S+ --allow-cross-origin-metadata --issuer \\S+\n$`,
      ),
    ),
  ]);
  expect(refused.stderr).toContain(` --issuer ${scene.issuer.issuer}\n`);
  const found = await run("discover", url, "--issuer", scene.issuer.issuer);
  expect(found.stdout).toContain(`\nnamed issuer   ${named.issuer}\nissuer         ${scene.issuer.issuer}\n`);
  expect(found.stdout.endsWith(`\n\nlog in with: ${command}\n`)).toBe(true);
  const json = await run("discover", url, "--issuer", scene.issuer.issuer, "--json");
  expect(JSON.parse(json.stdout)).toMatchObject({
    login_required: true,
    command,
    issuer: { namedIssuer: named.issuer },
  });
});
