import type { Readable, Writable } from "node:stream";
import type { ManagementClient } from "../../api/client.js";
import type { AgentAuthError } from "../../errors.js";
import type { Network } from "../../http/address-class.js";
import type { HttpEvent } from "../../http/buffered-response.js";
import { type Clock, systemClock } from "../../http/deadline.js";
import type { AgentClient, AgentClientOptions } from "../../oauth/agent.js";
import type { GrantStore } from "../../oauth/model/grant-store.js";
import type { Lease } from "../../oauth/model/lease.js";
import type { Env } from "../../platform.js";
import type { Settings } from "../../profile/settings.js";
import type { StoreChoice } from "../../profile/store-choice.js";
import type { Redactor } from "../../redact.js";
import type { AgentEvent } from "../../telemetry/events.js";
import type { AgentFlags } from "../flags/agent.js";
import type { GlobalFlags } from "../flags/global.js";
import type { Io, ProcessLike } from "../io/io.js";
import type { HintContext } from "./hints.js";

/** How long a run waits for an engine that has to store what the run could not save. */
const UNSAVED_MS = 30_000;

/** Work of one run that must not happen twice, such as the refresh of a token, and is not saved yet. */
export interface PendingSaves {
  /** The same store, whose leases are counted here from their commit until their work has ended. */
  watch(store: GrantStore): GrantStore;
  isUnderWay(): boolean;
  /** Resolves when none is under way; each has a deadline of its own. */
  settled(): Promise<void>;
}

