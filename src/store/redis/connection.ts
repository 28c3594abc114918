import { type AgentAuthError, usageError } from "../../errors.js";
import { lateIn, type Subscribe, untilFired } from "../driver/engine.js";

/**
 * Sends a command and returns the reply.
 *
 * @param args the command and its arguments
 * @param key the key that decides which node of a cluster gets the command
 * @param signal fires when the reply is not awaited any more; a command that was not sent until then should not be
 */
export type RedisSend = (args: readonly string[], key: string, signal: AbortSignal) => Promise<unknown>;

/** A connected client of `redis` 4 to 6: `createClient()` or `createCluster()`. */
export interface NodeRedisClient {
  /** Sends a command. */
  sendCommand(...args: never[]): Promise<unknown>;
}

/** A client of `ioredis` or `iovalkey`: `new Redis()` or `new Redis.Cluster()`. */
export interface IoRedisClient {
  /** Sends a command. */
  call(...args: never[]): Promise<unknown>;
}

/** How the driver reaches the engine: one of the two. */
export interface RedisConnection {
  /** The application's own client: the driver neither connects nor closes it. */
  readonly client?: NodeRedisClient | IoRedisClient | undefined;
  /** Sends a command with any other client, to the primary; `WAIT` is about writes of the same connection. */
  readonly send?: RedisSend | undefined;
}

/** What the driver uses of a connection. */
export interface Link {
  readonly send: RedisSend;
  /** Sends a command without a key to the node that has `key`, or to every primary if the client cannot choose one. */
  readonly sendKeyless: (args: readonly string[], key: string, signal: AbortSignal) => Promise<unknown[]>;
  /** Host, port and database, without credentials; "redis" if the client does not show them. */
  readonly location: string;
  /** Undefined for a cluster, whose clients do not report that a subscription was interrupted. */
  readonly subscribe?: Subscribe;
  /**
   * Connects once more, beside the application's client, and uses that connection from then on: a network may forget a
   * connection without an end of it. Undefined where the client cannot be duplicated.
   */
  readonly renew?: () => void;
  /** Whether a message of a node goes to all others, which would be a cost for each write. */
  readonly isCluster?: boolean;
}

/** A client of one of the packages: the members that distinguish them, and those that all have. */
interface Client extends Readonly<Record<string, unknown>> {
  connect(): Promise<unknown>;
  duplicate(overrides?: object): Client;
  on(event: string, listener: (...args: string[]) => void): unknown;
  subscribe(channel: string, listener?: (message: string) => void): Promise<unknown>;
  /** Of `redis`. */
  destroy?(): void;
  disconnect(): void;
}

/** How the clients of a package are used. */
interface Shape {
  send(client: Client, args: readonly string[], signal: AbortSignal): Promise<unknown>;
  /** A client with the same options that is not connected. */
  duplicate(client: Client): Client;
  location(client: Client): string;
  /** Whether `subscribe` takes the listener; otherwise the client emits `message`. */
  readonly takesListener: boolean;
}

const NODE_REDIS: Shape = {
  send: (client, args, abortSignal) => call(client, "sendCommand", args, { abortSignal }),
  duplicate: (client) => client.duplicate(),
  location: ({ options }) => {
    const { socket, database } = Object(options) as Record<string, unknown>;
    return describeLocation({ ...Object(socket), db: database });
  },
  takesListener: true,
};

/** `ioredis` has `sendCommand` too, for commands that are objects. */
const IO_REDIS: Shape = {
  send: (client, [command, ...args]) => call(client, "call", command, args),
  duplicate: (client) => client.duplicate({ lazyConnect: true }),
  location: ({ options }) => describeLocation(options),
  takesListener: false,
};

const CONNECT_MS = 2000;

const EXPECTED =
  "expected { client } with a client of redis (createClient, createCluster), ioredis or iovalkey, or { send } with a function (args, key) => Promise";

/** @throws AgentAuthError `usage` for a client of another shape */
export function chooseLink({ client, send }: { readonly client?: unknown; readonly send?: unknown }): Link {
  if ((client === undefined) === (send === undefined))
    throw optionError(`redisDriver got ${client === undefined ? "neither client nor send" : "both client and send"}`);
  if (client === undefined) {
    if (typeof send !== "function") throw optionError(`send is not a function but of type ${typeof send}`);
    return linkBy(send as RedisSend);
  }
  const members = Object(client) as Client;
  const has = (name: string) => typeof members[name] === "function";
  if (has("call")) return has("nodes") ? ioCluster(members) : singleServer(members, IO_REDIS);
  if (!has("sendCommand")) throw optionError(`client has neither "sendCommand" nor "call"`);
  if (has("nodeClient")) {
    const route: RedisSend = (args, key, abortSignal) =>
      call(members, "sendCommand", key, false, args, { abortSignal });
    return { ...linkBy(route), isCluster: true };
  }
  if (has("execute")) throw optionError("client is a pool of redis");
  if (has("getSentinelNode")) throw optionError("client is a sentinel client of redis");
  return singleServer(members, NODE_REDIS);
}

