// octokit's paginator over the same devices: an array a page, and the next page in the Link header.
import { Octokit } from "@octokit/core";
import { paginateRest } from "@octokit/plugin-paginate-rest";
import { side, TOKEN } from "../lib/side.mjs";

await side(async ({ url, pageSize }, take) => {
  const client = new (Octokit.plugin(paginateRest))({ auth: TOKEN, baseUrl: url });
  for await (const { data } of client.paginate.iterator("GET /repositories", { per_page: pageSize, since: 0 })) {
    for (const item of data) take(item);
  }
});
