import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import openapiTypeScript, { astToString, COMMENT_HEADER } from "openapi-typescript";
import { describe, expect, expectTypeOf, it } from "vitest";
import { parse } from "yaml";
import { ManagementClient } from "../../src/api/client.js";
import type { components, operations } from "../../src/api/schema.gen.js";
import { checkShape, SHAPES } from "../../src/api/shapes.js";
import { type Device as ReadDevice, readStrictChecks } from "../../src/api/types.js";
import { SERVICE_ERROR_CODES } from "../../src/error-codes.js";

const root = fileURLToPath(new URL("../../", import.meta.url));
const text = readFileSync(join(root, "openapi.yaml"), "utf8");
const contract: unknown = parse(text);

type Fields = Record<string, Record<string, unknown>>;

const string = { type: "string" };
const number = { type: "number" };
const one = (...values: string[]) => ({ type: "string", enum: values });
const ref = (name: string) => ({ $ref: `#/components/schemas/${name}` });
const envelope = (resource: string, sorting: Record<string, unknown>) => ({
  status: one("success"),
  pagination: ref("PaginationOutput"),
  sorting,
  summaries: { type: "array", items: ref(resource) },
});
const deviceField = one("id", "last_seen", "status", "title");

/** The fields of the service's own tables, with every constraint that they have. */
const TABLES: Record<string, Fields> = {
  Pool_Summary: {
    account_id: ref("Account_Id"),
    authentication_ruleset_nid: ref("Domain_Ruleset_Nid"),
    domain_id: ref("Domain_Id"),
    id: ref("Pool_Id"),
    status: string,
    title: string,
    type: one("pool"),
  },
  Domain_Summary: {
    account_id: ref("Account_Id"),
    id: ref("Domain_Id"),
    status: string,
    title: string,
    type: one("domain"),
  },
  Device_Summary: {
    account_id: ref("Account_Id"),
    domain_id: ref("Domain_Id"),
    pool_id: ref("Pool_Id"),
    id: ref("Device_Id"),
    dynamic_client_details: ref("Dynamic_Client_Details"),
    first_seen: ref("InteractionDetails"),
    last_seen: ref("InteractionDetails"),
    session_type: one("browser", "api", "mcp"),
    status: one("active", "revoked"),
    title: string,
    type: one("device"),
  },
  Dynamic_Client_Details: {
    auth_profile: one("openid", "mcp"),
    client_secret: string,
    pkce_required: { type: "boolean" },
    redirect_uris: { type: "array", items: string },
    title: string,
  },
  InteractionDetails: {
    asn: { type: "integer", minimum: 1 },
    at: number,
    city: string,
    country_code: { type: "string", pattern: "^[A-Z]{2}$" },
    ja4_fingerprint: string,
    lat_long: { type: "array", items: number, minItems: 2, maxItems: 2 },
    region_code: string,
    remote_ip: { type: "string", format: "ipv4" },
    timezone: string,
    user_agent: string,
  },
  PaginationOutput: {
    item_count: number,
    item_start: number,
    item_end: number,
    page_count: number,
    page_index: number,
    page_offset: number,
    page_size: number,
    next_page_offset: orNull(number),
    previous_page_offset: orNull(number),
  },
  Sorting: { direction: one("asc", "desc"), field: string },
  Pool_List: envelope("Pool_Summary", ref("Sorting")),
  Domain_List: envelope("Domain_Summary", ref("Sorting")),
  Device_List: envelope("Device_Summary", {
    allOf: [ref("Sorting"), { type: "object", properties: { field: orNull(deviceField) } }],
  }),
  Error: {
    status: one("error"),
    code: one(
      "bad_request",
      "bad_authtoken",
      "not_authenticated",
      "not_permitted",
      "not_implemented",
      "unknown",
      "not_found",
      "unexpected_ref_type",
      "unexpected",
      "invalid_action",
      "invalid_value",
      "required_value",
    ),
    message: string,
  },
};
const PAGE_NUMBERS = Object.keys(TABLES["PaginationOutput"] ?? {});
/** What is always there; every other field may be absent or null. */
const REQUIRED: Record<string, string[]> = {
  Pool_Summary: ["id", "domain_id", "type"],
  Domain_Summary: ["id", "account_id", "type"],
  Device_Summary: ["id", "pool_id", "type"],
  PaginationOutput: PAGE_NUMBERS,
  Pool_List: ["status", "pagination", "summaries"],
  Domain_List: ["status", "pagination", "summaries"],
  Device_List: ["status", "pagination", "summaries"],
  Error: ["status", "code"],
};
const IDENTIFIERS = ["Account_Id", "Domain_Id", "Pool_Id", "Device_Id", "Domain_Ruleset_Nid"];

