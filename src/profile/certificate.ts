import { existsSync, readFileSync } from "node:fs";
import { usageError } from "../errors.js";
import { writePrivatelyCommand } from "../platform/shell.js";
import type { Env } from "../platform/system.js";
import { quote, shellWord } from "../redact.js";
import type { ClientCertificate } from "../transport/http-send.js";
import { isReference, namedSecret } from "./secrets.js";
import type { Settings, Sourced } from "./settings.js";

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
  if (key === undefined && !/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(certText)) {
    throw usageError(`${describeSource(cert)} holds a certificate, and no private key`, KEY_HINT);
  }
  const file = key ?? cert;
  const keyText = readKey(file, env);
  const privateKey = attempt(
    () => createPrivateKey(keyText),
    `${describeSource(file)} contains no private key in PEM form`,
    KEY_HINT,
  );
  if (!certificate.checkPrivateKey(privateKey)) {
    throw usageError(
      `the key in ${describeSource(file)} is not that of the certificate in ${describeSource(cert)}`,
      "name the certificate and the key that were made together",
    );
  }
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
