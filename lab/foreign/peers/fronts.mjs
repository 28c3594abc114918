// What stands between a client and the official SDK's server: reverse proxies, and forward proxies of a company, one of
// which opens TLS.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort, NotHere, programVersion, startProgram } from "../peer.mjs";
import { startMcpSdk } from "../servers.mjs";

/** A host that only the proxies find. */
const HOST = "mcp.foreign.test";

const TEMPORARY = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
const FRONTS = {
  nginx: {
    words: (work) => ["-p", work, "-c", "config", "-e", "stderr"],
    config: (port, upstream, work) => `daemon off; worker_processes 1; pid nginx.pid; error_log stderr; events {}
http {
  access_log off; ${TEMPORARY.map((name) => `${name}_temp_path ${work}/${name};`).join(" ")}
  server { listen 127.0.0.1:${port}; location / { proxy_pass ${upstream}; proxy_set_header Host $http_host; } }
}`,
  },
  caddy: {
    version: "version",
    words: () => ["run", "--config", "config", "--adapter", "caddyfile"],
    config: (port, upstream) => `{
  admin off
  auto_https off
}
http://127.0.0.1:${port} {
  reverse_proxy ${upstream}
}`,
  },
  haproxy: {
    words: () => ["-f", "config"],
    config: (port, upstream) => `defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
listen front
  bind 127.0.0.1:${port}
  server only ${new URL(upstream).host}
`,
  },
  apache2: {
    words: (work) => ["-f", join(work, "config"), "-D", "FOREGROUND"],
    config: (port, upstream, work) => `Listen 127.0.0.1:${port}
ServerName 127.0.0.1
ServerRoot ${work}
PidFile apache.pid
ErrorLog error.log
${["mpm_event", "authz_core", "proxy", "proxy_http"].map(loadModule).join("\n")}
ProxyPreserveHost On
ProxyPass / ${upstream}/
`,
  },
};

/** The line of Apache's configuration that loads a module. */
export function loadModule(name) {
  return `LoadModule ${name}_module /usr/lib/apache2/modules/mod_${name}.so`;
}

const BETWEEN = {
  squid: {
    // Its shared memory has a name, which a run that was killed leaves behind.
    words: (work, port) => ["-N", "-n", `foreign${port}`, "-f", join(work, "config")],
    config: (port, work) => `http_port 127.0.0.1:${port}
hosts_file ${work}/hosts
http_access allow localhost
http_access deny all
cache deny all
pid_filename none
access_log none
cache_log /dev/null
shutdown_lifetime 0 seconds
`,
  },
  mitmdump: {
    debian: "mitmproxy",
    version: "--version",
    // It shows its certificate after the first start; it is made with a key of its own.
    words: (work, port) => [
      ...["--listen-host", "127.0.0.1", "--listen-port", String(port), "--quiet", "--ssl-insecure"],
      ...["--set", `confdir=${work}`, "--scripts", "config"],
    ],
    config: () => `def server_connect(data):
    data.server.address = ("127.0.0.1", data.server.address[1])
`,
    certificate: "mitmproxy-ca-cert.pem",
  },
};

export const rows = [
  ...Object.entries(FRONTS).map(([name, front]) => ({
    name,
    title: `${name} in front of the server`,
    start: () => startBehind(name, front),
  })),
  ...Object.entries(BETWEEN).map(([name, proxy]) => ({
    name,
    title: `${name} between client and server`,
    start: () => startBeyond(name, proxy),
  })),
];

async function startBehind(program, { words, config, version }) {
  const port = await freePort();
  const server = await startMcpSdk(() => `http://127.0.0.1:${port}`);
  const files = (work) => ({ config: config(port, server.origin, work) });
  const front = await startProgram({ program, port, files, words });
  const close = () => Promise.all([front.close(), server.close()]);
  return { ...server, version: programVersion(program, version), close };
}

async function startBeyond(program, { words, config, version, debian, certificate }) {
  const port = await freePort();
  const tls = createCertificate();
  const server = await startMcpSdk((origin) => `https://${HOST}:${new URL(origin).port}`, tls);
  const files = (work) => ({ config: config(port, work), hosts: `127.0.0.1 ${HOST}\n` });
  const proxy = await startProgram({ program, debian, port, files, words: (work) => words(work, port) });
  const close = () => Promise.all([proxy.close(), server.close(), tls.remove()]);
  const env = {
    HTTPS_PROXY: `http://127.0.0.1:${port}`,
    NODE_EXTRA_CA_CERTS: certificate === undefined ? tls.file : join(proxy.work, certificate),
  };
  return { ...server, version: programVersion(program, version), env, close };
}

/** A key with a certificate for the host, signed by itself. */
function createCertificate() {
  const folder = mkdtempSync(join(tmpdir(), "agentauth-foreign-"));
  const [key, file] = [join(folder, "key.pem"), join(folder, "cert.pem")];
  const { status } = spawnSync("openssl", [
    ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"],
    ...["-subj", `/CN=${HOST}`, "-addext", `subjectAltName=DNS:${HOST}`, "-keyout", key, "-out", file],
  ]);
  if (status !== 0) throw new NotHere("openssl is missing: apt-get install openssl");
  const remove = () => rmSync(folder, { recursive: true, force: true });
  return { key: readFileSync(key), cert: readFileSync(file), file, remove };
}
