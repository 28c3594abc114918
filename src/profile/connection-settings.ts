import { existsSync, readFileSync } from "node:fs";
import { AgentAuthError, orUndefined, usageError } from "../errors.js";
import { parseUrl, percentDecoded } from "../http/address.js";
import type { Proxies } from "../http/node/agents.js";
import type { ClientCertificate, ConnectOptions } from "../http/node/http-send.js";
import { type Env, writePrivatelyCommand } from "../platform.js";
import { quote, type Redactor, shellWord } from "../redact.js";
import { isReference, namedSecret } from "./secrets.js";
import { firstSet, type Settings, type Sourced } from "./settings.js";

/** What flags, settings and environment say about the connections of a run: proxies, authorities and a client certificate. */

export const PROXY_FLAG = "--proxy";
export const CA_FLAG = "--ca-file";

/** What decides how requests leave this machine. */
export interface NetworkOptions {
  /** Used for every host that `NO_PROXY` does not name. */
  proxy: Sourced | undefined;
  /** The file with certificates of authorities to trust beside the usual ones, PEM. */
  caFile: Sourced | undefined;
  /** What says whether the authorities of the system are trusted too; its value is `yes` or `no`. */
  systemCa?: Sourced | undefined;
  /** The client certificate, for servers that request one. */
  clientCertificate?: CertificateFiles | undefined;
  /** Milliseconds; see `OutletOptions`. */
  idleTimeoutMs?: number | undefined;
  env: Env;
}

export function withSource(value: string | undefined, source: string): Sourced | undefined {
  return value === undefined ? undefined : { value, source };
}

/** Proxies and authorities, as flags and environment name them. @throws `AgentAuthError` `usage` */
export function buildSendOptions(
  { proxy, caFile, systemCa, clientCertificate, idleTimeoutMs: idleTimeout, env }: NetworkOptions,
  redactor: Redactor,
): ConnectOptions & { proxies: Proxies } {
  const { https, http, except } = proxySettings(proxy, env);
  const usesSystem = systemCa?.value === "yes";
  const added = [
    ...(usesSystem ? systemAuthorities(systemCa.source) : []),
    ...(caFile ? [readAuthorities(caFile)] : []),
  ];
  const ca = caFile || usesSystem ? [...defaultAuthorities(env), ...added] : undefined;
  return {
    proxies: {
      https: https && checkProxy(https, redactor),
      http: http && checkProxy(http, redactor),
      // One that is named is meant for this server, such as a program that shows its requests.
      forLoopback: Boolean(proxy?.value),
    },
    noProxy: except?.value,
    ca,
    idleTimeoutMs: idleTimeout,
    clientCertificate: clientCertificate && readClientCertificate(clientCertificate, env),
  };
}

type Tls = Pick<typeof import("node:tls"), "rootCertificates"> & {
  /** Since Node 22.15. */
  getCACertificates?: (type: "default" | "system") => string[];
};

/** What Node trusts if it is given no list: its own authorities, and those of its options and variables. */
function defaultAuthorities(env: NetworkOptions["env"]): string[] {
  const { rootCertificates, getCACertificates }: Tls = process.getBuiltinModule("node:tls");
  return [...(getCACertificates?.("default") ?? rootCertificates), ...extraAuthorities(env)];
}

/**
 * The authorities that the system trusts, such as those that a company has installed on its machines.
 *
 * @throws `AgentAuthError` `usage` with a Node that cannot read them
 */
export function systemAuthorities(source: string): string[] {
  const { getCACertificates }: Tls = process.getBuiltinModule("node:tls");
  if (getCACertificates !== undefined) return getCACertificates("system");
  const message = `${source}: Node ${process.versions.node} cannot read the certificate authorities of the system; that needs Node 22.15 or later, or 24`;
  const hint =
    "use such a Node, or name a file with your authorities (PEM) in NODE_EXTRA_CA_CERTS or with --ca-file <file>";
  throw usageError(message, hint);
}

/** The proxies that are named, else those of the environment. */
export function proxySettings(
  named: Sourced | undefined,
  env: Env,
): { https: Sourced | undefined; http: Sourced | undefined; except: Sourced | undefined } {
  // Programs read these in small letters first, and an empty one is unset.
  const inEnv = (name: string) => firstSet([env[name.toLowerCase()], name.toLowerCase()], [env[name], name]);
  const except = inEnv("NO_PROXY");
  if (named?.value) return { https: named, http: named, except };
  const [https, http] = [inEnv("HTTPS_PROXY"), inEnv("HTTP_PROXY")];
  // What is named for one scheme comes before what is named for all.
  return { https: https || http ? https : inEnv("ALL_PROXY"), http, except };
}

function checkProxy({ value, source }: Sourced, redactor: Redactor): string {
  const withScheme = value.includes("://") ? value : `http://${value}`;
  const url = parseUrl(withScheme);
  for (const password of url?.password ? [url.password, percentDecoded(url.password)] : []) redactor.add(password);
  if (source === PROXY_FLAG && url?.password)
    throw usageError(
      "--proxy: a password must not be on the command line, where other programs can read it and the shell stores it",
      "give the whole address in the variable HTTPS_PROXY; and change the password that was typed here",
    );
  if (url?.protocol === "http:" || url?.protocol === "https:") return url.href;
  const isSocks = url !== undefined && /^socks/.test(url.protocol);
  const rule = isSocks ? "is a SOCKS proxy, which is not supported: it must be" : "is not";
  throw new AgentAuthError(
    "usage",
    `${source} ${quote(redactor.redact(value))} ${rule} an http:// or https:// address`,
    {
      class: "usage",
      hint: isSocks
        ? "name an HTTP proxy with --proxy or HTTPS_PROXY, or unset it"
        : `correct or unset ${source}, such as ${assignmentPrefix(source)}http://proxy.example:3128`,
    },
  );
}