const LISTS = [
  {
    path: "/api/v1/pool",
    id: "listPools",
    tag: "pools",
    scope: "domain_id",
    scopeType: "Domain_Id",
    list: "Pool_List",
  },
  {
    path: "/api/v1/domain",
    id: "listDomains",
    tag: "domains",
    scope: "account_id",
    scopeType: "Account_Id",
    list: "Domain_List",
  },
  {
    path: "/api/v1/device",
    id: "listDevices",
    tag: "devices",
    scope: "pool_id",
    scopeType: "Pool_Id",
    list: "Device_List",
  },
];

/** Our leniency: a value, or null. */
function orNull({ type, ...rest }: Record<string, unknown>): Record<string, unknown> {
  if (type === undefined) return { anyOf: [rest, { type: "null" }] };
  return { ...rest, type: [type, "null"], ...(Array.isArray(rest["enum"]) && { enum: [...rest["enum"], null] }) };
}

/** The part of the contract at a path of keys. */
function at(...path: (string | number)[]): unknown {
  return path.reduce((node, key) => (node as Record<string | number, unknown> | undefined)?.[key], contract);
}

/** The same without what is said for people. */
function bare(node: unknown): unknown {
  if (Array.isArray(node)) return node.map(bare);
  if (typeof node !== "object" || node === null) return node;
  const prose = ["description", "example", "examples"];
  const kept = Object.entries(node).filter(([key]) => !prose.includes(key));
  return Object.fromEntries(kept.map(([key, part]) => [key, bare(part)]));
}

/** Expects something of a part without what is said for people; a failure names the part. */
function expectAt(...path: string[]) {
  return expect(bare(at(...path)), `openapi.yaml at ${path.join(" > ")}, compared with test/api/contract.test.ts`);
}

/** Every part of a kind: those for which `pick` gives something. */
function collect<T>(node: unknown, pick: (part: Record<string, unknown>) => T | undefined): T[] {
  if (typeof node !== "object" || node === null) return [];
  const own = pick(node as Record<string, unknown>);
  return [...(own === undefined ? [] : [own]), ...Object.values(node).flatMap((part) => collect(part, pick))];
}

