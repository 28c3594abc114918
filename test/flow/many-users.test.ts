import { expect, it } from "vitest";
import { isAgentAuthError } from "../../src/errors.js";
import { AgentClient } from "../../src/oauth/agent.js";
import { grantStore } from "../../src/store/driver/grant-store.js";
import { memoryDriver } from "../../src/store/driver/memory-driver.js";
import { FakeClock } from "../helpers/clock.js";
import { fc } from "../helpers/properties.js";
import { faulty, lost } from "../store/driver/support.js";

const ORIGIN = "https://mcp.example";
const MCP = `${ORIGIN}/mcp`;
const ISSUER = "https://as.example";
const REDIRECT = "https://app.example/callback";
const MINUTE = 60_000;

/** Two users of each of two tenants, and one without; the same names at both tenants. */
const USERS = [
  { tenant: "tenant-one", user: "canary-ann" },
  { tenant: "tenant-one", user: "canary-bob" },
  { tenant: "tenant-two", user: "canary-ann" },
  { tenant: "tenant-two", user: "canary-bob" },
  { tenant: undefined, user: "canary-ann" },
] as const;

const KINDS = [
  "token",
  "force",
  "fetch",
  "provide",
  "login",
  "stolenCallback",
  "exchange",
  "logout",
  "status",
] as const;

/** What happens, in which order things are answered, and what fails: numbers that are used up one after the other. */
const PLANS = fc.record({
  steps: fc.array(
    fc.record({
      who: fc.nat(USERS.length - 1),
      kind: fc.constantFrom(...KINDS),
      gap: fc.nat(3),
      minutes: fc.constantFrom(0, 0, 0, 61),
      abort: fc.constantFrom(false, false, false, true),
    }),
    { minLength: 20, maxLength: 50 },
  ),
  delays: fc.array(fc.nat(6), { minLength: 10, maxLength: 10 }),
  faults: fc.array(
    fc.oneof(
      { weight: 12, arbitrary: fc.constant("") },
      { weight: 3, arbitrary: fc.constantFrom("503", "reset", "lost", "refuse") },
    ),
    { minLength: 17, maxLength: 17 },
  ),
  brokenStore: fc.array(fc.nat(40), { minLength: 50, maxLength: 50 }),
});

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
}

/** An issuer whose tokens say to whom it issued them, and an MCP server that says whose token it got. */
class World {
  readonly clock = new FakeClock();
  readonly sent: string[] = [];
  readonly #delays: readonly number[];
  readonly #faults: readonly string[];
  readonly #brokenStore: readonly number[];
  /** Whether everything works. */
  isCalm = true;
  #calls = 0;
  #operations = 0;
  #issued = 0;

  constructor({ delays, faults, brokenStore }: Record<"delays" | "brokenStore", number[]> & { faults: string[] }) {
    this.#delays = delays;
    this.#faults = faults;
    this.#brokenStore = brokenStore;
  }

  /** An operation of the store. */
  operate = () => {
    if (this.#brokenStore[this.#operations++ % this.#brokenStore.length] === 0 && !this.isCalm) lost();
  };

  fetch = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init);
    const body = await request.text();
    this.sent.push(`${request.method} ${request.url} ${JSON.stringify([...request.headers])} ${body}`);
    const fault = this.isCalm ? "" : this.#faults[this.#calls++ % this.#faults.length];
    await turns(this.#delays[this.#calls % this.#delays.length] ?? 0);
    if (fault === "503") return Response.json({}, { status: 503, headers: { "retry-after": "0" } });
    if (fault === "reset") throw Object.assign(new TypeError("fetch failed"), { cause: { code: "ECONNRESET" } });
    const reply = this.#answer(request, new URLSearchParams(body), fault);
    if (fault === "lost") throw Object.assign(new TypeError("fetch failed"), { cause: { code: "ECONNRESET" } });
    return reply;
  };

  #answer(request: Request, form: URLSearchParams, fault = ""): Response {
    const { pathname } = new URL(request.url);
    const cached = { headers: { "cache-control": "max-age=3600" } };
    if (pathname.startsWith("/.well-known/oauth-protected-resource"))
      return Response.json({ resource: MCP, authorization_servers: [ISSUER] }, cached);
    if (pathname.startsWith("/.well-known/")) return Response.json(METADATA, cached);
    if (pathname === "/register")
      return Response.json({ client_id: "client", redirect_uris: [REDIRECT] }, { status: 201 });
    if (pathname === "/revoke") return new Response();
    if (pathname === "/token") return this.#tokens(form, fault);
    const token = request.headers.get("authorization")?.replace("Bearer ", "");
    if (token === undefined || fault === "refuse") {
      const challenge = `Bearer resource_metadata="${ORIGIN}/.well-known/oauth-protected-resource/mcp"`;
      return new Response(null, { status: 401, headers: { "www-authenticate": challenge } });
    }
    return new Response(token);
  }

  #tokens(form: URLSearchParams, fault: string): Response {
    if (fault === "refuse") return Response.json({ error: "invalid_grant" }, { status: 400 });
    const from = form.get("refresh_token") ?? form.get("code") ?? form.get("subject_token") ?? "";
    // A code is `code.<whose>.<n>`, a token `<kind>.<whose>.<n>`.
    const whose = from.split(".")[1];
    const nth = ++this.#issued;
    const issued = form.get("grant_type")?.endsWith("token-exchange") && {
      issued_token_type: "urn:ietf:params:oauth:token-type:access_token",
    };
    return Response.json({
      access_token: `access.${whose}.${nth}`,
      token_type: "Bearer",
      expires_in: 3600,
      ...(issued || { refresh_token: `refresh.${whose}.${nth}` }),
    });
  }
}

