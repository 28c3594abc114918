import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Grant } from "../../../src/oauth/grant/grant.js";
import { Secret } from "../../../src/redact.js";
import { fileStore } from "../../../src/store/file/file.js";
import { cleanEnv, temporaryFolder } from "../../helpers/cli.js";
import { madeClient, madeGrant } from "../../helpers/grant.js";
import { Canaries } from "./canaries.js";
import { Issuer, McpServer } from "./issuer.js";
import { Peer, type Seen } from "./peer.js";
import { type Person, signInAddress, signsIn } from "./person.js";
import { type PublicWorld, startPublicWorld } from "./public-world.js";
import { Service } from "./service.js";
import { type Run, startWatched, type Watched } from "./watched.js";

/** Where the servers of a case are: on this machine, or out in the open behind a proxy. */
export type World = "loopback" | "public";

/** What a run of the program is told beside its arguments. */
export interface RunOptions {
  env?: Record<string, string | undefined>;
  stdin?: string | undefined;
  /** Leaves the input open, for `child.stdin`. */
  keepsInput?: boolean;
  /** A program that starts it, such as `sh -c`; gets the command behind its words. */
  wrapper?: readonly string[];
  cwd?: string;
  person?: Person | undefined;
}

/** The hostile side of one case, and the folder that the program works in. */
export interface Kit {
  readonly mcp: McpServer;
  readonly as: Issuer;
  /** Another authorization server, whom nothing concerns unless a case says so. */
  readonly other: Issuer;
  readonly service: Service;
  /** Nobody may even knock here, unless a case allows it. */
  readonly elsewhere: Peer;
  /** Every request to any of them, in order. */
  readonly log: Seen[];
  readonly canaries: Canaries;
  /** The pages that the user's browser was shown. */
  readonly pages: string[];
  /** Every run of the program. */
  readonly runs: Run[];
  /** The person's folder, with everything in it that a run can write to. */
  readonly folder: string;
  /** AGENTAUTH_HOME, inside of it. */
  readonly home: string;
  /** What leads the program to servers that are not here. */
  readonly flags: string[];
  /** Runs the built program to its end. */
  run(args: readonly string[], options?: RunOptions): Promise<Run>;
  /** Starts it. */
  start(args: readonly string[], options?: RunOptions): Watched;
  /** Waits until a run that is under way has said something; or until it has ended. */
  said(watched: Watched, what: RegExp): Promise<void>;
  /** Keeps a login as if the user had signed in before. */
  keep(over?: Partial<Grant>, tokens?: Partial<Grant["tokens"]>): Promise<Grant>;
  close(): Promise<void>;
}

/** Builds the servers and the folder of one case. */
export async function startKit(world: World): Promise<Kit> {
  const log: Seen[] = [];
  const canaries = new Canaries();
  const folder = temporaryFolder();
  const open: PublicWorld | undefined = world === "public" ? await startPublicWorld(log) : undefined;
  const mcp = await new McpServer("mcp", log, open?.at("mcp.test")).start();
  const as = await new Issuer("as", log, canaries, open?.at("as.test")).start();
  const other = await new Issuer("other", log, canaries).start();
  const service = await new Service("service", log, open?.at("service.test")).start();
  const elsewhere = await new Peer("elsewhere", log, { isTripwire: true }).start();
  open?.route({ "mcp.test": mcp, "as.test": as, "service.test": service, "wrong.test": as });
  as.serve();
  other.serve();
  mcp.serveFor(as);
  const peers = [mcp, as, other, service, elsewhere];
  const kit: Surroundings = {
    ...{ mcp, as, other, service, elsewhere, log, canaries, folder },
    pages: [],
    runs: [],
    home: join(folder, "settings"),
    flags: [...(open?.flags ?? [])],
    close: async () => void (await Promise.all([...peers, ...(open ? [open] : [])].map((peer) => peer.close()))),
  };
  mkdirSync(join(folder, "work"));
  return { ...kit, ...acting(kit) };
}

type Surroundings = Omit<Kit, "run" | "start" | "said" | "keep">;

function acting(kit: Surroundings): Omit<Kit, keyof Surroundings> {
  const start = (args: readonly string[], options: RunOptions = {}): Watched => {
    const { home, folder, canaries, service } = kit;
    const env = cleanEnv({
      HOME: folder,
      AGENTAUTH_HOME: home,
      AGENTAUTH_BASE_URL: service.origin,
      AGENTAUTH_API_TOKEN: canaries.get("api-token"),
      AGENTAUTH_CLIENT_SECRET: canaries.get("client-secret"),
      ...options.env,
    });
    const cwd = options.cwd ?? join(folder, "work");
    const { stdin, keepsInput, wrapper } = options;
    const watched = startWatched([...args, ...kit.flags], { env, cwd, stdin, keepsInput, wrapper });
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
      await until(watched, () => signInAddress(watched.stderr()) !== undefined);
      const address = signInAddress(watched.stderr());
      if (address) await (options.person ?? signsIn)(address, kit as Kit);
      return watched.ended;
    },
    said: (watched, what) => until(watched, () => what.test(watched.stderr())),
    async keep(over = {}, tokens = {}) {
      const grant = grantOf(kit, over, tokens);
      await fileStore(kit.home).save(grant, undefined);
      return grant;
    },
  };
}

/** Waits until something holds, or until the run is over. */
async function until({ ended }: Watched, holds: () => boolean): Promise<void> {
  let isOver = false;
  void ended.finally(() => {
    isOver = true;
  });
  while (!isOver && !holds()) await new Promise((resolve) => setTimeout(resolve, 5));
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