describe("openapi.yaml: the resources", () => {
  it("are those that the service names", () => {
    expect(Object.keys(at("components", "schemas") as object).sort()).toEqual(
      [...IDENTIFIERS, ...Object.keys(TABLES)].sort(),
    );
  });

  it.each(IDENTIFIERS)("%s is a string", (name) => {
    expectAt("components", "schemas", name).toEqual(string);
  });

  it.each(Object.entries(TABLES))(
    "%s has the documented fields, of which those that are not required may be absent or null",
    (name, fields) => {
      const required = REQUIRED[name];
      const properties = Object.fromEntries(
        Object.entries(fields).map(([field, type]) => [field, required?.includes(field) ? type : orNull(type)]),
      );
      expectAt("components", "schemas", name).toEqual({
        type: "object",
        ...(required && { required }),
        properties,
      });
    },
  );

  it("have the error codes that the package knows", () => {
    expect(at("components", "schemas", "Error", "properties", "code", "enum")).toEqual(SERVICE_ERROR_CODES);
  });

  it("come out as pleasant types", () => {
    type Device = components["schemas"]["Device_Summary"];
    expectTypeOf<Device["status"]>().toEqualTypeOf<"active" | "revoked" | null | undefined>();
    expectTypeOf<Device["id" | "pool_id"]>().toEqualTypeOf<string>();
    expectTypeOf<Device["domain_id"]>().toEqualTypeOf<string | null | undefined>();
    expectTypeOf<components["schemas"]["Device_List"]["summaries"]>().toEqualTypeOf<Device[]>();
    expectTypeOf<components["schemas"]["PaginationOutput"]["item_count"]>().toEqualTypeOf<number>();
    expectTypeOf<NonNullable<Device["last_seen"]>["lat_long"]>().toEqualTypeOf<[number, number] | null | undefined>();
    expectTypeOf<NonNullable<ReadDevice["last_seen"]>["lat_long"]>().toEqualTypeOf<
      [number, number] | null | undefined
    >();
    expectTypeOf<ReadDevice["type"]>().toEqualTypeOf<"device">();
    expectTypeOf<components["schemas"]["Pool_Summary"]["status"]>().toEqualTypeOf<string | null | undefined>();
    expectTypeOf<operations["listDevices"]["parameters"]["query"]>().toEqualTypeOf<{
      pool_id: string;
      sorting?: { direction?: "asc" | "desc"; field?: "id" | "last_seen" | "status" | "title" };
      "pagination[offset]"?: number;
      "pagination[page_size]"?: number;
    }>();
  });
});

describe("openapi.yaml: the list operations", () => {
  const query = { in: "query", required: false };
  const sorting = (field: unknown) => ({
    ...query,
    style: "deepObject",
    explode: true,
    name: "sorting",
    schema: { type: "object", properties: { direction: one("asc", "desc"), field } },
  });

  it("are three, and only read", () => {
    expect(Object.entries(at("paths") as object).map(([path, item]) => [path, Object.keys(item)])).toEqual(
      LISTS.map(({ path }) => [path, ["get"]]),
    );
  });

  it.each(LISTS)("$id has a required $scope and answers with a $list", ({ path, id, tag, scope, scopeType, list }) => {
    const parameter = (name: string) => ({ $ref: `#/components/parameters/${name}` });
    expectAt("paths", path, "get").toEqual({
      operationId: id,
      tags: [tag],
      summary: expect.any(String),
      parameters: [
        { name: scope, in: "query", required: true, schema: ref(scopeType) },
        parameter(id === "listDevices" ? "Device_Sorting" : "Sorting"),
        parameter("Pagination_Offset"),
        parameter("Pagination_Page_Size"),
      ],
      responses: {
        "200": { content: { "application/json": { schema: ref(list) } } },
        "4XX": { $ref: "#/components/responses/Error" },
        "5XX": { $ref: "#/components/responses/Error" },
      },
    });
  });

  it("share their optional parameters", () => {
    expectAt("components", "parameters").toEqual({
      Sorting: sorting(string),
      Device_Sorting: sorting(deviceField),
      Pagination_Offset: { ...query, name: "pagination[offset]", schema: { type: "integer", minimum: 0 } },
      Pagination_Page_Size: { ...query, name: "pagination[page_size]", schema: { type: "integer", minimum: 1 } },
    });
  });

  it("share their error", () => {
    expectAt("components", "responses").toEqual({
      Error: { content: { "application/json": { schema: ref("Error") } } },
    });
  });

  it("are asked at the base address with a bearer token", () => {
    expectAt("servers").toEqual([
      { url: "{base_url}", variables: { base_url: { default: "https://agentauth.example" } } },
    ]);
    expectAt("components", "securitySchemes").toEqual({ bearer: { type: "http", scheme: "bearer" } });
    expect(at("security")).toEqual([{ bearer: [] }]);
  });
});

