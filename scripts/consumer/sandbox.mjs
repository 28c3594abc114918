// A test of a user's program: the service on loopback, and the client against it.
import { strict as assert } from "node:assert";
import { ManagementClient } from "agentauth";
import { startSandbox } from "agentauth/sandbox";

const sandbox = await startSandbox({ devices: 120, faults: [{ kind: "status", status: 503, path: "device" }] });
const service = new ManagementClient({ baseUrl: sandbox.baseUrl, token: sandbox.apiToken });
const devices = await service.devices.list({ pool_id: sandbox.ids.pool }).toArray();
assert.equal(devices.length, 120);
assert.equal(new Set(devices.map(({ id }) => id)).size, 120);
assert.equal(sandbox.faults.list()[0]?.fired, 1);
await sandbox.close();
