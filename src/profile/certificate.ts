import { existsSync, readFileSync } from "node:fs";
import { AgentAuthError } from "../errors.js";
import { privately } from "../platform/shell.js";
import { quote, shellWord } from "../redact.js";
import type { ClientCertificate } from "../transport/http-send.js";
import { readSecretFile } from "./secrets.js";
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
  throw usage(
    `a private key is named (${described(key)}), and no client certificate`,
    "name its certificate with --client-cert <file>, or agentauth config set client_cert <file>",
  );
}

/**
 * Reads a client certificate and its key, and checks that they belong together. The file that has the key must be
 * readable by this user alone.
 *
 * @throws `AgentAuthError` `usage` for what is no certificate or key, `store_failed` for a key that others can read
 */
export function readClientCertificate({ cert, key }: CertificateFiles): ClientCertificate {
  const { createPrivateKey, X509Certificate } = process.getBuiltinModule("node:crypto");
  const certText = attempt(
    () => readFileSync(cert.value, "utf8"),
    `${described(cert)} cannot be read`,
    CERTIFICATE_HINT,
  );
  const certificate = attempt(
    () => new X509Certificate(certText),
    `${described(cert)} contains no PEM certificate`,
    CERTIFICATE_HINT,
  );
  if (key === undefined && !/-----BEGIN [A-Z ]*PRIVATE KEY-----/.test(certText)) {
    throw usage(`${described(cert)} holds a certificate, and no private key`, KEY_HINT);
  }
  const file = key ?? cert;
  const keyText = readKey(file);
  const privateKey = attempt(
    () => createPrivateKey(keyText),
    `${described(file)} contains no private key in PEM form`,
    KEY_HINT,
  );
  if (!certificate.checkPrivateKey(privateKey)) {
    throw usage(
      `the key in ${described(file)} is not that of the certificate in ${described(cert)}`,
      "name the certificate and the key that were made together",
    );
  }
  return { cert: certText, key: keyText };
}

const CERTIFICATE_HINT = "name a certificate that was issued to you, in PEM form: --client-cert <file>";
const KEY_HINT = "name the file of its key: --client-key <file>, or agentauth config set client_key <file>";

function readKey(file: Sourced): string {
  if (!existsSync(file.value)) throw usage(`${described(file)} is not there`, KEY_HINT);
  const text = readSecretFile(file.value);
  if (!/-----BEGIN ENCRYPTED PRIVATE KEY-----|^Proc-Type: 4,ENCRYPTED/m.test(text)) return text;
  const plain = shellWord(`${file.value}.plain`);
  throw usage(
    `the private key in ${described(file)} is encrypted, and password prompts are not supported`,
    `${privately(`openssl pkey -in ${shellWord(file.value)} -out ${plain}`)}, and name ${plain} as the key`,
  );
}

function described({ value, source }: Sourced): string {
  return source.startsWith("--") ? `${source} ${quote(value)}` : `${quote(value)} (${source})`;
}

function attempt<T>(work: () => T, message: string, hint: string): T {
  try {
    return work();
  } catch (cause) {
    throw usage(message, hint, cause);
  }
}

function usage(message: string, hint: string, cause?: unknown): AgentAuthError {
  return new AgentAuthError("usage", message, { class: "usage", hint, cause });
}
