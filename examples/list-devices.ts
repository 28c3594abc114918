// Lists the devices of a pool, the latest seen first.
//
//   AGENTAUTH_BASE_URL=… AGENTAUTH_API_TOKEN=… npx tsx examples/list-devices.ts <pool_id>
import { isAgentAuthError, ManagementClient } from "agentauth";

const { AGENTAUTH_BASE_URL: baseUrl = "", AGENTAUTH_API_TOKEN: token } = process.env;
const [pool_id = ""] = process.argv.slice(2);

try {
  const service = new ManagementClient({ baseUrl, token });
  const sort = { field: "last_seen", direction: "desc" } as const;
  for await (const device of service.devices.list({ pool_id }, { sort, concurrency: 4 })) {
    console.log([device.id, device.status, device.title].join("\t"));
  }
} catch (error) {
  if (!isAgentAuthError(error)) throw error;
  console.error(`${error.code}: ${error.message}`);
  process.exitCode = 1;
}
