// The service that every side lists: a separate process on loopback that answers from prepared pages, in the envelopes of
// the service, stripe and openai. It prints its port as its first line of output.
//
// Usage: node lab/bench/server.mjs <items> [latency in ms]
import { createServer } from "node:http";
import { devicesJson, idOf, indexOf } from "./devices.mjs";

const total = Number(process.argv[2]);
const latency = Number(process.argv[3] ?? 0);
if (!Number.isSafeInteger(total) || total < 1) throw new TypeError("the number of items is missing");

const MAX_PAGE = 10_000;

/** One envelope per path: the requested page, and the text before and after its items. */
const ENVELOPES = {
  "/api/v1/device": {
    page: (query) => [Number(query.get("pagination[offset]") ?? 0), Number(query.get("pagination[page_size]") ?? 100)],
    before: '{"status":"success","summaries":[',
    behind: (start, end, size) => {
      const pagination = {
        item_count: total,
        item_start: start + 1,
        item_end: end,
        page_count: Math.ceil(total / size),
        page_index: Math.floor(start / size) + 1,
        page_offset: start,
        page_size: size,
        next_page_offset: end < total ? end : null,
        previous_page_offset: start > 0 ? Math.max(0, start - size) : null,
      };
      return `],"pagination":${JSON.stringify(pagination)},"sorting":{"direction":"asc","field":"id"}}`;
    },
  },
  "/v1/customers": {
    page: (query) => [after(query.get("starting_after")), Number(query.get("limit") ?? 100)],
    before: '{"object":"list","url":"/v1/customers","data":[',
    behind: (_start, end) => `],"has_more":${end < total}}`,
  },
  "/files": {
    page: (query) => [after(query.get("after")), Number(query.get("limit") ?? 100)],
    before: '{"object":"list","data":[',
    behind: (start, end) => `],"first_id":"${idOf(start)}","last_id":"${idOf(end - 1)}","has_more":${end < total}}`,
  },
  // Its next page is in the Link header.
  "/repositories": {
    page: (query) => [Number(query.get("since")), Number(query.get("per_page") ?? 100)],
    before: "[",
    behind: () => "]",
    headers: (end, size, host) =>
      end < total ? { link: `<http://${host}/repositories?per_page=${size}&since=${end}>; rel="next"` } : {},
  },
};

function after(id) {
  return id === null ? 0 : indexOf(id) + 1;
}

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url, "http://localhost");
  const envelope = ENVELOPES[pathname];
  const [start, asked] = envelope?.page(searchParams) ?? [];
  if (envelope === undefined || !(start >= 0 && start < total) || !(asked >= 1 && asked <= MAX_PAGE)) {
    response.writeHead(400, { "content-type": "application/json" });
    response.end('{"status":"error","code":"bad_request","message":"no such page"}');
    return;
  }
  const end = Math.min(total, start + asked);
  const body = Buffer.concat([
    Buffer.from(envelope.before),
    devicesJson(start, end - start),
    Buffer.from(envelope.behind(start, end, asked)),
  ]);
  const answer = () => {
    const more = envelope.headers?.(end, asked, request.headers.host);
    response.writeHead(200, { "content-type": "application/json", "content-length": body.length, ...more });
    response.end(body);
  };
  if (latency > 0) setTimeout(answer, latency);
  else answer();
});

// A connection that is closed between two pages would be measured as a slow page.
server.keepAliveTimeout = 0;
server.requestTimeout = 0;
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
process.on("SIGTERM", () => process.exit(0));
