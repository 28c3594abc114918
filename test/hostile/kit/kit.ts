import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "../../../src/http/deadline.js";
import type { Grant } from "../../../src/oauth/model/grant.js";
import { Secret } from "../../../src/redact.js";
import { fileStore } from "../../../src/store/file/file.js";
import { cleanEnv, temporaryFolder } from "../../helpers/cli.js";
import { madeClient, madeGrant } from "../../helpers/grant.js";
import { type IssuerOptions, TestIssuer, TestMcp } from "../../helpers/issuer.js";
import { Peer, type Seen } from "../../helpers/peer.js";
import { PLANTED } from "../checks.js";
import { Canaries } from "./canaries.js";
import { type PublicWorld, startPublicWorld } from "./public-world.js";
import { Service } from "./service.js";
import { loginUrlIn, logsIn, type User } from "./user.js";
import { type Run, startWatched, type Watched } from "./watched.js";

/** Where the servers of a case are: on this machine, or simulated public ones behind a proxy. */
export type World = "loopback" | "public";

/** Options of a run beside its arguments. */
export interface RunOptions {
  env?: Record<string, string | undefined>;
  stdin?: string | undefined;
  /** Leaves stdin open, for `child.stdin`. */
  keepsStdinOpen?: boolean;
  /** A wrapper such as `sh -c`, which receives the command as its last arguments. */
  wrapper?: readonly string[];
  user?: User | undefined;
  /** For a run in this process. Default: that of the case. */
  clock?: Clock;
  /** Runs it in this process as on a terminal that a user reads and types at. */
  isOnTerminal?: boolean;
}

/** The servers of one case, and the folder that the program works in. */
export interface Kit {
  readonly mcp: TestMcp;
  readonly as: TestIssuer;
  /** Another authorization server, used only by some cases. */
  readonly other: TestIssuer;
  readonly service: Service;
  /** A tripwire: any connection is an error, unless a case allows it. */
  readonly elsewhere: Peer;
  /** Every request to any of the servers, in order. */
  readonly log: Seen[];
  readonly canaries: Canaries;
  /** The pages that the user's browser received. */
  readonly pages: string[];
  /** Every run of the program. */
  readonly runs: Run[];
  /** The user's home folder, which contains everything that a run can write to. */
  readonly folder: string;
  /** AGENTAUTH_HOME, inside `folder`. */
  readonly home: string;
  /** Flags that make the public servers reachable. */
  readonly flags: string[];
  /** Runs the program until it exits. */
  run(args: readonly string[], options?: RunOptions): Promise<Run>;
  /** Starts the built program. */
  start(args: readonly string[], options?: RunOptions): Watched;
  /** Waits until a running program has printed a text to stderr, or has exited. */
  untilPrinted(watched: Watched, what: RegExp): Promise<void>;
  /** Stores a login as if the user had logged in before. */
  saveLogin(over?: Partial<Grant>, tokens?: Partial<Grant["tokens"]>): Promise<Grant>;
  close(): Promise<void>;
}

/**
 * Creates the servers and the folder of one case.
 *
 * @param startsProcesses whether each run is a separate process
 */
export async function startKit(world: World, startsProcesses = false): Promise<Kit> {
  const log: Seen[] = [];
  const canaries = new Canaries();
  const folder = temporaryFolder();
  const open: PublicWorld | undefined = world === "public" ? await startPublicWorld(log) : undefined;
  const options = issuerOptions(canaries);
  const mcp = await new TestMcp("mcp", log, open?.at("mcp.test")).start();
  const as = await new TestIssuer("as", log, { ...options, ...open?.at("as.test") }).start();
  const other = await new TestIssuer("other", log, options).start();
  const service = await new Service("service", log, open?.at("service.test")).start();
  const elsewhere = await new Peer("elsewhere", log, { isTripwire: true }).start();
  open?.route({ "mcp.test": mcp, "as.test": as, "service.test": service, "wrong.test": as });
  as.serve();
  other.serve();
  mcp.serveFor(as);
  const peers = [mcp, as, other, service, elsewhere];
  const kit: KitState = {
    ...{ mcp, as, other, service, elsewhere, log, canaries, folder },
    pages: [],
    runs: [],
    home: join(folder, "settings"),
    flags: [...(open?.flags ?? [])],
    close: async () => void (await Promise.all([...peers, ...(open ? [open] : [])].map((peer) => peer.close()))),
  };
  mkdirSync(join(folder, "work"));
  return { ...kit, ...actions(kit, startsProcesses) };
}

