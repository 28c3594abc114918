import { endless, flood, type Reply, rawBytes, rawJson, reset, silence } from "../../helpers/peer.js";
import { type HostileCase, LISTING, unless } from "../case.js";
import type { Kit } from "../kit/kit.js";
import type { Service } from "../kit/service.js";
import { DEVICES } from "../kit/service.js";

type Page = ReturnType<Service["page"]>;
type Alter = (page: Page, offset: number, nth: number, kit: Kit) => unknown;

const COUNT = { "service GET /api/v1/device": 3 } as const;

/** A list of six devices on three pages, some of which a case changes. */
function listed(
  id: string,
  input: string,
  result: string,
  alter: Alter,
  over: Partial<HostileCase> & Pick<HostileCase, "outcome">,
): HostileCase {
  return {
    id,
    input,
    result,
    command: "devices",
    flags: ["-o", "id", "--concurrency", "1"],
    options: {},
    arrange: (kit) => kit.service.list((page, offset, nth) => alter(page, offset, nth, kit)),
    requests: LISTING,
    store: "same",
    ...over,
  };
}

const ALL = "dev_0\ndev_1\ndev_2\ndev_3\ndev_4\ndev_5\n";
const complete = {
  outcome: "ok",
  check: (_: Kit, run?: { stdout: string }) =>
    unless({ "all six are printed once": run === undefined || run.stdout === ALL }),
} as const;
const first =
  (reply: Reply): Alter =>
  (_, __, nth) =>
    nth === 1 ? reply : undefined;
const always =
  (reply: Reply): Alter =>
  () =>
    reply;
/** Replaces only the second page, after two devices. */
const second =
  (reply: Reply): Alter =>
  (_, offset) =>
    offset === 1 ? reply : undefined;
const PARTIAL = {
  cliOnly: true,
  outcome: "partial",
  retries: false,
  says: ["continue with: agentauth devices list", "--offset 2"],
} as const;
const REFUSED = { outcome: "refused", retries: false } as const;

const waits: HostileCase[] = [
  listed(
    "L1",
    "429 with Retry-After: 1",
    "the command waits, and the list is complete",
    first({ status: 429, headers: { "retry-after": "1" } }),
    { ...complete, hurry: 1 },
  ),
  listed(
    "L2a",
    "Retry-After with a date in the past",
    "retried",
    first({ status: 503, headers: { "retry-after": "Wed, 21 Oct 2015 07:28:00 GMT" } }),
    complete,
  ),
  listed(
    "L2b",
    "Retry-After: -1",
    "retried after the default delay",
    first({ status: 503, headers: { "retry-after": "-1" } }),
    complete,
  ),
  listed(
    "L2c",
    "Retry-After with escape sequences in it",
    "retried after the default delay",
    first({ status: 503, headers: { "retry-after": "abc\u009b31m" } }),
    complete,
  ),
  listed(
    "L2d",
    "Retry-After: 1000000000",
    "an error at once, with the waiting time",
    always({ status: 429, headers: { "retry-after": "1000000000" } }),
    {
      outcome: "unavailable",
      code: "rate_limited",
      says: ["1000000000 s"],
      times: { "service GET /api/v1/device": 1 },
    },
  ),
  listed(
    "L2e",
    "two Retry-After headers",
    "the longer one applies",
    first({ status: 503, headers: { "retry-after": ["0", "1"] } }),
    { ...complete, hurry: 1 },
  ),
  listed("L3", "503 every time", "three attempts, then an error with the last status", always({ status: 503 }), {
    outcome: "unavailable",
    code: "server_error",
    says: ["HTTP 503"],
    times: COUNT,
    hurry: 1,
  }),
  listed(
    "L4",
    "500 for the second page",
    "an error with the command that continues; the output is incomplete",
    second({ status: 500 }),
    PARTIAL,
  ),
  listed(
    "L4b",
    "500 for the second page, printed as JSON",
    "the array has no closing bracket, so that no parser accepts it",
    second({ status: 500 }),
    {
      ...PARTIAL,
      flags: ["-o", "json", "--concurrency", "1"],
      check: (_, run) => unless({ "the output is not valid JSON": run === undefined || !isJson(run.stdout) }),
    },
  ),
  listed("L19", "a page that never comes", "an error after the configured timeout", always(silence), {
    outcome: "unavailable",
    code: "timeout",
    retries: false,
    timeout: 4,
  }),
];

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

