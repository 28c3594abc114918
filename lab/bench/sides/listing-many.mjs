// Reads the same list many times at once: listing-many.mjs <loop|agentauth|agentauth-node> <url> <items> <listings>
import { Checker } from "../lib/check.mjs";
import { POOL, pageUrl, TOKEN } from "../lib/side.mjs";

const [how, url, items, listings] = process.argv.slice(2);
const PAGE_SIZE = 100;
const service = await createClient();

const LISTS = {
  async loop(take) {
    for (let offset = 0; offset !== null; ) {
      const response = await fetch(pageUrl(url, offset, PAGE_SIZE), {
        headers: { accept: "application/json", authorization: `Bearer ${TOKEN}` },
      });
      if (!response.ok) throw new Error(`HTTP ${response.status}`);
      const { summaries, pagination } = await response.json();
      for (const item of summaries) take(item);
      offset = pagination.next_page_offset;
    }
  },
  agentauth: readList,
  "agentauth-node": readList,
};

async function createClient() {
  const options = { baseUrl: url, token: TOKEN };
  if (how === "agentauth") return new (await import("../../../dist/index.js")).ManagementClient(options);
  if (how === "agentauth-node") return (await import("../../../dist/node.js")).createManagementClient(options);
  return undefined;
}

async function readList(take) {
  for await (const device of service.devices.list({ pool_id: POOL }, { pageSize: PAGE_SIZE })) take(device);
}

const before = process.cpuUsage();
const list = async () => {
  const checker = new Checker();
  await LISTS[how]((item) => checker.take(item));
  checker.finish(Number(items));
};
await Promise.all(Array.from({ length: Number(listings) }, list));
const { user, system } = process.cpuUsage(before);
console.log(JSON.stringify({ listCpuMs: (user + system) / 1000 }));
