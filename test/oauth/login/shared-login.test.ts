import { describe, expect, it } from "vitest";
import { untilAborted } from "../../../src/http/deadline.js";
import type { GrantStore } from "../../../src/oauth/model/grant-store.js";
import { fileStore } from "../../../src/store/file/file.js";
import { memoryStore } from "../../../src/store/memory.js";
import { pendingError } from "../../helpers/captured.js";
import { FakeClock } from "../../helpers/clock.js";
import { startMcp } from "../../helpers/issuer.js";
import { loginAt, remedy } from "../../helpers/remedy.js";
import { until } from "../../helpers/server.js";
import { folder } from "../../store/stores.js";
import { denies, hold, SIGNAL, startSharedScene } from "./support.js";

const MINUTE = 60_000;

const stores = [
  ["memoryStore", memoryStore],
  ["fileStore", () => fileStore(folder())],
] as const;

describe.each(stores)("agents over one %s", (_name, open) => {
  it("open one browser, and the one that waits gets the login", async () => {
    const { seat, mcp, issuer, loginsRequested } = await startSharedScene(open);
    const [first, second] = [seat(), seat()];
    const release = hold(first.login);
    const leading = first.agent.token(mcp.url);
    await until(() => first.login.urls.length === 1);
    const following = second.agent.token(mcp.url);
    await loginsRequested(2);
    release();
    const tokens = await Promise.all([leading, following]);
    expect(tokens.map(({ value }) => value)).toEqual(["access-as-1", "access-as-1"]);
    expect(first.login.opened.length + second.login.opened.length).toBe(1);
    expect(issuer.to("/pool/token")).toHaveLength(1);
  });

  it("open one browser for two who both requested a login", async () => {
    const { seat, mcp, loginsRequested } = await startSharedScene(open);
    await seat().agent.login(mcp.url);
    const [first, second] = [seat(), seat()];
    const release = hold(first.login);
    const leading = first.agent.login(mcp.url);
    await until(() => first.login.urls.length === 1);
    const following = second.agent.login(mcp.url);
    await loginsRequested(3);
    release();
    expect((await leading).value).toBe("access-as-2");
    expect((await following).value).toBe("access-as-2");
    expect(second.login.opened).toEqual([]);
  });

  it("ask again for a request after a finished login", async () => {
    const { seat, mcp } = await startSharedScene(open);
    await seat().agent.login(mcp.url);
    const later = seat();
    expect((await later.agent.token(mcp.url)).value).toBe("access-as-1");
    expect(later.login.opened).toEqual([]);
    expect((await later.agent.login(mcp.url)).value).toBe("access-as-2");
    expect(later.login.opened).toHaveLength(1);
  });

  it("ask themselves where the login lacks a scope", async () => {
    const { seat, mcp, loginsRequested } = await startSharedScene(open);
    const [first, second] = [seat(), seat()];
    const release = hold(first.login);
    const leading = first.agent.token(mcp.url, { scope: "a" });
    await until(() => first.login.urls.length === 1);
    const following = second.agent.token(mcp.url, { scope: "b" });
    await loginsRequested(2);
    release();
    await leading;
    expect((await following).scope).toContain("b");
    expect(second.login.opened).toHaveLength(1);
  });

  it("log in at different servers side by side", async () => {
    const { seat, mcp, issuer, log } = await startSharedScene(open);
    const other = await startMcp("mcp2", log, issuer);
    const [first, second] = [seat(), seat()];
    const releases = [hold(first.login), hold(second.login)];
    const both = Promise.all([first.agent.token(mcp.url), second.agent.token(other.url)]);
    await until(() => first.login.urls.length === 1 && second.login.urls.length === 1);
    for (const release of releases) release();
    expect(new Set((await both).map(({ value }) => value)).size).toBe(2);
  });

  it("report the user's refusal to those that wait, without asking again", async () => {
    const { seat, mcp, loginsRequested } = await startSharedScene(open);
    const [first, second, third] = [seat(), seat(), seat()];
    denies(first.login);
    const release = hold(first.login);
    const leading = first.agent.token(mcp.url);
    await until(() => first.login.urls.length === 1);
    const following = [second.agent.token(mcp.url), third.agent.login(mcp.url)];
    await loginsRequested(3);
    release();
    for (const result of await Promise.allSettled([leading, ...following])) {
      expect(result).toMatchObject({ status: "rejected", reason: { code: "access_denied", class: "auth" } });
    }
    expect([...second.login.opened, ...third.login.opened]).toEqual([]);
  });

  it("do not ask a user who denied the login again for five minutes, however often a program requests it", async () => {
    const { seat, mcp, clock } = await startSharedScene(open);
    const person = seat();
    denies(person.login);
    expect(await pendingError(person.agent.token(mcp.url))).toMatchObject({ code: "access_denied" });
    for (const minute of [0, 1, 2, 3, 4]) {
      const error = await person.agent.token(mcp.url).catch((thrown: unknown) => thrown as Error & { hint?: string });
      expect(error).toMatchObject({
        code: "access_denied",
        hint: "log in to be asked again",
        remedy: loginAt(mcp.url),
      });
      const { message } = error as Error;
      expect(message).toMatch(/failed \d+ s ago: the login failed with "access_denied": they said no$/);
      const ago = Number(/failed (\d+) s/.exec(message)?.[1]);
      expect(Math.floor(ago / 60)).toBe(minute);
      expect(message.match(/ s ago/g)).toHaveLength(1);
      await clock.sleep(MINUTE, SIGNAL);
    }
    expect(person.login.opened).toHaveLength(1);
    await clock.sleep(10_000, SIGNAL);
    expect(await pendingError(person.agent.token(mcp.url))).toMatchObject({ code: "access_denied" });
    expect(person.login.opened).toHaveLength(2);
  });

  it("ask a user who denied the login at once when the user requests it", async () => {
    const { seat, mcp } = await startSharedScene(open);
    const person = seat();
    denies(person.login);
    expect(await pendingError(person.agent.token(mcp.url))).toMatchObject({ code: "access_denied" });
    person.login.alter = () => undefined;
    expect((await person.agent.login(mcp.url)).value).toBe("access-as-1");
    expect((await person.agent.token(mcp.url)).value).toBe("access-as-1");
  });

  it("do not count it as a denial that the issuer did not answer", async () => {
    const { seat, mcp, issuer } = await startSharedScene(open);
    const person = seat();
    const answer = issuer.routes["/pool/token"];
    issuer.routes["/pool/token"] = { status: 503, text: "" };
    expect(await pendingError(person.agent.token(mcp.url))).toMatchObject({ class: "unavailable" });
    if (answer) issuer.routes["/pool/token"] = answer;
    expect((await person.agent.token(mcp.url)).value).toBe("access-as-2");
  });

  it("continue themselves where the one that they waited for was called off", async () => {
    const { seat, mcp, loginsRequested } = await startSharedScene(open);
    const [first, second] = [seat(), seat()];
    const controller = new AbortController();
    first.login.before = () => untilAborted(new Promise(() => undefined), controller.signal);
    const leading = first.agent.token(mcp.url, { signal: controller.signal });
    await until(() => first.login.urls.length === 1);
    const following = second.agent.token(mcp.url);
    await loginsRequested(2);
    controller.abort();
    expect(await pendingError(leading)).toMatchObject({ code: "aborted" });
    expect((await following).value).toMatch(/^access-as-/);
    expect(second.login.opened).toHaveLength(1);
  });

  it("read a login of another process from the store", async () => {
    const { seat, mcp, store } = await startSharedScene(open);
    const [first, second, third] = [seat(), seat(), seat()];
    const release = hold(first.login);
    const controller = new AbortController();
    const leading = first.agent.token(mcp.url, { signal: controller.signal });
    await until(() => first.login.urls.length === 1);
    const following = second.agent.token(mcp.url);
    // A login in two steps takes no lease.
    const login = await third.agent.beginLogin(mcp.url, third.login.redirectUri);
    const session = await third.login.open({
      resource: mcp.url,
      issuer: login.issuer.issuer,
      preferredRedirectUri: undefined,
      signal: SIGNAL,
    });
    const { value } = await third.agent.finishLogin(login, session);
    controller.abort();
    release();
    expect(await pendingError(leading)).toMatchObject({ code: "aborted" });
    expect((await following).value).toBe(value);
    expect(second.login.opened).toEqual([]);
    expect(await store.list()).toHaveLength(1);
  });
});