const HEAD = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";

const bodies: HostileCase[] = [
  listed(
    "L5a",
    "a connection that breaks in the middle of a page",
    "retried",
    first(rawBytes(`${HEAD}content-length: 9999\r\n\r\n{"status":"succ`)),
    complete,
  ),
  listed("L5b", "a truncated page", "retried", first(rawJson('{"status":"success","summaries":[{"id":"de')), complete),
  listed("L5c", "a reset connection", "retried", first(reset), complete),
  listed(
    "L6a",
    "a page of HTML with escape sequences",
    "refused; the error shows its first part escaped",
    always({ headers: { "content-type": "text/html" }, text: "<html>\u001b[2J" }),
    { ...REFUSED, code: "bad_content_type", says: ['"text/html"', "<html>\\e[2J"] },
  ),
  listed("L6b", "an empty 200", "refused", always(rawJson("")), { ...REFUSED, code: "bad_json" }),
  listed("L6c", "null", "refused", always(rawJson("null")), { ...REFUSED, code: "bad_envelope" }),
  listed("L6d", "[] in place of an object", "refused", always(rawJson("[]")), {
    ...REFUSED,
    code: "bad_envelope",
    says: ["an array, not an object"],
  }),
  listed("L6e", "summaries that is an object", "refused", always({ json: { status: "success", summaries: {} } }), {
    ...REFUSED,
    code: "bad_envelope",
  }),
  listed("L6f", "summaries with null in it", "refused", always({ json: { status: "success", summaries: [null] } }), {
    ...REFUSED,
    code: "bad_envelope",
  }),
  listed(
    "L6g",
    "a status that is neither success nor error",
    "refused; the error shows it escaped",
    always({ json: { status: "\u001b]0;x\u0007", summaries: [] } }),
    { ...REFUSED, code: "bad_envelope", says: ["\\e]0;x"] },
  ),
  listed("L20a", "a page of 100 MB", "read up to 16 MB, then refused", always(flood(`${HEAD}\r\n`, 100e6)), {
    ...REFUSED,
    code: "body_too_large",
    says: ["larger than 16777216 bytes"],
  }),
  listed(
    "L20b",
    "a page of 4 bytes a second",
    "an error after the configured timeout",
    always(endless(`${HEAD}content-length: 9999\r\n\r\n{`, "    ", 1000)),
    { outcome: "unavailable", retries: false, timeout: 8, hurry: 3 },
  ),
  listed("L20c", "a page in UTF-16", "refused", always(rawJson(Buffer.from("\ufeff{}", "utf16le"))), {
    ...REFUSED,
    code: "bad_json",
  }),
  listed(
    "L20d",
    "a page nested 100,000 deep",
    "refused, or read without side effects",
    always(rawJson(`{"status":"success","summaries":${"[".repeat(50_000)}${"]".repeat(50_000)}}`)),
    { ...REFUSED },
  ),
  listed(
    "L20e",
    "an item with a member named __proto__",
    "printed unchanged; no prototype changes",
    (page) => {
      page.summaries = page.summaries.map((item) =>
        JSON.parse(JSON.stringify(item).replace("{", '{"__proto__":{"polluted":true},')),
      );
    },
    {
      ...complete,
      check: () => unless({ "no prototype changes": ({} as Record<string, unknown>)["polluted"] === undefined }),
    },
  ),
];

const problem = (status: number, code: string): Reply => ({
  status,
  headers: { "content-type": "application/problem+json" },
  json: { status: "error", code, message: "\u001b[31mno\u202e" },
});