describe("openapi.yaml: what is said for people", () => {
  const schema = (...path: string[]) => ["components", "schemas", ...path];
  const field = (name: string, key: string) => schema(name, "properties", key);
  const parameter = (...path: string[]) => ["components", "parameters", ...path];
  const gaps: [string, string[]][] = [
    ["authentication", ["components", "securitySchemes", "bearer"]],
    ["encoding of sorting", parameter("Sorting")],
    ["encoding of sorting, devices", parameter("Device_Sorting")],
    ["sort fields of pools and domains", parameter("Sorting", "schema", "properties", "field")],
    ["sort fields of pools and domains, answered", field("Sorting", "field")],
    ["pagination offset", parameter("Pagination_Offset")],
    ["pagination page size", parameter("Pagination_Page_Size")],
    ["status of a pool", field("Pool_Summary", "status")],
    ["status of a domain", field("Domain_Summary", "status")],
    ["forms of client_secret", field("Dynamic_Client_Details", "client_secret")],
    ["forms of first_seen", field("Device_Summary", "first_seen")],
    ["forms of last_seen", field("Device_Summary", "last_seen")],
    ["forms of remote_ip", field("InteractionDetails", "remote_ip")],
    ["HTTP status of a code", ["components", "responses", "Error"]],
    ["codes of pools and domains", field("Error", "code")],
    ...["Dynamic_Client_Details", "InteractionDetails", "Sorting", ...Object.keys(REQUIRED)].map(
      (name): [string, string[]] => [`required fields of ${name}`, schema(name)],
    ),
  ];

  it.each(gaps)("marks our choice: %s", (_, path) => {
    expect(at(...path, "description")).toContain("Our choice: ");
  });

  it.each([
    "authenticate",
    "absent or null",
    "`sorting`",
    "`pagination[offset]`",
    "status of a pool",
    "sort fields",
    "HTTP",
  ])("sums up our choice about %s", (word) => {
    const choices = String(at("info", "description")).match(/^- Our choice: .*$/gm) ?? [];
    expect(choices.filter((choice) => choice.includes(word))).not.toEqual([]);
  });

  it("describes everything, and gives an example of everything", () => {
    const described = [
      ...["info", "tags", "servers"].flatMap((key) => [at(key)].flat()),
      ...["schemas", "parameters", "responses", "securitySchemes"].flatMap((key) =>
        Object.values(at("components", key) as object),
      ),
      ...LISTS.map(({ path }) => at("paths", path, "get")),
      ...collect(contract, (part) => (typeof part["in"] === "string" ? part : undefined)),
      ...collect(contract, (part) => (typeof part["properties"] === "object" ? part["properties"] : undefined)).flatMap(
        (properties) => Object.values(properties ?? {}),
      ),
    ];
    for (const part of described) expect(part).toHaveProperty("description", expect.stringMatching(/\.$/m));

    const typed = collect(contract, (part) => (part["description"] && part["type"] ? part : undefined));
    const lists = typed.filter((part) => (part["items"] as Record<string, unknown> | undefined)?.["$ref"]);
    const leaves = typed.filter((part) => !lists.includes(part) && !["object", "http"].includes(String(part["type"])));
    expect(leaves.length).toBeGreaterThan(50);
    for (const leaf of leaves) expect(leaf).toHaveProperty("examples.0");
    const bodies = collect(contract, (part) => part["application/json"]);
    expect(bodies).toHaveLength(4);
    for (const body of bodies) expect(body).toHaveProperty("example");
  });

  it("gives whole answers of the documented shape as examples", () => {
    const shapes = [
      [SHAPES.pool, SHAPES.sorting],
      [SHAPES.domain, SHAPES.sorting],
      [SHAPES.device, SHAPES.deviceSorting],
    ] as const;
    for (const [index, [item, order]] of shapes.entries()) {
      const path = [
        "paths",
        LISTS[index]?.path ?? "",
        "get",
        "responses",
        "200",
        "content",
        "application/json",
        "example",
      ];
      const all = readStrictChecks("all");
      expect(checkShape(item, at(...path, "summaries", 0), all)).toBeUndefined();
      expect(checkShape(SHAPES.pagination, at(...path, "pagination"), all)).toBeUndefined();
      expect(checkShape(order, at(...path, "sorting"), all)).toBeUndefined();
    }
  });
});

