import { startCli, startCliSandbox } from "../../../helpers/cli.js";

/** `agentauth sandbox start -o json` in the test's process. */
export const startOwnSandbox = (args: readonly string[] = []) => startCliSandbox(args, undefined, startCli);

/** What {@link startOwnSandbox} returns. */
export type OwnSandbox = Awaited<ReturnType<typeof startOwnSandbox>>;