/** Counts pending saves, from none. */
export function createPendingSaves(clock: Pick<Clock, "sleep"> = systemClock): PendingSaves {
  const committed = new Set<symbol>();
  let waiting: (() => void)[] = [];
  const end = (one: symbol) => {
    committed.delete(one);
    if (committed.size > 0) return;
    for (const resolve of waiting) resolve();
    waiting = [];
  };
  const saves: PendingSaves = {
    watch: (store) => {
      const lease: GrantStore["lease"] = async (name, work, options) => {
        const one = Symbol();
        const unsaved = Symbol();
        const onUnsaved = (ended: Promise<void>) => {
          committed.add(unsaved);
          void inTime(ended, clock).then(() => end(unsaved));
          options.onUnsaved?.(ended);
        };
        try {
          const counted = (lease: Lease) => {
            const commit = lease.commit.bind(lease);
            lease.commit = () => {
              committed.add(one);
              return commit();
            };
            return work(lease);
          };
          return await store.lease(name, counted, { ...options, onUnsaved });
        } finally {
          end(one);
        }
      };
      const ofTenant = store.for?.bind(store);
      // The rest is inherited: a copy would read the location of a keychain, which opens it.
      return Object.assign(Object.create(store) as GrantStore, {
        lease,
        ...(ofTenant && { for: (place: { tenant: string }) => saves.watch(ofTenant(place)) }),
      });
    },
    isUnderWay: () => committed.size > 0,
    settled: () => (committed.size === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
  };
  return saves;
}

async function inTime(ended: Promise<void>, clock: Pick<Clock, "sleep">): Promise<void> {
  const over = new AbortController();
  await Promise.race([ended, clock.sleep(UNSAVED_MS, over.signal)]);
  over.abort();
}

/** Where a run is. */
export interface Machine {
  readonly platform: string;
  readonly folder: string;
}

/** What {@link main} needs of the process that it runs in. */
export interface Host extends ProcessLike {
  on(event: NodeJS.Signals, listener: () => void): unknown;
  on(event: "uncaughtException", listener: (error: Error) => void): unknown;
  off(event: NodeJS.Signals, listener: () => void): unknown;
  emit(event: NodeJS.Signals, signal: NodeJS.Signals): boolean;
  exit(code: number): never;
  /** Default: that of the machine. */
  readonly clock?: Clock;
  readonly execPath?: string;
  /** The command line of the process: Node, and our program. */
  readonly argv?: readonly string[];
  /** Default: those of the process. */
  readonly machine?: Machine;
}

/** Our own process, for a command that runs another program in its place. */
export interface AcquiredProcess {
  readonly stdin: Readable;
  /** For bytes that are passed on as they are. */
  readonly stdout: Writable;
  /** For bytes that are passed on as they are. */
  readonly stderr: Writable;
  /** The environment without our secrets, empty variables included. */
  readonly env: Env;
  /** SIGINT, SIGTERM and SIGHUP end this run again. */
  release(): void;
  /** Ends the process at once, also where a reader that has stopped reading would block it. */
  exit(code: number): never;
}

export interface ProcessSignals {
  /** Listens for a signal, beside the run itself. @returns a function that removes the listener */
  on(name: NodeJS.Signals, listener: () => void): () => void;
  /** Runs the listeners as if the signal had arrived. */
  raise(name: NodeJS.Signals): void;
}

/** What a run works with before its command line is parsed. */
export interface RunContext {
  readonly io: Io;
  /** Fires on SIGINT, SIGTERM and SIGHUP. */
  readonly signal: AbortSignal;
  readonly signals: ProcessSignals;
  /** The command line as it was typed, without the program's name. */
  readonly argv: readonly string[];
  readonly redactor: Redactor;
  /** The words that start this program in another process; absent where the run is no process of its own. */
  readonly program?: readonly [node: string, script: string] | undefined;
  /** What has to be saved before a signal may end the process. */
  readonly pendingSaves: PendingSaves;
  readonly clock: Clock;
  /** Milliseconds since the epoch, by the clock. */
  readonly now: () => number;
  /** Default: the platform and the working folder of the process. */
  readonly machine?: Machine | undefined;
  /** The error with a hint for the command line, with the flags that were given in a command that logs in. */
  readonly withHint?: (error: AgentAuthError, details?: HintContext) => AgentAuthError;
  /** What the hints of this command depend on. */
  readonly hintContext?: HintContext;
  /** Leaves signals to the caller: until the release they neither fire {@link RunContext.signal} nor end the run. */
  readonly acquireProcess: () => AcquiredProcess;
  /** Does something before the run ends, such as closing a connection. Absent if nothing waits for the end of the run. */
  readonly onExit?: ((work: () => Promise<void>) => void) | undefined;
}

/** Flags that decide what a {@link CommandContext} builds; a command that does not declare one has none of it. */
export type ContextFlags = Omit<AgentFlags, "output"> & Pick<GlobalFlags, "output">;

/** How a command uses the agent client. */
export interface AgentUse {
  /** When the client may ask the user to log in (default `when-present`: on a terminal, or where a flag allows it). */
  login?: "always" | "when-present" | "never";
  /** Milliseconds without a byte of a server's response; 0 for no limit. */
  idleTimeoutMs?: number;
  /** Whether a machine grant is stored so that later commands find it. */
  storesGrant?: boolean;
  /** Changes the options of the client. */
  adapt?: (options: AgentClientOptions) => AgentClientOptions;
}

/** What can differ in the part of a run that {@link CommandContext.with} is for. */
export interface ContextChanges extends Partial<Pick<RunContext, "io" | "signal" | "argv">> {
  flags?: ContextFlags;
  settings?: Settings;
  /** Whether the profile may be one that does not exist yet, for a login that makes it. */
  acceptsNewProfile?: boolean;
}

/**
 * What a command works with beside its own options, built once a run. Each part is built when it is first used, so that
 * a command loads nothing that it does not need.
 */
export interface CommandContext extends RunContext {
  /** The folder of our files. @throws `AgentAuthError` `usage` for a user without one */
  home(): string;
  /** The same for what needs no file; undefined for a user without one. */
  findHome(): string | undefined;
  /** @throws `AgentAuthError` `usage` for a value that is wrong, or a named profile that does not exist */
  settings(): Settings;
  /** @throws `AgentAuthError` `usage` when no service is configured */
  management(): Promise<ManagementClient>;
  /** The agent client; each call builds one. */
  agent(use?: AgentUse): Promise<AgentClient>;
  /** Whether `agent()` may ask the user to log in. */
  mayLogin(): boolean;
  /** The network for MCP servers and their issuers. */
  network(use?: Pick<AgentUse, "idleTimeoutMs">): Promise<Network>;
  /** The kind of store that the profile and the environment choose. @throws `AgentAuthError` `usage` for one that is none */
  storeChoice(): StoreChoice;
  store(): Promise<GrantStore>;
  /** What writes events into the audit file; undefined if none is set. */
  audit(): ((event: AgentEvent | HttpEvent) => void) | undefined;
  /** The same context with another output, signal, command line or flags; what depends on these is built again. */
  with(changes: ContextChanges): CommandContext;
}

/** Whether the user may be prompted, or a browser opened: neither the flag nor the variable forbids it. */
export function canPrompt({ input }: Pick<GlobalFlags, "input">, { env }: Pick<Io, "env">): boolean {
  return input !== false && !env["AGENTAUTH_NO_INPUT"];
}

/** Whether the user may be prompted to log in: there is a terminal, or the flags allow it without one. */
export function mayLogin(
  flags: Pick<ContextFlags, "grant" | "login" | "browser" | "input">,
  { io }: Pick<RunContext, "io">,
  when: NonNullable<AgentUse["login"]> = "when-present",
): boolean {
  if (flags.grant !== undefined || when === "never") return false;
  if (when === "always") return true;
  if (flags.login === false || !canPrompt(flags, io)) return false;
  const named = flags.browser !== undefined && flags.browser !== "none";
  return flags.login === true || named || (io.stdin.isTTY && io.stderr.isTTY);
}

/** A function that builds its value when it is first called, and returns the same one from then on. */
export function once<T>(build: () => T): () => T {
  let built: { value: T } | undefined;
  return () => {
    built ??= { value: build() };
    return built.value;
  };
}