it.each(LISTS)("a mock that answers with the example of $id serves a complete list", async ({ path, tag, scope }) => {
  const example = at("paths", path, "get", "responses", "200", "content", "application/json", "example");
  const fetch = async () => Response.json(example);
  const lists = new ManagementClient({ baseUrl: "https://agentauth.example", fetch });
  const list = lists[tag as "pools"].list({ [scope]: "id" } as { domain_id: string }, { strict: "all" });
  expect(await list.toArray()).toEqual((example as { summaries: unknown }).summaries);
});

describe("openapi.yaml: the examples", () => {
  const placeholders = ["<account_id>", "<domain_id>", "<pool_id>", "<device_id>", "<ruleset_nid>"];
  const secrets = ["<CLIENT_SECRET>", "<ACCESS_TOKEN>"];
  const examples = collect(contract, (part) => part["example"] ?? part["examples"]);

  it("use the service's placeholders and no other", () => {
    expect(new Set(text.match(/<[^<>\n]*>/g))).toEqual(new Set([...placeholders, ...secrets]));
  });

  it("have a placeholder for every identifier and every secret", () => {
    const named = collect(examples, (part) => Object.entries(part)).flat();
    const identifiers = named.filter(([key]) => /(?:^|_)n?id$/.test(key)).map(([, value]) => value);
    expect(new Set(identifiers)).toEqual(new Set(placeholders));
    const hidden = named.filter(([key]) => /secret|token/.test(key)).map(([, value]) => value);
    expect(hidden).toEqual(["<CLIENT_SECRET>"]);
    expect(at("components", "schemas", "Dynamic_Client_Details", "properties", "client_secret", "examples")).toEqual(
      hidden,
    );
  });

  it("hold nothing that looks like a credential", () => {
    expect(JSON.stringify(examples)).not.toMatch(/[A-Za-z0-9]{16,}|eyJ|-----BEGIN/);
    expect(text.match(/Bearer \S+/g)).toEqual(["Bearer <ACCESS_TOKEN>`."]);
  });

  it("name only addresses that are kept for documentation", () => {
    const addresses = text.match(/\b\d+\.\d+\.\d+\.\d+\b/g) ?? [];
    expect(addresses.filter((address) => !address.startsWith("192.0.2."))).toEqual([]);
    const hosts = [...text.matchAll(/https?:\/\/([^/\s"]+)/g)].map(([, host]) => host);
    expect(hosts.filter((host) => !host?.endsWith(".example"))).toEqual([]);
  });
});

describe("openapi.yaml: the files generated from it", () => {
  type Generate = (contract: unknown, source: string) => string;
  const generator = async (name: string): Promise<Record<string, Generate>> =>
    import(pathToFileURL(join(root, "scripts/generate", `${name}.mjs`)).href);

  it.each([
    ["src/api/shapes.gen.ts", "shapes", "shapesText"],
    ["src/cli/commands/schema/service.gen.json", "service-schemas", "serviceSchemasText"],
  ])("include a fresh %s", async (file, name, text) => {
    const generated = (await generator(name))[text]?.(contract, "openapi.yaml");
    expect(readFileSync(join(root, file), "utf8"), `npm run generate writes ${file} from openapi.yaml`).toBe(generated);
  });

  it("include fresh types", async () => {
    const nodes = await openapiTypeScript(pathToFileURL(join(root, "openapi.yaml")), { arrayLength: true });
    const types = readFileSync(join(root, "src/api/schema.gen.ts"), "utf8");
    expect(types, "npm run generate writes the types from openapi.yaml").toBe(COMMENT_HEADER + astToString(nodes));
  });

  it("do not come from a constraint that the table of shapes does not support", async () => {
    const pattern = "          pattern: ^[A-Z]{2}$\n";
    const changed: unknown = parse(text.replace(pattern, `${pattern}          maxLength: 2\n`));
    const { shapesText } = await generator("shapes");
    expect(() => shapesText?.(changed, "openapi.yaml")).toThrow(
      'InteractionDetails.country_code: the table of shapes does not support "maxLength"',
    );
  });
});