const verdicts: HostileCase[] = [
  listed(
    "L7",
    "401 in the middle of a list",
    "an error with the command that continues",
    second(problem(401, "bad_authtoken")),
    {
      cliOnly: true,
      outcome: "partial",
      says: ["--offset 2", "\\e[31mno\\u{202e}"],
    },
  ),
  listed("L8a", "403 and a message with escape sequences", "shown escaped", always(problem(403, "not_permitted")), {
    outcome: "remote",
    code: "not_permitted",
    says: ["\\e[31mno\\u{202e}"],
  }),
  listed("L8b", "404", "shown escaped", always(problem(404, "not_found")), {
    outcome: "remote",
    code: "not_found",
    says: ["\\e[31mno"],
  }),
  listed("L8c", "422", "shown escaped", always(problem(422, "invalid_value")), {
    outcome: "remote",
    code: "invalid_value",
  }),
  listed(
    "L8d",
    "an error with status 200",
    "treated as an error",
    always({ json: { status: "error", code: "not_permitted", message: "no" } }),
    { outcome: "remote", code: "not_permitted" },
  ),
  listed(
    "L8e",
    "an error that repeats the API token",
    "shown masked",
    (_, __, ___, { canaries }) => ({
      status: 403,
      json: { status: "error", code: "not_permitted", message: `your token ${canaries.get("api-token")} is bad` },
    }),
    { outcome: "remote", says: ["********"] },
  ),
  listed(
    "L8f",
    "an error whose code is 100 KB of escape sequences",
    "shown escaped and truncated",
    always({ status: 400, json: { status: "error", code: "\u001b[5m".repeat(25_000), message: "x".repeat(100_000) } }),
    {
      outcome: "remote",
      check: (_, run) => unless({ "the message is short": (run?.stderr.length ?? 0) < 4000 }),
    },
  ),
];

const next =
  (value: unknown): Alter =>
  (page, offset) => {
    if (offset === 2) page.pagination["next_page_offset"] = value;
  };

const pages: HostileCase[] = [
  listed("L9a", "next_page_offset that stays where it is", "stopped, with the command that continues", next(2), {
    outcome: "partial",
    code: "pagination_loop",
  }),
  listed("L9b", "next_page_offset that goes back", "stopped", next(0), { outcome: "partial", code: "pagination_loop" }),
  ...(
    [
      ["a", '"4"'],
      ["b", "4.5"],
      ["c", "-1"],
      ["d", "1e300"],
      ["e", "true"],
      ["f", "[4]"],
      ["g", '"\\u001b[31m4"'],
    ] as const
  ).map(([letter, value]) =>
    listed(
      `L10${letter}`,
      `next_page_offset ${value}`,
      "refused after the received items are printed",
      next(JSON.parse(value)),
      { outcome: "partial", code: "bad_pagination", says: ["next_page_offset"] },
    ),
  ),
  listed(
    "L10h",
    "no next_page_offset on the second page of three",
    "not accepted as the end: item_count is higher",
    next(undefined),
    { outcome: "partial", code: "bad_pagination" },
  ),
  listed(
    "L11",
    "an empty page in the middle, with a next offset",
    "gone on",
    (page, offset, _, { service }) => {
      if (offset === 2) page.summaries = [];
      if (offset === 2) Object.assign(page.pagination, { item_start: null, item_end: null, item_count: 6 });
      service.count = 6;
    },
    {
      outcome: "partial",
      code: "bad_pagination",
      result: "the listing continues, then an error: item_count is higher",
    },
  ),
  listed(
    "L11b",
    "empty pages without end",
    "stopped after 50 pages",
    (page, offset) => {
      page.summaries = [];
      page.pagination = { page_offset: offset, next_page_offset: offset + 1 };
    },
    {
      outcome: "refused",
      code: "pagination_loop",
      says: ["50 empty pages"],
      times: { "service GET /api/v1/device": 51 },
      seconds: 25,
    },
  ),
  listed(
    "L13",
    "an item_count that decreases while the list is read",
    "the client rewinds, and reports the change",
    (page, offset) => {
      if (offset > 0) page.pagination["item_count"] = 5;
      if (offset > 0 && page.pagination["item_end"] === 6) {
        page.summaries.pop();
        page.pagination["item_end"] = 5;
      }
    },
    { outcome: "ok", says: ["changed"] },
  ),
  listed(
    "L14",
    "the same device on two pages",
    "printed once, and reported",
    (page, offset) => {
      const [item] = page.summaries;
      if (offset === 2 && item) item["id"] = "dev_1";
    },
    {
      outcome: "ok",
      check: (_, run) =>
        unless({ "it is printed once": run === undefined || run.stdout.split("dev_1\n").length === 2 }),
    },
  ),
  listed(
    "L15",
    "pages that are larger than requested",
    "accepted; the offset of the service applies",
    (_, __, ___, { service }) => {
      service.pageSize = 3;
    },
    { outcome: "ok" },
  ),
  listed(
    "L21a",
    "an item_count below what the page holds",
    "refused: the page contradicts itself",
    (page) => {
      page.pagination["item_count"] = 1;
    },
    { ...REFUSED, code: "bad_pagination" },
  ),
  listed(
    "L21b",
    "another page_offset than requested",
    "refused: a different page",
    (page) => {
      page.pagination["page_offset"] = 700;
    },
    { ...REFUSED, code: "bad_pagination" },
  ),
  listed(
    "L21c",
    "item_count 1e300",
    "refused",
    (page) => {
      page.pagination["item_count"] = 1e300;
    },
    { ...REFUSED, code: "bad_pagination" },
  ),
  listed(
    "L21d",
    "pagination that is a list",
    "refused",
    (page) => {
      Object.assign(page, { pagination: [] });
    },
    { ...REFUSED, code: "bad_pagination" },
  ),
  listed(
    "L21e",
    "a first page without pagination",
    "refused: there may be more pages",
    (page) => {
      Object.assign(page, { pagination: undefined });
    },
    { ...REFUSED, code: "bad_pagination" },
  ),
  listed(
    "L21f",
    "a second page without pagination",
    "the first page is printed, then an error with the offset",
    (page, offset) => {
      if (offset === 1) Object.assign(page, { pagination: null });
    },
    { ...PARTIAL, code: "bad_pagination" },
  ),
];

