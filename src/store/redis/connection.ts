import { AgentAuthError } from "../../errors.js";
import { close, type Subscribe, type Subscriber, subscription } from "./subscription.js";

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

/** The application's own client. */
export interface RedisClientConnection {
  /** It stays the application's: the driver neither connects nor closes it. */
  readonly client: NodeRedisClient | IoRedisClient;
  /** Not together with a client. */
  readonly send?: undefined;
}

/** A function that sends a command, for any other client. It must reach the primary. */
export interface RedisSendConnection {
  /** Sends a command; `WAIT` is about writes of the same connection. */
  readonly send: RedisSend;
  /** Not together with a function. */
  readonly client?: undefined;
}

/** How the driver reaches the engine. */
export type RedisConnection = RedisClientConnection | RedisSendConnection;

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

/** The members that distinguish the clients, by name. */
type Members = Readonly<Record<string, unknown>>;
type Duplicate = (overrides?: object) => unknown;
const CONNECT_MS = 2000;

type Method = (...args: unknown[]) => Promise<unknown>;

const EXPECTED =
  "expected { client } with a client of redis (createClient, createCluster), ioredis or iovalkey, or { send } with a function (args, key) => Promise";

/** @throws AgentAuthError `usage` for a client of another shape */
export function linkOf({ client, send }: { readonly client?: unknown; readonly send?: unknown }): Link {
  if ((client === undefined) === (send === undefined)) {
    throw usage(`redisDriver got ${client === undefined ? "neither client nor send" : "both client and send"}`);
  }
  if (client === undefined) {
    if (typeof send !== "function") throw usage(`send is not a function but of type ${typeof send}`);
    return { send: send as RedisSend, sendKeyless: keylessBy(send as RedisSend), location: "redis" };
  }
  const members = Object(client) as Members;
  if (typeof members["call"] === "function") return ioRedis(members);
  if (typeof members["sendCommand"] === "function") return nodeRedis(members);
  throw usage(`client has neither "sendCommand" nor "call"`);
}

/** `ioredis` has `sendCommand` too, for commands that are objects. */
function ioRedis(client: Members): Link {
  const nodes = client["nodes"];
  if (typeof nodes !== "function") {
    const duplicate = () => (client["duplicate"] as Duplicate).call(client, { lazyConnect: true });
    const { call, renew } = renewable(client, duplicate);
    const send: RedisSend = ([command, ...args]) => call((used) => method(used, "call")(command, args));
    const subscribe = subscription(duplicate, false);
    return { send, sendKeyless: keylessBy(send), location: locationOf(client["options"]), subscribe, renew };
  }
  const send: RedisSend = ([command, ...args]) => method(client, "call")(command, args);
  // A command without a key goes to any node, and WAIT is about the connection that wrote.
  const sendKeyless: Link["sendKeyless"] = ([command, ...args]) => {
    const masters = nodes.call(client, "master") as Members[];
    return Promise.all(masters.map((node) => method(node, "call")(command, args)));
  };
  return { send, sendKeyless, location: "redis", isCluster: true };
}

function nodeRedis(client: Members): Link {
  if (typeof client["nodeClient"] === "function") {
    const send: RedisSend = (args, key, abortSignal) =>
      method(client, "sendCommand")(key, false, args, { abortSignal });
    return { send, sendKeyless: keylessBy(send), location: "redis", isCluster: true };
  }
  for (const [member, kind] of [
    ["execute", "pool"],
    ["getSentinelNode", "sentinel client"],
  ] as const) {
    if (typeof client[member] === "function") throw usage(`client is a ${kind} of redis`);
  }
  const duplicate = () => (client["duplicate"] as Duplicate).call(client);
  const { call, renew } = renewable(client, duplicate);
  const send: RedisSend = (args, _key, abortSignal) =>
    call((used) => method(used, "sendCommand")(args, { abortSignal }));
  const { socket, database } = Object(client["options"]) as Members;
  const location = locationOf({ ...Object(socket), db: database });
  return { send, sendKeyless: keylessBy(send), location, subscribe: subscription(duplicate, true), renew };
}

/**
 * A client, and one more in its place after `renew`. A call that comes while that connects waits for it: it would get no
 * answer over the connection before.
 */
function renewable(client: Members, duplicate: () => unknown) {
  let used = client;
  let renewing: Promise<void> | undefined;
  const replace = async () => {
    const next = duplicate() as Members & Subscriber;
    try {
      await connectBeside(next);
      if (used !== client) close(used as Members & Subscriber);
      used = next;
    } catch {
      close(next);
    }
  };
  return {
    call: <T>(work: (client: Members) => Promise<T>) => (renewing ? renewing.then(() => work(used)) : work(used)),
    renew: () => {
      renewing ??= replace().finally(() => {
        renewing = undefined;
      });
    },
  };
}

/** An engine that stands still accepts a connection, and does not answer. @throws after a time */
async function connectBeside(client: Members & Subscriber): Promise<void> {
  // An error without a listener would end the program.
  client.on("error", () => {});
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error("no answer")), CONNECT_MS);
  });
  await Promise.race([client.connect(), late]).finally(() => clearTimeout(timer));
  // It must not keep the process alive.
  const { unref, stream } = client as { unref?: () => void; stream?: { unref?: () => void } };
  (unref ? unref.bind(client) : stream?.unref?.bind(stream))?.();
}

function keylessBy(send: RedisSend): Link["sendKeyless"] {
  return async (args, key, signal) => [await send(args, key, signal)];
}

function method(client: Members, name: string): Method {
  return (...args) => (client[name] as Method).apply(client, args);
}

/** A host that comes from an address may have more than a name. */
const HOST = /^[\w.:-]+$/;

function locationOf(options: unknown): string {
  const { host = "localhost", port = 6379, db, path, sentinels } = Object(options) as Members;
  if (sentinels) return "redis";
  if (typeof path === "string") return path;
  if (typeof host !== "string" || !HOST.test(host)) return "redis";
  return `${host.includes(":") ? `[${host}]` : host}:${Number(port)}/${Number(db ?? 0)}`;
}

function usage(problem: string): AgentAuthError {
  return new AgentAuthError("usage", `${problem}: ${EXPECTED}`, { class: "usage" });
}