describe("a login", () => {
  it("that the user asks for is done, also where another login finished since", async () => {
    const { seat, mcp, store } = await startSharedScene(memoryStore);
    await seat().agent.login(mcp.url);
    const late: GrantStore = {
      ...store,
      async lease(name, work, options) {
        if (!name.startsWith("login ")) return store.lease(name, work, options);
        const grant = await store.read({ profile: "default", server: mcp.url });
        if (grant) await store.save({ ...grant, generation: grant.generation + 1 }, grant.generation);
        return store.lease(name, work, options);
      },
    };
    const person = seat({ store: late });
    expect((await person.agent.login(mcp.url)).value).toBe("access-as-2");
    expect(person.login.opened).toHaveLength(1);
  });

  it("that the user requests waits for another one, and does not use the login from before", async () => {
    const home = folder();
    const { seat, mcp } = await startSharedScene(() => fileStore(home));
    await seat().agent.login(mcp.url);
    const first = seat();
    let onWait: (said: string) => void = () => undefined;
    const waiting = new Promise<string>((resolve) => {
      onWait = resolve;
    });
    const second = seat({ store: fileStore(home), onProgress: ({ subject, text }) => onWait(`${subject}: ${text}`) });
    const release = hold(first.login);
    const leading = first.agent.login(mcp.url);
    await until(() => first.login.urls.length === 1);
    const following = second.agent.login(mcp.url);
    expect(await waiting).toBe(`login: process ${process.pid} is logging in at ${mcp.url}; waiting for it`);
    release();
    expect((await leading).value).toBe("access-as-2");
    expect((await following).value).toBe("access-as-2");
    expect(second.login.opened).toEqual([]);
  });

  it("in two steps shows on its page that it has failed", async () => {
    const { seat, mcp } = await startSharedScene(memoryStore);
    const { agent, login } = seat();
    denies(login);
    const prepared = await agent.beginLogin(mcp.url, login.redirectUri);
    const request = {
      resource: mcp.url,
      issuer: prepared.issuer.issuer,
      preferredRedirectUri: undefined,
      signal: SIGNAL,
    };
    const session = await login.open(request);
    expect(await pendingError(agent.finishLogin(prepared, session))).toMatchObject({ code: "access_denied" });
    expect(login.outcomes).toMatchObject([{ ok: false, error: { code: "access_denied" } }]);
  });

  it("lasts for as long as the user takes, while its process lives", async () => {
    const { seat, mcp, store } = await startSharedScene(memoryStore);
    const requested: unknown[] = [];
    const watched: GrantStore = {
      ...store,
      lease: (name, work, options) => {
        if (name.startsWith("login ")) requested.push([options.extend, options.patienceMs]);
        return store.lease(name, work, options);
      },
    };
    await seat({ store: watched }).agent.login(mcp.url);
    expect(requested).toEqual([[true, undefined]]);
  });

  it("that was turned down is forgotten where the clock was set back behind it", async () => {
    const { seat, mcp } = await startSharedScene(memoryStore);
    const person = seat({ clock: new FakeClock(Date.now() - 60 * MINUTE) });
    denies(person.login);
    for (const nth of [1, 2]) {
      expect(await pendingError(person.agent.token(mcp.url))).toMatchObject({ code: "access_denied" });
      expect(person.login.opened).toHaveLength(nth);
    }
  });
});

