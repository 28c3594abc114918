// LemonLDAP::NG, of Debian: a portal whose clients are made by hand, with pages for the login, and no revocation.
import { spawnSync } from "node:child_process";
import { freePort, NotHere, packageVersion, startProgram } from "../peer.mjs";
import { startIntrospecting } from "../servers.mjs";

const PORTAL = "/usr/share/lemonldap-ng/portal";
const PACKAGES = ["liblemonldap-ng-portal-perl", "libplack-perl", "libstring-random-perl", "libio-string-perl"];

export const rows = [{ name: "lemonldap", title: "LemonLDAP::NG", start, browse }];

async function start() {
  const modules = ["Plack", ...["Main", "Issuer::OpenIDConnect"].map((name) => `Lemonldap::NG::Portal::${name}`)];
  if (spawnSync("perl", [...modules.map((name) => `-M${name}`), "-e", ""], { stdio: "ignore" }).status !== 0)
    throw new NotHere(`LemonLDAP::NG is missing: apt-get install ${PACKAGES.join(" ")}`);
  const { generateKeyPairSync } = await import("node:crypto");
  const [port, redirectPort] = [await freePort(), await freePort()];
  const issuer = `http://127.0.0.1:${port}`;
  const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const portal = await startProgram({
    program: "plackup",
    port,
    files: (work) => ({
      "portal.psgi": "use Lemonldap::NG::Portal::Main; Lemonldap::NG::Portal::Main->run({});",
      ini: `[all]
logLevel = warn
logger = Lemonldap::NG::Common::Logger::Std
[configuration]
type = File
dirName = ${work}
[portal]
templateDir = ${PORTAL}/templates
staticPrefix = /static
languages = en
`,
      "lmConf-1.json": JSON.stringify({
        cfgNum: 1,
        cfgDate: 1,
        cfgVersion: packageVersion("liblemonldap-ng-portal-perl").split("+")[0],
        authentication: "Demo",
        userDB: "Same",
        portalDisplayRegister: 0,
        portalDisplayResetPassword: 0,
        portalDisplayCertificateResetByMail: 0,
        portal: issuer,
        domain: "127.0.0.1",
        cookieName: "lemonldap",
        key: "a key of the portal",
        requireToken: 0,
        // No page of this row has one, and the module needs a program for images.
        captcha: "::Main::Plugin",
        whatToTrace: "_whatToTrace",
        macros: { _whatToTrace: "$_user" },
        locationRules: { "127.0.0.1": { default: "accept" } },
        demoExportedVars: { cn: "cn", mail: "mail", uid: "uid" },
        globalStorage: "Apache::Session::File",
        globalStorageOptions: { Directory: work, LockDirectory: work },
        issuerDBOpenIDConnectActivation: 1,
        issuerDBOpenIDConnectPath: "^/oauth2/",
        oidcServiceMetaDataIssuer: issuer,
        oidcServicePrivateKeySig: privateKey.export({ type: "pkcs8", format: "pem" }),
        oidcServicePublicKeySig: publicKey.export({ type: "spki", format: "pem" }),
        oidcServiceKeyIdSig: "1",
        oidcRPMetaDataOptions: {
          agent: {
            oidcRPMetaDataOptionsClientID: "agent",
            oidcRPMetaDataOptionsPublic: 1,
            oidcRPMetaDataOptionsRequirePKCE: 1,
            oidcRPMetaDataOptionsRefreshToken: 1,
            oidcRPMetaDataOptionsBypassConsent: 1,
            oidcRPMetaDataOptionsIDTokenSignAlg: "RS256",
            oidcRPMetaDataOptionsRedirectUris: `http://127.0.0.1:${redirectPort}/callback`,
          },
          server: {
            oidcRPMetaDataOptionsClientID: "server",
            oidcRPMetaDataOptionsClientSecret: "a-secret-of-the-server",
          },
        },
      }),
    }),
    words: (work) => ["--host", "127.0.0.1", "--port", String(port), `${work}/portal.psgi`],
    env: (work) => ({ LLNG_DEFAULTCONFFILE: `${work}/ini` }),
  });
  const server = await startIntrospecting(issuer, `${issuer}/oauth2/introspect`, {
    // It takes no request without this one.
    scopes: ["openid", "mcp"],
    readSubject: ({ sub }) => sub,
  });
  const close = () => Promise.all([portal.close(), server.close()]);
  const setup = { client: { issuer, clientId: "agent" }, redirectPort };
  return { ...server, says: "subject dwho", version: packageVersion("liblemonldap-ng-portal-perl"), setup, close };
}

/** Logs in as a user of the demonstration, by the form of its page. */
async function browse(browser, address) {
  const { url, text } = await browser.open(address);
  const hidden = [...text.matchAll(/<input type="hidden" name="([^"]+)"[^>]* value="([^"]*)"/g)];
  await browser.open(url, {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams([
      ...hidden.map(([, name, value]) => [name, value]),
      ["user", "dwho"],
      ["password", "dwho"],
    ]).toString(),
  });
}
