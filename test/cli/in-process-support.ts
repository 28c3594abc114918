import { flowTest } from "../flow/support.js";
import { temporaryFolder } from "../helpers/cli.js";

/** {@link flowTest} at three devices; `newEnv` makes an environment with the API token and a new home folder. */
export const runTest = () =>
  flowTest({ devices: 3 }).extend("newEnv", { scope: "file" }, ({ harness: { sandbox } }) => () => ({
    AGENTAUTH_BASE_URL: sandbox.baseUrl,
    AGENTAUTH_API_TOKEN: sandbox.apiToken,
    AGENTAUTH_HOME: temporaryFolder(),
  }));