/** Canaries as secrets, and what the cases change in the metadata. */
function issuerOptions(canaries: Canaries): IssuerOptions {
  return {
    issued: {
      accessToken: () => canaries.get("access-token"),
      refreshToken: () => canaries.get("refresh-token"),
      code: () => canaries.get("code"),
      clientId: () => "client-1",
      clientSecret: () => canaries.get("registered-secret"),
      deviceCode: () => canaries.get("device-code"),
    },
    metadata: {
      grant_types_supported: ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"],
      authorization_response_iss_parameter_supported: true,
    },
    interval: 1,
  };
}

/** The file with the ID token of a user, where a case plants one. */
export const ID_TOKEN = "the id token";

type KitState = Omit<Kit, "run" | "start" | "untilPrinted" | "saveLogin">;

function actions(kit: KitState, startsProcesses: boolean): Omit<Kit, keyof KitState> {
  const start = (args: readonly string[], options: RunOptions = {}): Watched => {
    const { home, folder, canaries, service } = kit;
    const env = cleanEnv({
      HOME: folder,
      AGENTAUTH_HOME: home,
      AGENTAUTH_BASE_URL: service.origin,
      AGENTAUTH_API_TOKEN: canaries.get("api-token"),
      AGENTAUTH_CLIENT_SECRET: canaries.get("client-secret"),
      AGENTAUTH_ID_TOKEN: `file:${join(folder, PLANTED, ID_TOKEN)}`,
      ...options.env,
    });
    const cwd = startsProcesses || options.wrapper ? join(folder, "work") : undefined;
    const { stdin, keepsStdinOpen, wrapper, clock, isOnTerminal } = options;
    const how = { env, cwd, stdin, keepsStdinOpen, wrapper, clock, isOnTerminal };
    const watched = startWatched([...args, ...kit.flags], how);
    const ended = watched.ended.then((run) => {
      kit.runs.push(run);
      return run;
    });
    return { ...watched, ended };
  };
  return {
    start,
    async run(args, options = {}) {
      const watched = start(args, options);
      await until(watched, () => loginUrlIn(watched.stderr()) !== undefined);
      const address = loginUrlIn(watched.stderr());
      if (address) await (options.user ?? logsIn)(address, kit as Kit);
      return watched.ended;
    },
    untilPrinted: (watched, what) => until(watched, () => what.test(watched.stderr())),
    async saveLogin(over = {}, tokens = {}) {
      const grant = grantOf(kit, over, tokens);
      await fileStore(kit.home).save(grant, undefined);
      return grant;
    },
  };
}

/** Waits until a condition holds or the program exits. */
async function until({ ended }: Watched, holds: () => boolean): Promise<void> {
  let hasExited = false;
  void ended.finally(() => {
    hasExited = true;
  });
  while (!hasExited && !holds()) await new Promise((resolve) => setTimeout(resolve, 5));
}

function grantOf(
  { mcp, as, canaries }: Pick<Kit, "mcp" | "as" | "canaries">,
  over: Partial<Grant>,
  tokens: Partial<Grant["tokens"]>,
): Grant {
  const { issuer } = as;
  const client = madeClient({ issuer, clientSecret: new Secret(canaries.get("registered-secret")) });
  return madeGrant({
    server: mcp.url,
    resource: mcp.url,
    issuer,
    endpoints: {
      token: `${issuer}/token`,
      introspection: `${issuer}/introspect`,
      revocation: `${issuer}/revoke`,
      endSession: `${issuer}/end_session`,
      jwks: `${issuer}/jwks`,
    },
    client,
    tokens: {
      accessToken: new Secret(canaries.get("access-token")),
      refreshToken: new Secret(canaries.get("refresh-token")),
      idToken: new Secret(canaries.get("id-token")),
      expiresAt: Date.now() + 3_600_000,
      obtainedAt: Date.now(),
      scope: "tools",
      ...tokens,
    },
    signedInAt: Date.now(),
    ...over,
  });
}
