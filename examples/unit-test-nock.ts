// Unit tests of one's own code with nock 14 or 15: node --test runs them, and so does any other runner.
import { strict as assert } from "node:assert";
import { afterEach, test } from "node:test";
import { isAgentAuthError, ManagementClient } from "agentauth";
import nock from "nock";

/** The code under test. */
async function titlesOf(service: ManagementClient, domain_id: string): Promise<string[]> {
  const pools = await service.pools.list({ domain_id }).toArray();
  return pools.map(({ title }) => title ?? "(no title)");
}

const baseUrl = "https://agentauth.example";
const service = new ManagementClient({ baseUrl, token: "sample-token", maxRetries: 0 });

nock.disableNetConnect();
afterEach(() => nock.cleanAll());

test("the titles of all pools", async () => {
  const scope = nock(baseUrl, { reqheaders: { authorization: "Bearer sample-token" } })
    .get("/api/v1/pool")
    .query({ domain_id: "domain_1" })
    .reply(200, {
      status: "success",
      summaries: [{ id: "pool_1", title: "First" }, { id: "pool_2" }],
      pagination: { item_count: 3, page_offset: 0, page_size: 2, next_page_offset: 2 },
    })
    .get("/api/v1/pool")
    // A page begins with the last item of the page before: otherwise the list changed in between.
    .query({ domain_id: "domain_1", "pagination[offset]": 1 })
    .reply(200, {
      status: "success",
      summaries: [{ id: "pool_2" }, { id: "pool_3", title: "Third" }],
      pagination: { item_count: 3, page_offset: 1, page_size: 2, next_page_offset: null },
    });
  assert.deepEqual(await titlesOf(service, "domain_1"), ["First", "(no title)", "Third"]);
  scope.done();
});

test("a token that the service rejects", async () => {
  nock(baseUrl).get("/api/v1/pool").query(true).reply(401, { code: "bad_authtoken", message: "expired" });
  await assert.rejects(titlesOf(service, "domain_1"), (error) => isAgentAuthError(error) && error.class === "auth");
});
