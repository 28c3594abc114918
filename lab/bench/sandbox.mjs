// The sandbox as a separate process. It prints its addresses as its first line of output.
import { startSandbox } from "../../dist/sandbox/index.js";

const sandbox = await startSandbox({ autoApprove: true, devices: 20 });
const { baseUrl, mcpUrl, apiToken, ids } = sandbox;
console.log(JSON.stringify({ baseUrl, mcpUrl, apiToken, pool: ids.pool, issuer: sandbox.authUrl(ids.pool) }));
process.on("SIGTERM", () => process.exit(0));
