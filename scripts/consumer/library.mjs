// A program with the library and without its optional packages.
import { strict as assert } from "node:assert";
import { isAgentAuthError, ManagementClient } from "agentauth";

const items = [{ id: "dev_1" }, { id: "dev_2" }, { id: "dev_3" }];
const fetch = async (request) => {
  const offset = Number(new URL(request.url).searchParams.get("pagination[offset]") ?? 0);
  const next = offset + 2 < items.length ? offset + 2 : null;
  const pagination = { item_count: items.length, page_offset: offset, next_page_offset: next };
  return Response.json({ status: "success", pagination, summaries: items.slice(offset, offset + 2) });
};

const service = new ManagementClient({ baseUrl: "https://agentauth.example", token: "sample", fetch });
const devices = await service.devices.list({ pool_id: "pool_1" }, { pageSize: 2 }).toArray();
assert.deepEqual(devices, items);

const missing = service.devices.get({ pool_id: "pool_1", id: "dev_4" });
await assert.rejects(missing, (error) => isAgentAuthError(error) && error.code === "not_found");