function linkBy(send: RedisSend): Link {
  return { send, sendKeyless: async (args, key, signal) => [await send(args, key, signal)], location: "redis" };
}

/** A command without a key goes to any node, and WAIT is about the connection that wrote. */
function ioCluster(client: Client): Link {
  const send: RedisSend = (args, _key, signal) => IO_REDIS.send(client, args, signal);
  const sendKeyless: Link["sendKeyless"] = (args, _key, signal) => {
    const masters = (client["nodes"] as (role: string) => Client[]).call(client, "master");
    return Promise.all(masters.map((node) => IO_REDIS.send(node, args, signal)));
  };
  return { send, sendKeyless, location: "redis", isCluster: true };
}

/**
 * A client, and one more in its place after `renew`. A call that comes while that connects waits for it: it would get no
 * answer over the connection before.
 */
function singleServer(client: Client, shape: Shape): Link {
  let used = client;
  let renewing: Promise<void> | undefined;
  const replace = async () => {
    const next = shape.duplicate(client);
    try {
      await connectBeside(next);
      if (used !== client) close(used);
      used = next;
    } catch {
      close(next);
    }
  };
  const send: RedisSend = (args, _key, signal) =>
    renewing ? renewing.then(() => shape.send(used, args, signal)) : shape.send(used, args, signal);
  return {
    ...linkBy(send),
    location: shape.location(client),
    subscribe: createSubscription(client, shape),
    renew: () => {
      renewing ??= replace().finally(() => {
        renewing = undefined;
      });
    },
  };
}

/** An engine that stands still accepts a connection, and does not answer. @throws after a time */
async function connectBeside(client: Client): Promise<void> {
  // An error without a listener would end the program.
  client.on("error", () => {});
  await Promise.race([client.connect(), lateIn(CONNECT_MS, () => new Error("no answer"))]);
  // It must not keep the process alive.
  const { unref, stream } = client as { unref?: () => void; stream?: { unref?: () => void } };
  (unref ? unref.bind(client) : stream?.unref?.bind(stream))?.();
}

/** Subscribes with a second connection, because one that subscribes can do nothing else in RESP2. */
function createSubscription(client: Client, { duplicate, takesListener }: Shape): Subscribe {
  return async (channel, onMessage, onGap, signal) => {
    const subscriber = duplicate(client);
    let isBack = false;
    const onReady = async () => {
      await (takesListener ? subscriber.subscribe(channel, onMessage) : subscriber.subscribe(channel));
      if (isBack) onGap();
      isBack = true;
    };
    // An error without a listener would end the program; the client connects again by itself.
    subscriber.on("error", () => {});
    // A client may be ready before it has subscribed again: what changes in between belongs to the gap.
    subscriber.on("ready", () => onReady().catch(() => {}));
    if (!takesListener) subscriber.on("message", (_channel, message = "") => onMessage(message));
    const aborted = untilFired(signal);
    try {
      await Promise.race([subscriber.connect(), aborted]);
      await aborted;
    } finally {
      close(subscriber);
    }
  };
}

function close(client: Client): void {
  try {
    if (client.destroy) client.destroy();
    else client.disconnect();
  } catch {
    // A client that could not connect is closed already.
  }
}

function call(client: Client, method: "call" | "sendCommand", ...args: unknown[]): Promise<unknown> {
  return (client[method] as (...args: unknown[]) => Promise<unknown>).apply(client, args);
}

/** A host that comes from an address may have more than a name. */
const HOST = /^[\w.:-]+$/;

function describeLocation(options: unknown): string {
  const { host = "localhost", port = 6379, db, path, sentinels } = Object(options) as Readonly<Record<string, unknown>>;
  if (sentinels) return "redis";
  if (typeof path === "string") return path;
  if (typeof host !== "string" || !HOST.test(host)) return "redis";
  return `${host.includes(":") ? `[${host}]` : host}:${Number(port)}/${Number(db ?? 0)}`;
}

function optionError(problem: string): AgentAuthError {
  return usageError(`${problem}: ${EXPECTED}`);
}