describe("a request while the user logs in", () => {
  it("waits for the new token, and does not send the one that its server has just refused", async () => {
    const { seat, mcp, issuer } = await startSharedScene(memoryStore);
    issuer.tokenAnswer = { refresh_token: undefined };
    const { agent, login } = seat();
    await agent.login(mcp.url);
    mcp.accepts = (token) => token === "access-as-2";
    const release = hold(login);
    const first = agent.fetch(mcp.url);
    await until(() => login.urls.length === 2);
    const second = agent.fetch(mcp.url);
    // Until nothing is left to run but input and output.
    await new Promise((resolve) => setImmediate(resolve));
    release();
    expect((await Promise.all([first, second])).map(({ status }) => status)).toEqual([200, 200]);
    expect(mcp.tokens()).toEqual(["Bearer access-as-1", "Bearer access-as-2", "Bearer access-as-2"]);
  });
});

describe("a request after a login that came to nothing", () => {
  it("is sent with the token that there is, which its server may take again", async () => {
    const { seat, mcp, issuer } = await startSharedScene(memoryStore);
    issuer.tokenAnswer = { refresh_token: undefined };
    const { agent, login } = seat();
    await agent.login(mcp.url);
    denies(login);
    mcp.accepts = () => false;
    expect(await pendingError(agent.fetch(mcp.url))).toMatchObject({ code: "access_denied" });
    mcp.accepts = () => true;
    expect((await agent.fetch(mcp.url)).status).toBe(200);
    expect(login.opened).toHaveLength(2);
  });
});

