import type { AgentClientOptions } from "../../../src/oauth/agent.js";
import type { GrantStore } from "../../../src/oauth/model/grant-store.js";
import type { memoryStore } from "../../../src/store/memory.js";
import { FakeClock } from "../../helpers/clock.js";
import { type Scene, startScene } from "../../helpers/issuer.js";
import { TestLogin } from "../../helpers/login.js";

export const SIGNAL = new AbortController().signal;

export interface SharedScene extends Scene {
  /** An agent with its own user. */
  seat(options?: Partial<AgentClientOptions>): { agent: ReturnType<Scene["agent"]>; login: TestLogin };
  /** Resolves once agents have requested the lease of a login this many times. */
  loginsRequested(count: number): Promise<void>;
}

/** Agents that share a store, and a clock that agrees with the machine's. */
export async function startSharedScene(open: () => ReturnType<typeof memoryStore>): Promise<SharedScene> {
  const scene = await startScene();
  const { store, loginsRequested } = countLogins(open());
  const clock = new FakeClock(Date.now() + 2000);
  const seat = (options: Partial<AgentClientOptions> = {}) => {
    const login = new TestLogin();
    return { login, agent: scene.agent({ store, clock, login, ...options }) };
  };
  return { ...scene, store, clock, seat, loginsRequested };
}

function countLogins(inner: GrantStore) {
  let requested = 0;
  const waiting = new Map<number, () => void>();
  const store: GrantStore = {
    ...inner,
    lease(name, work, options) {
      const result = inner.lease(name, work, options);
      if (name.startsWith("login ")) waiting.get(++requested)?.();
      return result;
    },
  };
  const loginsRequested = (count: number) =>
    new Promise<void>((resolve) => {
      if (requested >= count) resolve();
      else waiting.set(count, resolve);
    });
  return { store, loginsRequested };
}

/** Keeps the user from logging in until it is released. */
export function hold(login: TestLogin): () => void {
  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  login.before = () => held;
  return release;
}

/** A user who declines the login. */
export function denies(login: TestLogin): void {
  login.alter = (callback) => {
    const state = callback.get("state") ?? "";
    return new URLSearchParams({ error: "access_denied", error_description: "they said no", state });
  };
}
