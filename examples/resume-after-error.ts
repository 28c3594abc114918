// An interrupted listing reports the offset to resume at: no item is read twice or left out.
import { isAgentAuthError, ManagementClient } from "agentauth";
import { startSandbox } from "agentauth/sandbox";

const sandbox = await startSandbox({ devices: 500, faults: [{ kind: "reset-mid-body", path: "device", every: 4 }] });
// With retries the faults would stay invisible; here the client has none.
const service = new ManagementClient({ baseUrl: sandbox.baseUrl, token: sandbox.apiToken, maxRetries: 0 });

const ids: string[] = [];
let offset = 0;
for (;;) {
  try {
    for await (const device of service.devices.list({ pool_id: sandbox.ids.pool }, { offset })) ids.push(device.id);
    break;
  } catch (error) {
    if (!isAgentAuthError(error) || !error.retryable || error.resume === undefined) throw error;
    console.log(`${error.code} after ${ids.length} devices, resuming at offset ${error.resume}`);
    offset = error.resume;
  }
}
console.log(`${ids.length} devices, ${new Set(ids).size} of them distinct`);
await sandbox.close();
