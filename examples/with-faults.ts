// Tests a program against a service with faults.
import { strict as assert } from "node:assert";
import { ManagementClient } from "agentauth";
import { type Fault, startSandbox } from "agentauth/sandbox";

/** The program under test. */
async function countRevoked(service: ManagementClient, pool_id: string): Promise<number> {
  let revoked = 0;
  for await (const device of service.devices.list({ pool_id })) if (device.status === "revoked") revoked++;
  return revoked;
}

const sandbox = await startSandbox({ seed: 7, devices: 300 });
const { baseUrl, apiToken: token, ids, faults } = sandbox;
const service = new ManagementClient({ baseUrl, token });
const expected = await countRevoked(service, ids.pool);

const trouble: Fault[] = [
  { kind: "status", status: 503, path: "device", after: 1 },
  { kind: "status", status: 429, retryAfter: "1", path: "device", after: 2 },
  { kind: "truncated-json", path: "device", after: 3 },
  { kind: "extra-fields", path: "device", times: 0 },
];
for (const fault of trouble) {
  faults.clear();
  faults.add(fault);
  assert.equal(await countRevoked(service, ids.pool), expected);
  console.log(`${fault.kind}: fired ${faults.list()[0]?.fired} times, correct count`);
}
await sandbox.close();
