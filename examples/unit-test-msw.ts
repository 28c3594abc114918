// Unit tests of one's own code with msw 2: node --test runs them, and so does any other runner.
import { strict as assert } from "node:assert";
import { after, afterEach, before, test } from "node:test";
import { isAgentAuthError, ManagementClient } from "agentauth";
import { HttpResponse, http } from "msw";
import { setupServer } from "msw/node";

/** The code under test. */
async function titlesOf(service: ManagementClient, domain_id: string): Promise<string[]> {
  const pools = await service.pools.list({ domain_id }).toArray();
  return pools.map(({ title }) => title ?? "(no title)");
}

const baseUrl = "https://agentauth.example";
const service = new ManagementClient({ baseUrl, token: "sample-token", maxRetries: 0 });
const server = setupServer();

before(() => server.listen({ onUnhandledRequest: "error" }));
afterEach(() => server.resetHandlers());
after(() => server.close());

test("the titles of all pools", async () => {
  server.use(
    http.get(`${baseUrl}/api/v1/pool`, ({ request }) => {
      assert.equal(request.headers.get("authorization"), "Bearer sample-token");
      const { searchParams } = new URL(request.url);
      assert.equal(searchParams.get("domain_id"), "domain_1");
      const pools = [{ id: "pool_1", title: "First" }, { id: "pool_2" }, { id: "pool_3", title: "Third" }];
      // Any offset: a page after the first begins with the last item of the page before.
      const offset = Number(searchParams.get("pagination[offset]") ?? 0);
      const next = offset + 2 < pools.length ? offset + 2 : null;
      return HttpResponse.json({
        status: "success",
        summaries: pools.slice(offset, offset + 2),
        pagination: { item_count: 3, page_offset: offset, page_size: 2, next_page_offset: next },
      });
    }),
  );
  assert.deepEqual(await titlesOf(service, "domain_1"), ["First", "(no title)", "Third"]);
});

test("a token that the service rejects", async () => {
  const body = { code: "bad_authtoken", message: "expired" };
  server.use(http.get(`${baseUrl}/api/v1/pool`, () => HttpResponse.json(body, { status: 401 })));
  await assert.rejects(titlesOf(service, "domain_1"), (error) => isAgentAuthError(error) && error.class === "auth");
});
