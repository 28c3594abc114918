import { test } from "vitest";
import { AgentClient } from "../../../src/oauth/agent.js";
import type { Grant } from "../../../src/oauth/model/grant.js";
import type { SandboxOptions } from "../../../src/sandbox/index.js";
import { fileStore } from "../../../src/store/file/file.js";
import { plant } from "../../helpers/canaries.js";
import { type RunOptions, runCli, startCli, startTestbed, temporaryFolder } from "../../helpers/cli.js";
import { TestLogin } from "../../helpers/login.js";

/** A sandbox whose user approves every login, and home folders for the runs against it. */
export async function startHarness(options: SandboxOptions = {}) {
  const { sandbox, env: service } = await startTestbed({ devices: 3, autoApprove: true, ...options });
  return {
    sandbox,
    /** The URL of its MCP server. */
    url: sandbox.mcpUrl,
    /** A home folder without a login. */
    user() {
      const home = temporaryFolder();
      const env = { ...service, AGENTAUTH_HOME: home };
      const store = fileStore(home);
      return {
        home,
        store,
        run: (args: readonly string[], more: RunOptions = {}) =>
          runCli(args, { ...more, env: { ...env, ...more.env } }),
        start: (args: readonly string[], more: RunOptions = {}) =>
          startCli(args, { ...more, env: { ...env, ...more.env } }),
        /** Logs in at the MCP server, without the program. */
        logIn: (scope?: string) => new AgentClient({ store, login: new TestLogin() }).login(sandbox.mcpUrl, { scope }),
        /** Changes the stored login. */
        async change(over: (grant: Grant) => Partial<Grant>): Promise<void> {
          const [grant] = await store.list();
          if (grant === undefined) throw new Error("no login is stored");
          await store.save({ ...grant, ...over(grant), generation: grant.generation + 1 }, grant.generation);
        },
      };
    },
    close: () => sandbox.close(),
  };
}

/** What {@link startHarness} returns. */
export type Harness = Awaited<ReturnType<typeof startHarness>>;
/** A home folder of a {@link Harness}. */
export type User = ReturnType<Harness["user"]>;

/**
 * `it` with a {@link Harness} for the file, its faults (cleared after each case), a home folder without a login for each
 * case, and one with a login that the cases of the file share.
 *
 * @param scope what that login is for
 */
export const harnessTest = (options: SandboxOptions = {}, scope?: string) =>
  test
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures from the pattern
    .extend("harness", { scope: "file" }, async ({}, { onCleanup }) => {
      const harness = await startHarness(options);
      onCleanup(() => harness.close());
      return harness;
    })
    .extend("faults", ({ harness }, { onCleanup }) => {
      const { faults } = harness.sandbox;
      onCleanup(() => faults.clear());
      return faults;
    })
    .extend("user", ({ harness }) => harness.user())
    .extend("me", { scope: "file" }, async ({ harness }) => {
      const user = harness.user();
      await user.logIn(scope);
      return user;
    });

/** `it` like {@link harnessTest}, and the clients of the sandbox for machine grants. */
export const machineTest = (options: SandboxOptions = {}, scope?: string) =>
  harnessTest({ machineGrants: true, ...options }, scope).extend("machine", { scope: "file" }, ({ harness }) => {
    const { machine } = harness.sandbox;
    if (!machine) throw new Error("the sandbox has no machine clients");
    for (const { clientSecret } of [machine.secretClient, machine.idp]) plant("client_secret", clientSecret);
    return machine;
  });
