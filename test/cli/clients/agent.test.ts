import { stripVTControlCharacters } from "node:util";
import { describe, expect } from "vitest";
import { QUESTION, questionTest } from "../../flow/issuer-question-support.js";
import { linesOf, type RunOptions, runCli } from "../../helpers/cli.js";
import { fixedText } from "../../helpers/fixed-text.js";
import { startServer } from "../../helpers/server.js";

const it = questionTest.extend("run", ({ args, env }) => (flags: readonly string[], options: RunOptions) => {
  return runCli([...args, ...flags], { ...options, env });
});

describe("a login by a client with a secret", () => {
  it("sends nothing where the answer is no", async ({ run, scene }) => {
    const { code, stderr } = await run([], { tty: true, stdin: "no\n" });
    expect([code, stderr]).toEqual([3, expect.stringContaining(QUESTION)]);
    expect(stderr).toContain(`--issuer ${scene.issuer.issuer}`);
    expect(stripVTControlCharacters(fixedText(stderr))).toMatchSnapshot();
    expect(scene.issuer.to("/pool/authorize")).toEqual([]);
    expect(scene.issuer.to("/pool/token")).toEqual([]);
  });

  it("asks no question with --no-input, or without a terminal", async ({ run }) => {
    const quiet = await run(["--no-input"], { tty: true });
    expect(quiet.code).toBe(3);
    expect(quiet.stdout + quiet.stderr).not.toContain(QUESTION);
    const piped = await run([], {});
    expect([piped.code, piped.stderr]).toEqual([3, expect.stringContaining("--issuer")]);
  });
});

describe("the steps of a login", () => {
  const STEPS = [
    "+ challenge: POST http://<address>/mcp 401: the server requires a bearer token",
    "+ resource metadata: GET http://<address>/.well-known/oauth-protected-resource/mcp 200: it describes this server",
    "- server metadata: GET http://<address>/.well-known/oauth-authorization-server/pool 404: no document here",
    "+ server metadata: GET http://<address>/pool/.well-known/oauth-authorization-server 200: it names the issuer",
  ];

  it.for<[string[], Record<string, string>, string[]]>([
    [["-v"], {}, STEPS],
    [["--debug"], {}, STEPS],
    [[], { AGENTAUTH_LOG: "debug" }, STEPS],
    [[], {}, []],
  ])("are printed with %j and %j alone", async ([flags, more, steps], { args, env }) => {
    const { stderr } = await runCli([...args, ...flags], { env: { ...env, ...more }, tty: true, stdin: "no\n" });
    expect(linesOf(fixedText(stderr)).filter((line) => /^[+-] /.test(line))).toEqual(steps);
  });
});

describe("the flags of a login", () => {
  it("decide what is registered and requested", async ({ scene, env }) => {
    const begin = async (...flags: string[]) => {
      const args = ["login", scene.mcp.url, "--no-wait", "--json", ...flags];
      const { code, stdout, stderr } = await runCli(args, { env: { AGENTAUTH_HOME: env.AGENTAUTH_HOME } });
      expect([code, stderr]).toEqual([0, expect.any(String)]);
      return new URL(JSON.parse(stdout).url).searchParams;
    };
    const registered = () => scene.issuer.to("/pool/register").map(({ body }) => JSON.parse(body));
    const usual = await begin();
    expect(registered()).toMatchObject([{ client_name: "agentauth" }]);
    expect([usual.get("login_hint"), usual.get("prompt"), usual.get("dpop_jkt")]).toEqual([null, null, null]);
    const flags = [
      ...["--account-hint", "ann", "--authorize-param", "prompt=consent", "--scope", "mcp", "--client-name"],
      ...["My Agent"],
    ];
    const own = await begin(...flags, "--resource", new URL(scene.mcp.url).origin);
    expect(Object.fromEntries(own)).toMatchObject({
      ...{ login_hint: "ann", prompt: "consent", scope: "mcp", resource: new URL(scene.mcp.url).origin },
    });
    expect(registered().at(-1)).toMatchObject({ client_name: "My Agent" });
    expect((await begin("--resource", "none")).get("resource")).toBeNull();
    expect((await begin("--client-id", "own-client", "--trust-named-issuer")).get("client_id")).toBe("own-client");
    expect(scene.issuer.requests[0]?.headers["user-agent"]).toMatch(/^agentauth-cli/);
  });

  it("decide how long an answer may take, and how often it is asked for", async ({ env }) => {
    const silent = await startServer(() => undefined);
    const busy = await startServer((response) => response.writeHead(503).end());
    const begin = (origin: string, ...flags: string[]) =>
      runCli(["login", `${origin}/mcp`, "--no-wait", ...flags], { env: { AGENTAUTH_HOME: env.AGENTAUTH_HOME } });
    const late = await begin(silent.origin, "--timeout", "0.2", "--retries", "0");
    expect([late.code, late.stderr, silent.requests.length]).toEqual([5, expect.stringContaining("0.2 s"), 1]);
    await begin(busy.origin, "--retries", "0");
    const once = busy.requests.length;
    await begin(busy.origin, "--retries", "1");
    expect(busy.requests.length).toBeGreaterThan(2 * once);
    await Promise.all([silent.close(), busy.close()]);
  });
});
