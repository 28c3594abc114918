// Issuers in Python and Ruby whose client is made by hand, for one redirect address, and whose introspection names no audience.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { folder, freePort, NotHere, startPrinting } from "../peer.mjs";
import { pythonWith } from "../python.mjs";
import { SAID, startIntrospecting } from "../servers.mjs";

export const rows = [
  {
    name: "django",
    title: "Django OAuth Toolkit",
    start: () => startPython("django", "django-oauth-toolkit==3.4.1", ["python3-django-oauth-toolkit"]),
  },
  {
    name: "authlib",
    title: "Authlib in Flask",
    start: () => startPython("authlib", "authlib==1.9.1 flask", ["python3-authlib", "python3-flask"]),
  },
  { name: "doorkeeper", title: "Doorkeeper in Rails", start: startRails },
];

function startPython(name, requirement, debian) {
  const { command, env } = pythonWith(requirement, debian);
  return start([...command, join(folder, "peers", name, "server.py")], env, "introspect/");
}

async function startRails() {
  const needed = ["doorkeeper", "webrick", "sqlite3", "active_record"].map((name) => `-r${name}`);
  if (spawnSync("ruby", ["-rlogger", "-rrails", ...needed, "-e", ""], { stdio: "ignore" }).status !== 0)
    throw new NotHere(
      "Doorkeeper is missing: apt-get install ruby-doorkeeper ruby-activerecord ruby-sqlite3 ruby-webrick",
    );
  const work = mkdtempSync(join(tmpdir(), "agentauth-foreign-"));
  const script = join(folder, "peers", "doorkeeper", "server.rb");
  const peer = await start(["ruby", script], { DATABASE_URL: `sqlite3:${work}/db` }, "oauth/introspect");
  const close = () => peer.close().then(() => rmSync(work, { recursive: true, force: true }));
  return { ...peer, close };
}

/** Starts an issuer by a command, which gets the redirect address, and a server that introspects its tokens at a path. */
async function start(command, env, path) {
  const redirectPort = await freePort();
  const { issuer, version, close } = await startPrinting(
    [...command, `http://127.0.0.1:${redirectPort}/callback`],
    env,
  );
  const server = await startIntrospecting(issuer, `${issuer}/${path}`);
  const setup = { client: { issuer, clientId: "agent" }, redirectPort };
  return {
    ...SAID,
    url: server.url,
    version,
    revoked: true,
    setup,
    close: () => Promise.all([server.close(), close()]),
  };
}