/** How a value is written for a flag or a variable; the value of an option is written alone. */
function assignmentPrefix(source: string): string {
  if (source.startsWith("--")) return `${source} `;
  return /^\w+$/.test(source) ? `${source}=` : "";
}

/** What Node trusts because of NODE_EXTRA_CA_CERTS: our own list would otherwise replace it. */
function extraAuthorities(env: NetworkOptions["env"]): string[] {
  const path = env["NODE_EXTRA_CA_CERTS"];
  if (path === undefined) return [];
  // Node has warned about it at its start.
  return orUndefined(() => [readFileSync(path, "utf8")]) ?? [];
}

/** The authorities in a file, PEM. @throws `AgentAuthError` `usage` for a file that cannot be read or has none */
export function readAuthorities(file: Sourced): string {
  let text: string;
  try {
    text = readFileSync(file.value, "utf8");
  } catch (cause) {
    throw badAuthorities(file, "cannot be read", cause);
  }
  if (!text.includes("-----BEGIN CERTIFICATE-----")) throw badAuthorities(file, "contains no PEM certificate");
  return text;
}

function badAuthorities({ value, source }: Sourced, why: string, cause?: unknown): AgentAuthError {
  const flag = source === CA_FLAG ? ": --ca-file <file>" : "";
  return usageError(
    `${source} ${quote(value)} ${why}`,
    `name a file with the certificates of your authorities, in PEM form${flag}`,
    cause,
  );
}

/** The file of the client certificate, and that of its private key where it is another one. */
export interface CertificateFiles {
  cert: Sourced;
  key: Sourced | undefined;
}

/**
 * The files that the settings name; undefined where they name none.
 *
 * @throws `AgentAuthError` `usage` for a key without a certificate
 */
export function certificateFiles({
  clientCert: cert,
  clientKey: key,
}: Pick<Settings, "clientCert" | "clientKey">): CertificateFiles | undefined {
  if (cert) return { cert, key };
  if (key === undefined) return undefined;
  throw usageError(
    `a private key is named (${describeSource(key)}), and no client certificate`,
    "name its certificate with --client-cert <file>, or agentauth config set client_cert <file>",
  );
}

/**
 * Reads a client certificate and its key, and checks that they belong together. The file that has the key must be
 * readable by this user alone; a reference may name the key instead.
 *
 * @throws `AgentAuthError` `usage` for what is no certificate or key, `store_failed` for a key that others can read
 */
export function readClientCertificate({ cert, key }: CertificateFiles, env: Env): ClientCertificate {
  const { createPrivateKey, X509Certificate } = process.getBuiltinModule("node:crypto");
  const certText = attempt(
    () => readFileSync(cert.value, "utf8"),
    `${describeSource(cert)} cannot be read`,
    CERTIFICATE_HINT,
  );
  const certificate = attempt(
    () => new X509Certificate(certText),
    `${describeSource(cert)} contains no PEM certificate`,
    CERTIFICATE_HINT,
  );
  if (key === undefined && !/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(certText))
    throw usageError(`${describeSource(cert)} holds a certificate, and no private key`, KEY_HINT);
  const file = key ?? cert;
  const keyText = readKey(file, env);
  const privateKey = attempt(
    () => createPrivateKey(keyText),
    `${describeSource(file)} contains no private key in PEM form`,
    KEY_HINT,
  );
  if (!certificate.checkPrivateKey(privateKey))
    throw usageError(
      `the key in ${describeSource(file)} is not that of the certificate in ${describeSource(cert)}`,
      "name the certificate and the key that were made together",
    );
  return { cert: certText, key: keyText };
}

const CERTIFICATE_HINT = "name a certificate that was issued to you, in PEM form: --client-cert <file>";
const KEY_HINT = "name the file of its key: --client-key <file>, or agentauth config set client_key <file>";

function readKey(file: Sourced, env: Env): string {
  if (!isReference(file.value) && !existsSync(file.value))
    throw usageError(`${describeSource(file)} is not there`, KEY_HINT);
  const text = namedSecret(file.value, file.source, env);
  if (!/-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m.test(text)) return text;
  const plain = shellWord(`${file.value}.plain`);
  throw usageError(
    `the private key in ${describeSource(file)} is encrypted, and password prompts are not supported`,
    `${writePrivatelyCommand(`openssl pkey -in ${shellWord(file.value)} -out ${plain}`)}, and name ${plain} as the key`,
  );
}

function describeSource({ value, source }: Sourced): string {
  return source.startsWith("--") ? `${source} ${quote(value)}` : `${quote(value)} (${source})`;
}

function attempt<T>(work: () => T, message: string, hint: string): T {
  try {
    return work();
  } catch (cause) {
    throw usageError(message, hint, cause);
  }
}
