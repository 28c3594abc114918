import { describe, expect, it } from "vitest";
import { AgentAuthError } from "../../../src/errors.js";
import { refuseDocument } from "../../../src/oauth/client/metadata-document.js";
import { LOGIN_HINT } from "../../../src/oauth/grant/grant-requirements.js";
import { REPLACES_DOCUMENT, withLoginClient, withScopeHint } from "../../../src/oauth/login/authorization.js";
import type { ClientRecord } from "../../../src/oauth/model/grant.js";
import { memoryStore } from "../../../src/store/memory.js";
import { FakeClock } from "../../helpers/clock.js";
import { madeClient } from "../../helpers/grant.js";

const NOW = 1_800_000_000_000;
const FORM = "http://127.0.0.1/callback";
const MINUTE = 60_000;
const SERVER = "https://mcp.example/mcp";
const invalidClient = () => new AgentAuthError("invalid_client", "no such client", { class: "auth", status: 401 });

describe("a client that the issuer refuses", () => {
  /** What a login with a client ends with, and the client that is stored after it. */
  async function refused(over: Partial<ClientRecord>, error: unknown = invalidClient()) {
    const store = memoryStore();
    const client = madeClient(over);
    const form = client.source === "metadata-document" ? client.clientId : FORM;
    await store.saveClient(client, form);
    const login = { client, form, signal: new AbortController().signal };
    const work = withLoginClient({ store, clock: new FakeClock(NOW) }, login, () => Promise.reject<never>(error));
    const thrown = (await work.catch((reason: unknown) => reason)) as AgentAuthError;
    return { thrown, client, stored: await store.readClient(client.issuer, form) };
  }

  const AGAIN = "log in again: another client is registered for that";

  it.each<[string, number[] | undefined, string | undefined]>([
    ["that was registered", undefined, AGAIN],
    ["that was registered once", [NOW], AGAIN],
    ["that was registered again ten minutes ago", [NOW - 60 * MINUTE, NOW - 10 * MINUTE], AGAIN],
    [
      "that was registered again since",
      [NOW - 60 * MINUTE, NOW - 10 * MINUTE + 1],
      "give the client it knows as client",
    ],
  ])("%s is not used again", async (_what, registeredAt, hint) => {
    const { thrown, stored } = await refused({ ...(registeredAt && { registeredAt }) });
    expect(thrown).toMatchObject({ code: "invalid_client", class: "auth", hint });
    expect(thrown.remedy === undefined).toBe(hint === AGAIN);
    expect(stored?.isRefused).toBe(true);
  });

  it("is a metadata document that is not used for a day", async () => {
    const over = { source: "metadata-document", clientId: "https://client.example/agent.json" } as const;
    const { thrown, stored, client } = await refused(over);
    expect(thrown).toMatchObject({ code: "invalid_client", hint: REPLACES_DOCUMENT });
    const expected = memoryStore();
    await refuseDocument(expected, client, NOW);
    expect(stored).toEqual(await expected.readClient(client.issuer, client.clientId));
  });

  it.each<[string, Partial<ClientRecord>, unknown]>([
    ["a client that is registered beforehand", { source: "pre-registered" }, invalidClient()],
    ["another error", {}, new AgentAuthError("invalid_grant", "used", { class: "auth" })],
    [
      "another error of a document",
      { source: "metadata-document" },
      new AgentAuthError("timeout", "late", { class: "unavailable" }),
    ],
    ["a bug", {}, new RangeError("oops")],
  ])("is not meant by %s", async (_what, over, error) => {
    const { thrown, stored } = await refused(over, error);
    expect(thrown).toBe(error);
    expect(stored?.isRefused).toBeUndefined();
  });

  it("is none where the work succeeds", async () => {
    const context = { store: memoryStore(), clock: new FakeClock(NOW) };
    const login = { client: madeClient(), form: FORM, signal: new AbortController().signal };
    expect(await withLoginClient(context, login, async () => 7)).toEqual({ client: login.client, response: 7 });
  });
});

describe("scopes that the issuer refuses", () => {
  const error = (code = "invalid_scope", hint?: string) =>
    new AgentAuthError(code, "no", { class: "remote", ...(hint !== undefined && { hint }) });
  const hinted = (given: unknown, scope: string[]) =>
    withScopeHint(given, { profile: "work" }, { server: SERVER, account: "ann", scope });

  it("are requested without offline_access, or others are", () => {
    const login = { action: "login", server: SERVER, account: "ann" };
    expect(hinted(error(), ["a", "offline_access", "b"])).toMatchObject({
      hint: LOGIN_HINT,
      remedy: { ...login, scope: "a b" },
    });
    expect(hinted(error(), ["a", "b"])).toMatchObject({
      hint: "ask for other scopes",
      remedy: { ...login, option: "scope" },
    });
    expect(hinted(error(), [])).toMatchObject({ hint: "ask for other scopes" });
  });

  it.each([error("invalid_grant"), error("invalid_scope", "another hint"), new RangeError("oops")])(
    "are no matter of %s",
    (given) => {
      expect(hinted(given, ["a", "offline_access"])).toBe(given);
    },
  );
});
