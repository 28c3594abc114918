import { describe, expect, it } from "vitest";
import { hasTerminal, startOnTerminal } from "../e2e/terminal-support.js";
import { temporaryFolder } from "../helpers/cli.js";
import { startScene } from "../helpers/issuer.js";

const QUESTION = "[y/N]";

describe.skipIf(!hasTerminal)("a login at a terminal, by a client with a secret", () => {
  async function begin() {
    const scene = await startScene();
    const env = { AGENTAUTH_HOME: temporaryFolder(), AGENTAUTH_CLIENT_SECRET: "prod-secret-9" };
    const args = ["login", scene.mcp.url, "--browser", "none", "--client-id", "prod"];
    return { ...scene, env, args, start: () => startOnTerminal(args, env) };
  }
  const signInAt = async (shown: string) => {
    const address = /^ {2}(http:\S+)\r?$/m.exec(shown)?.[1];
    await (await fetch(address ?? "")).text();
  };

  it("asks once whether the issuer is the client's and takes yes for an answer", async () => {
    const { issuer, start } = await begin();
    const first = start();
    await first.shows(QUESTION);
    expect(first.out()).toContain(issuer.issuer);
    expect(issuer.to("/pool/token")).toEqual([]);
    first.type("yes\r");
    await first.shows(/^ {2}http:\S+\r$/m);
    await signInAt(first.out());
    expect(await first.ended).toBe(0);
    const second = start();
    await second.shows(/^ {2}http:\S+\r$/m);
    expect(second.out()).not.toContain(QUESTION);
    await signInAt(second.out());
    expect(await second.ended).toBe(0);
  });

  it("sends nothing where the input ends without an answer", async () => {
    const { issuer, start } = await begin();
    const run = start();
    await run.shows(QUESTION);
    run.type("\u0004");
    expect(await run.ended).toBe(3);
    expect(run.out()).toContain(`--issuer ${issuer.issuer}`);
    expect(issuer.to("/pool/authorize")).toEqual([]);
    expect(issuer.to("/pool/token")).toEqual([]);
  });

  it("ends while it waits for the answer when it is interrupted", async () => {
    const { start } = await begin();
    const run = start();
    await run.shows(QUESTION);
    run.signal("SIGINT");
    expect(await run.ended).toBe(130);
  });
});
