import { readFileSync } from "node:fs";
import { fileURLToPath, pathToFileURL } from "node:url";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import openapiTypeScript, { astToString, COMMENT_HEADER } from "openapi-typescript";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { consent, cookieHeader } from "../oauth/login/web-support.js";
import { ORIGIN, startVault, type VaultScene } from "./support.js";

const file = fileURLToPath(new URL("../../vault.openapi.yaml", import.meta.url));
const contract = parse(readFileSync(file, "utf8")) as Contract;

interface Content {
  content?: Record<string, { schema: object; example: unknown }>;
}
interface Operation {
  operationId: string;
  requestBody?: Content;
  responses: Record<string, Content & { $ref?: string }>;
}
interface Contract {
  paths: Record<string, Record<"get" | "post", Operation>>;
  components: { schemas: object; responses: Record<string, Content> };
}

const OPERATIONS = Object.values(contract.paths).flatMap((methods) => Object.values(methods));
// As the refs of the document name them.
const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv);
ajv.addSchema({ $id: "contract", components: contract.components });

function check(schema: object, value: unknown): void {
  const text = JSON.stringify(schema).replaceAll('"#/', '"contract#/');
  const validate = ajv.compile(JSON.parse(text) as object);
  expect(validate(value), JSON.stringify(validate.errors)).toBe(true);
}

/** The response of the contract to a status: its own, or that of its class. */
function documented({ responses }: Operation, status: number): Content {
  const found = responses[status] ?? responses[`${String(status)[0]}XX`];
  if (found === undefined) throw new Error(`${status} is not in the contract`);
  return found.$ref === undefined ? found : (contract.components.responses[found.$ref.split("/").at(-1) ?? ""] ?? {});
}

/** For each operation, what causes each of its responses. */
const ANSWERS: Record<string, Record<string, (scene: VaultScene) => Promise<Response>>> = {
  listConnections: {
    "200": async ({ connect, send }) => {
      await connect();
      return send("/connections");
    },
    "4XX": ({ send }) => send("/connections?limit=0"),
    "5XX": ({ send }) => send("/connections", { headers: { tenant: "none-here" } }),
  },
  startConnection: {
    "200": ({ post, mcp }) => post("/connect", { server: mcp.url, return_to: "/settings" }),
    "303": (scene) => submit(scene, "/connect"),
    "4XX": ({ post }) => post("/connect", {}),
    "5XX": async ({ post, mcp }) => {
      mcp.routes[mcp.wellKnown] = { status: 503, text: "" };
      return post("/connect", { server: mcp.url });
    },
  },
  finishConnection: {
    "303": ({ connect }) => connect(),
    "4XX": ({ vault }) => vault.fetch(new Request(`${ORIGIN}/vault/callback?state=x`)),
    "5XX": async () => {
      const authenticate = () => Promise.reject(new Error("the platform has no sessions"));
      return (await startVault({ authenticate })).send("/callback?state=x");
    },
  },
  endConnection: {
    "200": async ({ connect, post, mcp }) => {
      await connect();
      return post("/disconnect", { server: mcp.url });
    },
    "303": (scene) => submit(scene, "/disconnect"),
    "4XX": ({ post, mcp }) => post("/disconnect", { server: mcp.url }),
    "5XX": ({ post, mcp }) => post("/disconnect", { server: mcp.url }, { tenant: "none-here" }),
  },
  getToken: {
    "200": async ({ connect, post, mcp }) => {
      await connect();
      return post("/token", { server: mcp.url });
    },
    "4XX": ({ post, mcp }) => post("/token", { server: mcp.url }),
    "5XX": ({ post, mcp }) => post("/token", { server: mcp.url }, { tenant: "none-here" }),
  },
};

async function submit({ vault, send, mcp, connect }: VaultScene, path: string): Promise<Response> {
  if (path === "/disconnect") await connect();
  const { token, cookie = "" } = vault.formToken(new Request(ORIGIN));
  const body = new URLSearchParams({ form_token: token, server: mcp.url });
  return send(path, { method: "POST", headers: { cookie: cookieHeader(cookie) }, body });
}

describe("vault.openapi.yaml", () => {
  it.each(OPERATIONS)("has $operationId, whose every answer the handler gives as it says", async (operation) => {
    const causes = ANSWERS[operation.operationId] ?? {};
    expect(Object.keys(causes)).toEqual(Object.keys(operation.responses));
    for (const [name, cause] of Object.entries(causes)) {
      const response = await cause(await startVault({ token: true }));
      expect(String(response.status)).toMatch(new RegExp(`^${name.replace("XX", "\\d\\d")}$`));
      const { content } = documented(operation, response.status);
      const type = response.headers.get("content-type");
      expect(Object.keys(content ?? {})).toEqual(type === null ? [] : [type]);
      const schema = content?.[type ?? ""]?.schema;
      if (schema === undefined) expect(new URL(response.headers.get("location") ?? "").protocol).toMatch(/^https?:$/);
      else check(schema, await response.json());
    }
  });

  it("has examples of the form that it describes", () => {
    const bodies = OPERATIONS.flatMap(({ requestBody, responses }) => [requestBody, ...Object.values(responses)]);
    const examples = [...bodies, ...Object.values(contract.components.responses)].flatMap((body) =>
      Object.values(body?.content ?? {}),
    );
    expect(examples.length).toBeGreaterThan(8);
    for (const { schema, example } of examples) check(schema, example);
  });

  it("names hosts of documentation only", () => {
    const hosts = [...JSON.stringify(contract).matchAll(/https?:\/\/([^/\s"]+)/g)].map(([, host]) => host);
    expect(hosts.filter((host) => !host?.endsWith(".example"))).toEqual([]);
  });

  it("has fresh types", async () => {
    const nodes = await openapiTypeScript(pathToFileURL(file), { arrayLength: true });
    const types = readFileSync(new URL("../../src/vault/schema.gen.ts", import.meta.url), "utf8");
    expect(types, "npm run generate writes the types from vault.openapi.yaml").toBe(
      COMMENT_HEADER + astToString(nodes),
    );
  });
});

it("finishes a login at the address that the contract names", async () => {
  const { post, mcp } = await startVault();
  const { url } = (await (await post("/connect", { server: mcp.url })).json()) as { url: string };
  expect((await consent(url)).pathname).toBe("/vault/callback");
});
