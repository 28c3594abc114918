import { describe, expect, it } from "vitest";
import { temporaryFolder } from "../helpers/cli.js";
import { startScene } from "../helpers/issuer.js";
import { hasTerminal, startOnTerminal } from "./terminal-support.js";

describe.skipIf(!hasTerminal)("a question on a terminal", () => {
  it("is answered before the address to paste is read from the same terminal", async () => {
    const { mcp, issuer, another } = await startScene();
    const other = await another("other");
    issuer.metadata["token_endpoint"] = `${other.issuer}/token`;
    const args = ["login", mcp.url, "--flow", "paste"];
    const run = startOnTerminal(args, { AGENTAUTH_HOME: temporaryFolder(), AGENTAUTH_AGENT: "0" });
    await run.shows("[y/N] ");
    expect(run.out()).toContain(`handed to ${other.origin}`);
    run.type("y\n");
    await run.shows("Waiting for the login");
    const address = /^ {2}(http\S+)\r$/m.exec(run.out())?.[1] ?? "";
    const answer = await fetch(address, { redirect: "manual" });
    run.type(`${answer.headers.get("location")}\n`);
    expect(await run.ended).toBe(0);
    expect(run.out()).toContain("\nlogged in at");
  });

  it("is not asked by mcp proxy, to which what is typed is for the server", async () => {
    const { mcp, issuer, another } = await startScene();
    issuer.metadata["token_endpoint"] = `${(await another("other")).issuer}/token`;
    const args = ["mcp", "proxy", mcp.url, "--browser", "true"];
    const run = startOnTerminal(args, { AGENTAUTH_HOME: temporaryFolder(), AGENTAUTH_AGENT: "0" });
    run.type('{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}\n');
    await run.shows("--allow-cross-origin-endpoints");
    run.type("\u0004");
    expect(await run.ended).toBe(3);
    expect(run.out()).not.toContain("[y/N]");
  });

  it("ends with Ctrl-C", async () => {
    const { mcp, issuer, another } = await startScene();
    issuer.metadata["token_endpoint"] = `${(await another("other")).issuer}/token`;
    const run = startOnTerminal(["login", mcp.url], { AGENTAUTH_HOME: temporaryFolder(), AGENTAUTH_AGENT: "0" });
    await run.shows("[y/N] ");
    run.type("\u0003");
    expect(await run.ended).toBe(130);
    expect(run.out()).not.toContain("open this address");
  });
});
