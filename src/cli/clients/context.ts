import { openAudit } from "../../profile/audit.js";
import { readSettings } from "../../profile/resolve-settings.js";
import { limitSecretCommands } from "../../profile/secrets.js";
import { findHome, homeFolder } from "../../profile/settings.js";
import { readStoreChoice } from "../../profile/store-choice.js";
import { flagText } from "../flags/flag-name.js";
import { type CommandContext, type ContextFlags, mayLogin, once, type RunContext } from "../runtime/context.js";

/** The context of a command with these flags; everything in it is decided, loaded and built when it is first used. */
export function createCommandContext(
  run: RunContext,
  flags: ContextFlags,
  settings = once(() => readSettings(flags, run.io.env, flagText)),
): CommandContext {
  if (flags.timeout !== undefined) limitSecretCommands(run.io.env, flags.timeout * 1000);
  const context: CommandContext = {
    ...run,
    settings,
    home: () => homeFolder(run.io.env),
    findHome: () => findHome(run.io.env)?.value,
    management: once(async () => {
      const { buildManagementClient } = await import("./management.js");
      return buildManagementClient(flags, context);
    }),
    async agent(use = {}) {
      const { buildAgentClient } = await import("./agent.js");
      return buildAgentClient(flags, context, use);
    },
    mayLogin: () => mayLogin(flags, run),
    async network(use = {}) {
      const [{ agentNetwork }, { networkOptions }] = await Promise.all([
        import("../../profile/network.js"),
        import("./network.js"),
      ]);
      return agentNetwork({ ...networkOptions(flags, settings(), run), ...use }, run.redactor);
    },
    storeChoice: () => readStoreChoice(settings().profile.value, run.io.env, context.findHome()),
    store: once(async () => {
      const { openProfileStore } = await import("./store.js");
      return openProfileStore(context);
    }),
    audit: once(() => {
      const { audit } = settings();
      return audit && openAudit(audit, (text) => run.io.warn(text));
    }),
    with({ flags: ownFlags, settings: decided, acceptsNewProfile = false, ...changes }) {
      const { env } = changes.io ?? run.io;
      const isDecided = ownFlags === undefined && env === run.io.env && !acceptsNewProfile;
      const readOwn = once(() => readSettings(ownFlags ?? flags, env, flagText, { acceptsNewProfile }));
      const own = decided ? () => decided : isDecided ? settings : readOwn;
      return createCommandContext({ ...run, ...changes }, ownFlags ?? flags, own);
    },
  };
  return context;
}
