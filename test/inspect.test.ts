import { format, inspect } from "node:util";
import { describe, expect } from "vitest";
import { AgentAuthError, AgentClient, ManagementClient } from "../src/index.js";
import { fileStore, keyringStore, terminalLogin } from "../src/node.js";
import { HandOver } from "../src/oauth/hand-over.js";
import { Secret } from "../src/redact.js";
import type { Sandbox } from "../src/sandbox/index.js";
import { memoryStore } from "../src/store/index.js";
import { temporaryFolder } from "./helpers/folder.js";
import { madeClient, madeGrant } from "./helpers/grant.js";
import { sandboxTest } from "./sandbox/sandbox-test.js";

const CANARY = "canary-of-this-test";
const CANARY_SHAPE = /canary-of-this-test/;
const secret = () => new Secret(CANARY);
const it = sandboxTest({ apiToken: `${CANARY}-api`, controlToken: `${CANARY}-control`, devices: 3 });

/** All ways in which a value is printed by accident, also as a part of another, as a cause, and thrown. */
function printed(value: unknown): string {
  const deep = { depth: 20, maxStringLength: null, maxArrayLength: null } as const;
  return [
    inspect(value, deep),
    inspect([{ value }], { ...deep, getters: true, sorted: true }),
    format("%s %o %j", value, value, value),
    `${String(value)}`,
    JSON.stringify(value),
    JSON.stringify({
      list: [value],
      entries: typeof value === "object" && value !== null ? Object.entries(value) : [],
    }),
    inspect(new Error("outer", { cause: value }), deep),
    inspect(new AgentAuthError("usage", "outer", { class: "usage", cause: value }), deep),
  ].join("\n");
}

/** What a program may print of ours. */
const OBJECTS: readonly (readonly [string, (sandbox: Sandbox) => unknown | Promise<unknown>])[] = [
  ["a management client with a token", (sandbox) => new ManagementClient({ baseUrl: sandbox.baseUrl, token: CANARY })],
  [
    "its listing",
    (sandbox) => new ManagementClient({ baseUrl: sandbox.baseUrl, token: CANARY }).devices.list({ pool_id: "p" }),
  ],
  ["its raw client", (sandbox) => new ManagementClient({ baseUrl: sandbox.baseUrl, token: CANARY }).client],
  [
    "an error of its",
    (sandbox) =>
      new ManagementClient({ baseUrl: sandbox.baseUrl, token: CANARY }).devices.list({ pool_id: "p" }).toArray(),
  ],
  [
    "a page of its",
    async (sandbox) => {
      const service = new ManagementClient({ baseUrl: sandbox.baseUrl, token: sandbox.apiToken });
      for await (const page of service.devices.list({ pool_id: sandbox.ids.pool }).pages()) return page;
      return undefined;
    },
  ],
  [
    "an agent with a client of its own",
    () => new AgentClient({ store: memoryStore(), client: { clientId: "id", clientSecret: secret() } }),
  ],
  [
    "a store in memory",
    async () => {
      const store = memoryStore();
      await store.save(grant(), undefined);
      await store.saveClient(grant().client, "form");
      return store;
    },
  ],
  [
    "a store in files",
    async () => {
      const store = fileStore(temporaryFolder());
      await store.save(grant(), undefined);
      return [store, await store.list()];
    },
  ],
  ["a store in a keychain", () => keyringStore(temporaryFolder())],
  ["a reservation of a store", () => memoryStore().reserve(grant())],
  ["a login method", () => terminalLogin({ say: () => undefined, env: { AGENTAUTH_CLIENT_SECRET: CANARY } })],
  ["a sandbox", (sandbox) => sandbox],
  ["the requests of a sandbox", (sandbox) => [...sandbox.requests]],
  ["a grant", () => grant()],
  ["a login that is handed over", () => new HandOver(grant(), async () => ({ revoked: null, sessionEnded: null }))],
];

function grant() {
  const tokens = { ...madeGrant().tokens, accessToken: secret(), refreshToken: secret(), idToken: secret() };
  return madeGrant({ generation: 1, client: madeClient({ clientSecret: secret() }), tokens });
}

describe("printing, inspecting or serialising shows no secret", () => {
  it.for(OBJECTS)("of %s", async ([_what, make], { sandbox }) => {
    const made = await Promise.resolve()
      .then(() => make(sandbox))
      .catch((error: unknown) => error);
    expect(made).toBeDefined();
    expect(printed(made)).not.toMatch(CANARY_SHAPE);
  });

  it("of an error that a service repeats its request in", async () => {
    const fetch: typeof globalThis.fetch = async (input) => {
      const said = [...(input as Request).headers].join(" ");
      return Response.json(
        { status: "error", code: "bad_request", message: said },
        { status: 400, headers: { "x-said": said } },
      );
    };
    const service = new ManagementClient({ baseUrl: "https://agentauth.example", token: CANARY, fetch });
    const error = await service.devices
      .list({ pool_id: "p" })
      .toArray()
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "bad_request" });
    expect(printed(error)).not.toMatch(CANARY_SHAPE);
  });
});
