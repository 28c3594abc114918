import { once } from "node:events";
import { describe, expect } from "vitest";
import { until } from "../helpers/cli.js";
import { browserCommand, flowTest } from "./support.js";

const LINK = "https://accounts.example/connect?state=s1&code=c1&token=t1";
const WORDS = "Connect your \u001b[31maccount";

/** Whether the user has been at the address. */
let isConnected = false;

const it = flowTest({
  mcpServer({ sdk }) {
    const { McpServer, inputRequired } = sdk as typeof import("@modelcontextprotocol/server");
    const server = new McpServer({ name: "gateway", version: "1" });
    server.registerTool("mail", {}, () => {
      if (isConnected) return { content: [{ type: "text", text: "no mail" }] };
      const account = inputRequired.elicitUrl({ url: LINK, message: WORDS });
      return inputRequired({ inputRequests: { account }, requestState: "s" });
    });
    return server;
  },
})
  .extend("call", ({ url }, { onCleanup }) => {
    isConnected = false;
    onCleanup(() => {
      isConnected = false;
    });
    return ["mcp", "call", url, "mail"];
  })
  .extend("opened", () => [] as string[])
  .extend("browser", ({ opened }) => browserCommand(async (address) => void opened.push(address)));

describe("a tool that needs its user to open an address", () => {
  it("ends with 4, the address as it is, and what to do then", async ({ call, user }) => {
    const text = await user.run(call);
    expect([text.code, text.stdout]).toEqual([4, ""]);
    const hint = "hint: open the address in a browser, and run this again afterwards\n";
    expect(text.stderr).toMatch(/^error: the MCP server ".+" needs you to open an address at accounts\.example: /);
    expect(text.stderr).toContain(`\n\n  ${LINK}\n\n${hint}`);
    const json = await user.run(call, { env: { AGENTAUTH_ERRORS: "json" } });
    const error = { code: "user_action_required", class: "auth", url: LINK, exit_code: 4, retryable: false };
    expect([json.code, JSON.parse(json.stderr)]).toMatchObject([4, { error }]);
    expect(text.stderr + json.stderr).not.toContain("\u001b");
    isConnected = true;
    expect(await user.run(call)).toMatchObject({ code: 0, stdout: "no mail\n" });
  });

  it("opens it where --browser names one, and not for an agent", async ({ call, user, opened, browser }) => {
    const agent = await user.run([...call, "--no-input", "--browser", browser], { env: { AGENTAUTH_AGENT: "1" } });
    expect([agent.code, opened]).toEqual([4, []]);
    const { code, stderr } = await user.run([...call, "--browser", browser]);
    await until(() => opened.length > 0);
    expect([code, opened]).toEqual([4, [LINK]]);
    expect(stderr).toContain(`needs you to open this address (at accounts.example):\n\n  ${LINK}\n`);
    expect(stderr).not.toContain("\u001b");
  });

  it.for<[string, string[], number]>([
    ["a user who opens it and is done", ["y", "y"], 0],
    ["a user who does not open it", ["n"], 4],
    ["a user who is not done", ["y", "n"], 4],
  ])("asks at a terminal: %s", async ([, words, expected], { call, user, opened, browser }) => {
    const { child, out, err } = user.start(call, { BROWSER: browser }, { tty: true });
    const ended = once(child, "close");
    for (const [nth, word] of words.entries()) {
      await until(() => err().split("[y/N]").length > nth + 1 || child.exitCode !== null);
      if (nth === 1) {
        await until(() => opened.length > 0);
        isConnected = word === "y";
      }
      child.stdin?.write(`${word}\n`);
    }
    const [code] = await ended;
    expect([code, opened]).toEqual([expected, words[0] === "y" ? [LINK] : []]);
    if (code === 0) expect(out()).toBe("no mail\n");
    else expect(err()).toContain("run this again afterwards");
    expect(err()).not.toContain("\u001b[31maccount");
  });
});