/** Members with unexpected types. */
const shapes: HostileCase[] = [
  listed(
    "L16a",
    "members of other types: an object as title, a list as status, a number as date",
    "printed",
    (page) => {
      for (const item of page.summaries)
        Object.assign(item, { title: { a: 1 }, status: [], last_seen: 7, created_at: true, type: null });
    },
    { outcome: "ok", flags: ["-o", "table"] },
  ),
  listed(
    "L16b",
    "the same with --strict",
    "refused",
    (page) => {
      for (const item of page.summaries) Object.assign(item, { title: { a: 1 } });
    },
    { outcome: "refused", flags: ["-o", "id", "--strict"], cliOnly: true },
  ),
  listed(
    "L16c",
    "devices without an id",
    "none is printed, then an error with their number",
    (page) => {
      for (const item of page.summaries) delete item["id"];
    },
    {
      outcome: "partial",
      cliOnly: true,
      retries: false,
      flags: ["-o", "table"],
      code: "unusable_items",
      says: ["6 of the devices", "have no id, at offsets 0, 1, 2", "agentauth api GET /api/v1/device"],
    },
  ),
  listed(
    "L16d",
    "an unknown status with escape sequences",
    "printed escaped",
    (page) => {
      for (const item of page.summaries) item["status"] = "\u001b[5mhacked";
    },
    { outcome: "ok", flags: ["-o", "table"] },
  ),
  listed(
    "L16e",
    "1,000 members in each device",
    "printed",
    (page) => {
      for (const item of page.summaries) for (let nth = 0; nth < 1000; nth++) item[`x${nth}`] = nth;
    },
    { outcome: "ok", flags: ["-o", "table"] },
  ),
];

const redirects: HostileCase[] = [
  ...([301, 302, 303, 307, 308] as const).map((status) =>
    listed(
      `L17-${status}`,
      `${status} to another origin`,
      "not followed; the token is not sent",
      (_, __, ___, { elsewhere }) => ({ status, headers: { location: `${elsewhere.origin}${DEVICES}` } }),
      {
        outcome: "refused",
        code: "redirect_refused",
        says: ({ elsewhere }) => [elsewhere.origin, "redirects off the origin are not followed"],
      },
    ),
  ),
  listed(
    "L17-loop",
    "a redirect to itself",
    "refused after three redirects",
    always({ status: 302, headers: { location: DEVICES } }),
    { outcome: "refused", code: "redirect_refused", times: { "service GET /api/v1/device": 4 } },
  ),
];

/** The management lists. */
export const lists: readonly HostileCase[] = [...waits, ...bodies, ...verdicts, ...pages, ...shapes, ...redirects];