const METADATA = {
  issuer: ISSUER,
  authorization_endpoint: `${ISSUER}/authorize`,
  token_endpoint: `${ISSUER}/token`,
  registration_endpoint: `${ISSUER}/register`,
  revocation_endpoint: `${ISSUER}/revoke`,
  response_types_supported: ["code"],
  code_challenge_methods_supported: ["S256"],
};

it("gives no user the token of another one, in whatever order things happen and fail", async () => {
  const seen = { tokens: 0, refused: 0 };
  await fc.assert(
    fc.asyncProperty(PLANS, async ({ steps, ...chances }) => {
      const world = new World(chances);
      const driver = faulty(memoryDriver());
      driver.before = { get: world.operate, put: world.operate };
      driver.after = { put: world.operate, claim: world.operate };
      const agents = new AgentClient({
        store: grantStore(driver, { seal: "none", takeover: "fast" }),
        clock: world.clock,
        fetch: world.fetch as typeof fetch,
        random: () => 0,
        trustNamedIssuer: true,
      });
      let code = 0;
      /** The user's browser at the issuer, and its way back to the app. */
      const consented = (whose: number, state: string) => {
        const parameters = new URLSearchParams({ code: `code.user${whose}.${++code}`, state });
        return `${REDIRECT}?${parameters}`;
      };
      const perform = async (who: number, kind: (typeof KINDS)[number], signal: AbortSignal | undefined) => {
        const mine = agents.for(USERS[who] ?? { user: "unknown" });
        const options = signal === undefined ? {} : { signal };
        if (kind === "token") return (await mine.token(MCP, options)).value;
        if (kind === "force") return (await mine.token(MCP, { ...options, forceRefresh: true })).value;
        if (kind === "provide") return await mine.authProvider(MCP).token();
        if (kind === "fetch") {
          const response = await mine.fetch(MCP, options);
          return response.ok ? await response.text() : undefined;
        }
        if (kind === "exchange") {
          const { value } = await mine.exchange(MCP, { audience: "https://api.example", ...options });
          return value;
        }
        if (kind === "logout") return void (await mine.disconnect(MCP));
        if (kind === "status") {
          for (const { profile } of await mine.status()) expect(profile).toBe(USERS[who]?.user);
          return undefined;
        }
        const { state, cookie } = await mine.startLogin(MCP, { redirectUri: REDIRECT });
        // Another user's browser, with all that it could have got hold of.
        const by = kind === "stolenCallback" ? (who + 1) % USERS.length : who;
        const finish = agents.for(USERS[by] ?? { user: "unknown" });
        const result = await finish.handleCallback(consented(who, state), { cookie: cookie.split(";")[0] });
        expect(kind).toBe("login");
        return result.done?.token.value;
      };
      for (const who of USERS.keys()) await perform(who, "login", undefined);
      world.isCalm = false;
      const work: Promise<void>[] = [];
      for (const { who, kind, gap, minutes, abort } of steps) {
        await turns(gap);
        if (minutes > 0) await world.clock.sleep(minutes * MINUTE, new AbortController().signal);
        const signal = abort ? AbortSignal.timeout(0) : undefined;
        const check = async () => {
          try {
            const value = await perform(who, kind, signal);
            if (value === undefined) return;
            seen.tokens++;
            expect(value).toMatch(new RegExp(`^access\\.user${who}\\.\\d+$`));
          } catch (error) {
            // `fetch` fails as the one of the options does.
            if (!isAgentAuthError(error) && !String(error).includes("fetch failed")) throw error;
            seen.refused++;
          }
        };
        work.push(check());
      }
      await Promise.all(work);
      expect(world.sent.filter((text) => /canary|tenant-/.test(text))).toEqual([]);
    }),
    { numRuns: 50 },
  );
  // Of what always fails, the property would say nothing.
  expect(seen.tokens).toBeGreaterThan(seen.refused / 4);
}, 60_000);