describe("accounts", () => {
  it("of another profile stand in for none of this one", async () => {
    const { seat, mcp } = await startSharedScene(memoryStore);
    await seat({ loginHint: "ann", profile: "work" }).agent.login(mcp.url);
    expect(await pendingError(seat({ login: undefined }).agent.token(mcp.url))).toMatchObject({
      code: "login_required",
    });
    expect((await seat({ profile: "work", login: undefined }).agent.token(mcp.url)).value).toBe("access-as-1");
  });

  it("log in side by side and are stored apart", async () => {
    const { seat, mcp, store } = await startSharedScene(() => fileStore(folder()));
    const [ann, bob] = ["ann@example.com", "bob@example.com"].map((loginHint) => seat({ loginHint }));
    if (!ann || !bob) throw new Error("two seats");
    const releases = [hold(ann.login), hold(bob.login)];
    const both = Promise.all([ann.agent.token(mcp.url), bob.agent.token(mcp.url)]);
    await until(() => ann.login.urls.length === 1 && bob.login.urls.length === 1);
    for (const release of releases) release();
    await both;
    expect(ann.login.requested().get("login_hint")).toBe("ann@example.com");
    const grants = await store.list();
    expect(grants.map(({ account }) => account).sort()).toEqual(["ann@example.com", "bob@example.com"]);
    const mine = await ann.agent.token(mcp.url);
    const theirs = await bob.agent.token(mcp.url);
    expect(mine.value).not.toBe(theirs.value);
    expect(ann.login.opened.length + bob.login.opened.length).toBe(2);
  });

  it("have to be named where there are several, and the error names them", async () => {
    const { seat, mcp } = await startSharedScene(memoryStore);
    for (const loginHint of ["ann", "bob"]) await seat({ loginHint }).agent.login(mcp.url);
    const third = seat();
    expect(await pendingError(third.agent.token(mcp.url))).toMatchObject({
      code: "account_ambiguous",
      class: "usage",
      message: expect.stringMatching(/"ann", "bob"/),
      remedy: remedy({ action: "configure", option: "account" }),
    });
    expect(third.login.opened).toEqual([]);
    expect((await seat({ loginHint: "bob" }).agent.token(mcp.url)).value).toBe("access-as-2");
  });

  it("need no name where there is one, which is refreshed, logged in again and logged out", async () => {
    const { seat, mcp, clock, store, issuer } = await startSharedScene(memoryStore);
    await seat({ loginHint: "ann" }).agent.login(mcp.url);
    const { agent, login } = seat();
    expect((await agent.token(mcp.url)).value).toBe("access-as-1");
    await clock.sleep(3_600_000, SIGNAL);
    expect((await agent.token(mcp.url)).value).toBe("access-as-2");
    issuer.tokenAnswer = { scope: "more" };
    await agent.token(mcp.url, { scope: "more" });
    expect(login.requested().get("login_hint")).toBe("ann");
    expect((await store.list()).map(({ account, tokens }) => [account, tokens.scope])).toEqual([["ann", "more"]]);
    expect(await agent.disconnect(mcp.url)).toMatchObject({ removed: true });
    expect(await store.list()).toEqual([]);
  });

  it("are not begun by login() without a way to do so, which says what is missing", async () => {
    const { seat, mcp } = await startSharedScene(memoryStore);
    const { agent } = seat({ login: undefined });
    const hint = "set its option login, or call startLogin()";
    expect(await pendingError(agent.login(mcp.url))).toMatchObject({ code: "usage", hint });
    expect(await pendingError(agent.token(mcp.url))).toMatchObject({ code: "login_required" });
  });

  it("do not stand in for one that is named and not logged in", async () => {
    const { seat, mcp } = await startSharedScene(memoryStore);
    await seat({ loginHint: "ann" }).agent.login(mcp.url);
    const bob = seat({ loginHint: "bob", login: undefined });
    expect(await pendingError(bob.agent.token(mcp.url))).toMatchObject({
      code: "login_required",
      message: expect.stringContaining('account "bob"'),
      remedy: loginAt(mcp.url, { account: "bob" }),
    });
  });
});
