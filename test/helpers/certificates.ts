import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "./folder.js";

/** Whether the program openssl is there to make certificates with; says so loudly where it is not. */
export function hasOpenssl(what: string): boolean {
  try {
    execFileSync("openssl", ["version"], { stdio: "ignore" });
    return true;
  } catch {
    process.stderr.write(`SKIPPED: ${what} need the program openssl\n`);
    return false;
  }
}

const KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];

/** What a certificate is made of. */
export interface CertificateWish {
  /** The file's name, without its ending. */
  name: string;
  /** Such as `/CN=service.test`. */
  subject: string;
  /** Such as `DNS:service.test,IP:127.0.0.1`. */
  names?: string;
  /** Days that it lasts from now; one with a negative number has ended. */
  days?: number;
}

/** A certificate authority in a separate folder, and what it signs. */
export function makeAuthority(name = "ca") {
  const folder = temporaryFolder();
  const path = (file: string) => join(folder, file);
  const openssl = (...args: string[]) => execFileSync("openssl", args, { cwd: folder, stdio: "ignore" });
  const own = ["-x509", ...KEY, "-keyout", `${name}.key`, "-out", `${name}.pem`, "-days", "2"];
  openssl("req", ...own, "-subj", `/CN=${name} of a test/O=Testers`);
  const sign = ({ name: file, subject, names, days = 2 }: CertificateWish) => {
    openssl("req", ...KEY, "-keyout", `${file}.key`, "-out", `${file}.csr`, "-subj", subject);
    writeFileSync(path("names"), names === undefined ? "" : `subjectAltName=${names}\n`);
    const by = ["-CA", `${name}.pem`, "-CAkey", `${name}.key`, "-CAcreateserial", "-extfile", "names"];
    openssl("x509", "-req", "-in", `${file}.csr`, "-out", `${file}.pem`, ...by, "-days", String(days));
    return { cert: path(`${file}.pem`), key: path(`${file}.key`) };
  };
  return { ca: path(`${name}.pem`), path, sign, openssl, read: (file: string) => readFileSync(path(file), "utf8") };
}
