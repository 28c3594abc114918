import { chmodSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { AgentClient } from "../../../src/oauth/agent.js";
import { fileStore } from "../../../src/store/file/file.js";
import { TestLogin } from "../../helpers/login.js";
import { saveClientOf } from "../arrange.js";
import { type HostileCase, UP_TO_ISSUER, unless, WHOLE_LOGIN } from "../case.js";
import { PLANTED } from "../checks.js";
import { filesBelow } from "../kit/canaries.js";
import type { Kit } from "../kit/kit.js";
import { loginUrlIn, logsIn } from "../kit/user.js";

const target = ({ folder }: Kit) => join(folder, PLANTED, "credential.json");
const flags = ["--hand-over"];
const common = { command: "login", flags, store: "same", cliOnly: true } as const;
const secrets = ["access-token", "refresh-token", "registered-secret"] as const;
const REVOKED = [...WHOLE_LOGIN, "as POST /pool/revoke"];

/** A target that is there, and what it holds after the command. */
function taken(id: string, input: string, make: (path: string) => void): HostileCase {
  return {
    ...common,
    id,
    input: `a login that is handed over to a file: ${input}`,
    result: "refused before any request; what is there stays as it is",
    outcome: "usage",
    command: (kit) => ["login", kit.mcp.url, "--browser", "none", `--hand-over=${target(kit)}`],
    flags: [],
    arrange(kit) {
      mkdirSync(join(kit.folder, PLANTED));
      make(target(kit));
    },
    requests: [],
    says: ["overwrites nothing"],
    check: (kit) =>
      unless({
        "nothing is written": filesBelow(join(kit.folder, PLANTED)).every(({ content }) => `${content}` === "theirs"),
      }),
  };
}

const targets: HostileCase[] = [
  taken("W15c", "one that others can read", (path) => {
    writeFileSync(path, "theirs");
    chmodSync(path, 0o666);
  }),
  taken("W15d", "a link to a file", (path) => {
    writeFileSync(`${path}.other`, "theirs");
    symlinkSync(`${path}.other`, path);
  }),
  taken("W15e", "a link that leads nowhere", (path) => symlinkSync(`${path}.other`, path)),
  {
    ...common,
    id: "W15f",
    input: "a login that is handed over to a file: a link that appears during the login",
    result: "nothing is written through it; the login is revoked",
    outcome: "store",
    command: (kit) => ["login", kit.mcp.url, "--browser", "none", `--hand-over=${target(kit)}`],
    flags: [],
    arrange: (kit) => mkdirSync(join(kit.folder, PLANTED)),
    user: async (url, kit) => {
      symlinkSync(`${target(kit)}.other`, target(kit));
      await logsIn(url, kit);
    },
    requests: REVOKED,
    says: ["its tokens were revoked"],
    check: (kit) => unless({ "nothing is written": !existsSync(`${target(kit)}.other`) }),
  },
  {
    ...common,
    id: "W15g",
    input: "a login that is handed over to a folder that others can write",
    result: "refused before any request",
    outcome: "store",
    command: (kit) => ["login", kit.mcp.url, "--browser", "none", `--hand-over=${target(kit)}`],
    flags: [],
    arrange(kit) {
      mkdirSync(join(kit.folder, PLANTED));
      chmodSync(join(kit.folder, PLANTED), 0o777);
    },
    requests: [],
    says: ["can be written by others", "chmod go-w"],
  },
];

const issuers: HostileCase[] = [
  {
    ...common,
    id: "W15i",
    input: "a login that is handed over: an issuer without refresh tokens",
    result: "handed over, and it says so",
    outcome: "ok",
    arrange: ({ as }) => {
      as.tokenAnswer = { refresh_token: undefined };
    },
    prints: secrets,
    says: ["it comes without a refresh token"],
    check: (_kit, run) => unless({ "no refresh": !("refresh" in JSON.parse(run?.stdout ?? "{}")) }),
  },
  {
    ...common,
    id: "W15j",
    input: "a login that is handed over: a server that takes only tokens that are bound to a key",
    result: "refused before a prompt",
    outcome: "refused",
    arrange({ as, mcp }) {
      as.metadata["dpop_signing_alg_values_supported"] = ["ES256"];
      mcp.challenge = String(mcp.challenge).replace("Bearer", "DPoP");
    },
    requests: UP_TO_ISSUER,
    says: ["bound to a key (DPoP, RFC 9449)"],
  },
  {
    ...common,
    id: "W15k",
    input: "a login that is handed over: an issuer that binds the token all the same",
    result: "refused, and nothing is printed",
    outcome: "refused",
    arrange: ({ as }) => {
      as.tokenAnswer = { token_type: "DPoP" };
    },
    requests: WHOLE_LOGIN,
    says: ["token_type"],
  },
];

/** Revokes a credential that a vault has returned, or that lies in a file. */
function revoking(
  id: string,
  input: string,
  change: (credential: { mcp_server_url: string; refresh: { token_endpoint: string } }, kit: Kit) => void,
  over: Pick<HostileCase, "outcome" | "says"> & Partial<HostileCase>,
): HostileCase {
  return {
    ...common,
    flags: [],
    id,
    input: `a login to revoke that was handed over: ${input}`,
    result: "refused; no secret is sent",
    prints: secrets,
    async drive(kit) {
      const made = await kit.run(["login", kit.mcp.url, "--browser", "none", "--hand-over"]);
      const credential = JSON.parse(made.stdout);
      change(credential, kit);
      kit.log.length = 0;
      return kit.run(["logout", "--hand-over", "-"], { stdin: JSON.stringify(credential) });
    },
    check: ({ log, canaries }) =>
      unless({ "no secret is sent": log.every(({ body }) => canaries.in(body).length === 0) }),
    ...over,
  };
}

const revocations: HostileCase[] = [
  revoking(
    "W15l",
    "its token endpoint is not that of the issuer",
    ({ refresh }, { elsewhere }) => {
      refresh.token_endpoint = `${elsewhere.origin}/token`;
    },
    { outcome: "refused", says: ["nothing was sent"] },
  ),
  revoking(
    "W15m",
    "the server names another issuer by now",
    (_credential, { mcp, other }) => {
      mcp.serveFor(other);
    },
    { outcome: "refused", says: ["nothing was sent"] },
  ),
  {
    ...common,
    id: "W15n",
    input: "a login to revoke that was handed over: a file that others can read",
    result: "an error with the command that repairs it",
    outcome: "store",
    command: (kit) => ["logout", "--hand-over", target(kit)],
    flags: [],
    arrange(kit) {
      mkdirSync(join(kit.folder, PLANTED));
      writeFileSync(target(kit), "{}", { mode: 0o644 });
    },
    requests: [],
    says: ["can be read by others", "chmod 600"],
  },
];

export const handOver: HostileCase[] = [
  {
    ...common,
    id: "W15a",
    input: "a login that is handed over, beside one that is stored for the server",
    result: "made with a client of its own; the stored one stays as it is",
    outcome: "ok",
    async arrange(kit) {
      await saveClientOf(kit);
      await kit.saveLogin();
    },
    prints: secrets,
    requests: WHOLE_LOGIN,
    check: ({ as }, run) =>
      unless({
        "its own client": as.to("/pool/authorize").every(({ url }) => !String(url).includes("first-client")),
        "the new client is printed": JSON.parse(run?.stdout ?? "{}").refresh?.client_id === "client-1",
      }),
  },
  {
    ...common,
    id: "W15b",
    input: "a login that is handed over: a program at the pipe that has ended",
    result: "the login is revoked, and nothing is left",
    outcome: "store",
    async drive(kit) {
      const watched = kit.start(["login", kit.mcp.url, "--browser", "none", "--hand-over"]);
      watched.child.stdout?.destroy();
      await kit.untilPrinted(watched, /Waiting/);
      const url = loginUrlIn(watched.stderr());
      if (url) await logsIn(url, kit);
      return watched.ended;
    },
    requests: REVOKED,
    times: { "as POST /pool/revoke": 2 },
    says: ["its tokens were revoked", "closed the pipe"],
    check: (_kit, run) => unless({ "nothing is printed": run?.stdout === "" }),
  },
  ...targets,
  {
    id: "W15h",
    input: "a login that is handed over: a vault that refuses it, or that repeats it in its answer",
    result: "the program revokes it; nothing is stored, and a second time nothing is sent",
    outcome: "ok",
    async call(kit) {
      const agent = new AgentClient({ store: fileStore(kit.home), login: new TestLogin() });
      const made = await agent.handOver(kit.mcp.url);
      await made.revoke();
      await made.revoke();
    },
    store: "same",
    requests: REVOKED,
    times: { "as POST /pool/revoke": 2 },
  },
  ...issuers,
  ...revocations,
];
