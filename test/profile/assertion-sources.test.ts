import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { it as base, describe, expect, onTestFinished, vi } from "vitest";
import { workloadFrom } from "../../src/node.js";
import { type AssertionSourceOptions, openSource } from "../../src/profile/assertion-sources.js";
import { withoutSecretVariables } from "../../src/profile/secrets.js";
import { pendingError } from "../helpers/captured.js";
import { unsignedJwt } from "../helpers/client-keys.js";
import { temporaryFolder } from "../helpers/folder.js";
import { endless, Peer, type Reply, type Seen, silence } from "../helpers/peer.js";
import { rejection } from "../helpers/service.js";
import { ON_WINDOWS } from "../helpers/systems.js";

const folder = temporaryFolder();
const REQUEST = {
  audience: "https://as.example/pool",
  issuer: "https://as.example/pool",
  tokenEndpoint: "https://as.example/pool/token",
  resource: undefined,
  signal: undefined,
};
const NAMED = "the source of the test";
const open = (source: string, env: Record<string, string> = {}, options: AssertionSourceOptions = {}) =>
  openSource(source, options, { env, fetch: neverSent, from: NAMED });
/** What is reached without a proxy is not reached by the `fetch` that has one. */
const neverSent = () => Promise.reject(new Error("sent by the fetch with the proxies"));
const read = async (...args: Parameters<typeof open>) => open(...args).assertion(REQUEST);
const nameOf = (...args: Parameters<typeof open>) => {
  const { workload } = open(...args);
  return typeof workload === "string" ? workload : workload();
};
function file(name: string, text: string, mode = 0o644): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  chmodSync(path, mode);
  return path;
}

const it = base.extend("peer", async ({ task: _ }, { onCleanup }) => {
  const peer = await new Peer("platform", []).start();
  onCleanup(() => peer.close());
  return peer;
});

/** The platforms that answer over HTTP: their environment, the request that they document, and their answer. */
const PLATFORMS: [string, string, (peer: Peer) => Record<string, string>, string, Partial<Seen["headers"]>, Reply][] = [
  [
    "GitHub Actions",
    "github-actions",
    ({ origin }) => ({
      ACTIONS_ID_TOKEN_REQUEST_URL: `${origin}/oidc/token?api-version=2.0`,
      ACTIONS_ID_TOKEN_REQUEST_TOKEN: "runner-secret-1",
    }),
    "/oidc/token?api-version=2.0&audience=https%3A%2F%2Fas.example%2Fpool",
    { authorization: "Bearer runner-secret-1" },
    { json: { value: "a.b.c" } },
  ],
  [
    "the metadata server of Google Cloud",
    "gcp",
    ({ port }) => ({ GCE_METADATA_HOST: `127.0.0.1:${port}` }),
    "/computeMetadata/v1/instance/service-accounts/default/identity?audience=https%3A%2F%2Fas.example%2Fpool&format=full",
    { "metadata-flavor": "Google" },
    { text: "a.b.c\n", headers: { "metadata-flavor": "Google" } },
  ],
  [
    "the metadata server of Azure",
    "azure",
    ({ origin }) => ({ AZURE_POD_IDENTITY_AUTHORITY_HOST: `${origin}/` }),
    "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fas.example%2Fpool",
    { metadata: "true" },
    { json: { access_token: "a.b.c", token_type: "Bearer" } },
  ],
  [
    "an app of Azure with an identity of its choice",
    "azure",
    ({ origin }) => ({
      IDENTITY_ENDPOINT: `${origin}/msi/token`,
      IDENTITY_HEADER: "app-secret-1",
      AZURE_CLIENT_ID: "id-1",
    }),
    "/msi/token?api-version=2019-08-01&resource=https%3A%2F%2Fas.example%2Fpool&client_id=id-1",
    { "x-identity-header": "app-secret-1", metadata: undefined },
    { json: { access_token: "a.b.c" } },
  ],
  ["an address", "url", () => ({}), "/here?x=1", {}, { text: "a.b.c\n" }],
];
const sourceOf = (kind: string, { origin }: Peer) => (kind === "url" ? `url:${origin}/here?x=1` : kind);

describe.for(PLATFORMS)("%s", ([_title, kind, envOf, url, headers, reply]) => {
  const path = url.split("?")[0] ?? "";

  it("is asked once for each assertion, as it documents, and by no proxy", async ({ peer }) => {
    peer.routes[path] = reply;
    vi.stubEnv("HTTP_PROXY", "http://127.0.0.1:9");
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(await read(sourceOf(kind, peer), envOf(peer))).toBe("a.b.c");
    expect(peer.requests.map((seen) => [seen.method, seen.url])).toEqual([["GET", url]]);
    expect(peer.requests[0]?.headers).toMatchObject({
      accept: "application/json, text/plain",
      "accept-encoding": "identity",
    });
    for (const [name, value] of Object.entries(headers)) expect(peer.requests[0]?.headers[name]).toBe(value);
  });

  it("that redirects is not followed", async ({ peer }) => {
    for (const status of [300, 302, 399]) {
      peer.routes[path] = { status, headers: { location: `${peer.origin}/elsewhere` } };
      expect(await pendingError(read(sourceOf(kind, peer), envOf(peer)))).toMatchObject({
        code: "redirect_refused",
        class: "refused",
        message: `${NAMED}: "${peer.origin}${path}" answers with a redirect, which is not followed`,
      });
    }
    expect(peer.to("/elsewhere")).toEqual([]);
  });

  it("that refuses is quoted, without the secret of the request and without control characters", async ({ peer }) => {
    peer.routes[path] = ({ headers }) => ({
      status: 400,
      text: ` no identity\u001b[31m ${(headers.authorization ?? String(headers["x-identity-header"])).split(" ").at(-1)}\n`,
    });
    const error = await read(sourceOf(kind, peer), envOf(peer)).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: "http_error",
      class: "remote",
      status: 400,
      url: `${peer.origin}${path}`,
      message: expect.stringMatching(/answers 400: "no identity\\e\[31m \S+"$/),
      hint: "check that the platform gives this workload an identity",
    });
    expect(String(error)).toContain(`${NAMED}: "${peer.origin}${path}" answers`);
    expect(String(error)).not.toMatch(/runner-secret-1|app-secret-1/);
    expect(String(error)).not.toContain("\u001b");
  });

  it("that answers with 1 GB, or with something else, is refused without a word of it", async ({ peer }) => {
    peer.routes[path] = { headers: { "content-length": String(2 ** 30) }, text: "x" };
    expect(await pendingError(read(sourceOf(kind, peer), envOf(peer)))).toMatchObject({ code: "body_too_large" });
    if (kind === "url") return;
    peer.routes[path] = { text: '{"token":"s3cret"}' };
    const error = await read(sourceOf(kind, peer), envOf(peer)).catch((thrown: unknown) => thrown);
    const member = { "github-actions": "value", azure: "access_token" }[kind];
    const message =
      kind === "gcp"
        ? `${NAMED}: "127.0.0.1:${peer.port}" answers without Metadata-Flavor: Google`
        : `${NAMED}: the answer of "${peer.origin}${path}" has no ${member}`;
    expect(error).toMatchObject({ code: "bad_token_answer", class: "refused", message });
    if (kind === "gcp") return;
    peer.routes[path] = { text: "s3cret" };
    expect(await pendingError(read(sourceOf(kind, peer), envOf(peer)))).toMatchObject({ message });
  });
});

it.for([
  [201, "remote"],
  [404, "remote"],
  [429, "unavailable"],
  [500, "unavailable"],
  [503, "unavailable"],
] as const)(
  "an answer of %i is of the class %s, and its text is quoted where it has one",
  async ([status, kind], { peer }) => {
    peer.routes["/here"] = { status, text: " ", headers: { "retry-after": "0" } };
    expect(await pendingError(read(`url:${peer.origin}/here`))).toMatchObject({
      class: kind,
      message: `${NAMED}: "${peer.origin}/here" answers ${status}`,
    });
  },
);

it("asks again where a platform is busy", async ({ peer }) => {
  peer.routes["/here"] = (_seen, nth) =>
    nth === 1 ? { status: 503, headers: { "retry-after": "0" } } : { text: "a.b.c" };
  expect(await read(`url:${peer.origin}/here`)).toBe("a.b.c");
});

it("gives up where its caller does", async ({ peer }) => {
  const controller = new AbortController();
  peer.routes["/here"] = () => {
    controller.abort();
    return silence;
  };
  const waiting = open(`url:${peer.origin}/here`).assertion({ ...REQUEST, signal: controller.signal });
  expect(await pendingError(waiting)).toMatchObject({ code: "aborted" });
});

it("reads no more than 64 KiB of an answer without an end", async ({ peer }) => {
  peer.routes["/here"] = endless("HTTP/1.1 200 OK\r\n\r\n", "x".repeat(16_384), 1);
  expect(await pendingError(read(`url:${peer.origin}/here`))).toMatchObject({ code: "body_too_large" });
});

describe("the address of a platform", () => {
  it.for<[string, Record<string, string>]>([
    ["url:http://platform.example/token", {}],
    ["url:http://10.0.0.1/token", {}],
    ["url:ftp://127.0.0.1/token", {}],
    ["url:somewhere", {}],
    ["gcp", { GCE_METADATA_HOST: "metadata.example" }],
    ["azure", { IDENTITY_ENDPOINT: "http://identity.example/", IDENTITY_HEADER: "x" }],
    ["github-actions", { ACTIONS_ID_TOKEN_REQUEST_URL: "http://ci.example/", ACTIONS_ID_TOKEN_REQUEST_TOKEN: "x" }],
  ])("%s must be https, or on this machine or its link: %j", async ([source, env]) => {
    expect(await pendingError(read(source, env))).toMatchObject({ code: "usage", class: "usage" });
  });

  it("elsewhere is reached by the fetch with the proxies", async () => {
    const asked: string[] = [];
    const fetch = async (input: unknown) => {
      asked.push(input instanceof Request ? input.url : String((input as { url?: string }).url ?? input));
      return new Response("a.b.c");
    };
    const { assertion } = openSource("url:https://ci.example/token", {}, { env: {}, fetch, from: NAMED });
    expect(await assertion(REQUEST)).toBe("a.b.c");
    expect(asked).toEqual(["https://ci.example/token"]);
  });
});

describe("a header", () => {
  it("is sent, and a secret in it is named by a reference", async ({ peer }) => {
    peer.routes["/here"] = { text: "a.b.c" };
    const headers = [
      "Authorization: Bearer env:TOKEN",
      "X-Api-Key: env:TOKEN",
      "X-Plain: a b",
      "X-Other:c",
      "X-Blanks:   d",
    ];
    await read(`url:${peer.origin}/here`, { TOKEN: "header-secret-1" }, { headers });
    expect(peer.requests[0]?.headers).toMatchObject({
      authorization: "Bearer header-secret-1",
      "x-api-key": "header-secret-1",
      "x-plain": "a b",
      "x-other": "c",
      "x-blanks": "d",
    });
  });

  const MAY_BE_SECRET = "may hold a secret: name it with env:NAME, file:PATH or exec:COMMAND";
  const NOT_ALLOWED = "has a character that is not allowed in a header value";

  it.for<[string, string]>([
    ["Authorization: Bearer s3cret", `the header "Authorization" of ${NAMED} ${MAY_BE_SECRET}`],
    ["Authorization: Bearer xenv:s3cret", `the header "Authorization" of ${NAMED} ${MAY_BE_SECRET}`],
    ["X-Access-Token: s3cret", `the header "X-Access-Token" of ${NAMED} ${MAY_BE_SECRET}`],
    ["Cookie: s3cret", `the header "Cookie" of ${NAMED} ${MAY_BE_SECRET}`],
    ["X-Secret: s3cret", `the header "X-Secret" of ${NAMED} ${MAY_BE_SECRET}`],
    ["x-api-key: s3cret", `the header "x-api-key" of ${NAMED} ${MAY_BE_SECRET}`],
    ["s3cret", `a header of ${NAMED} must be "Name: value"`],
    [": s3cret", `a header of ${NAMED} must be "Name: value"`],
    ["X Y: s3cret", `a header of ${NAMED} must be "Name: value"`],
    ["X-Plain:", `a header of ${NAMED} must be "Name: value"`],
    ["X-Plain: s3cret\u0000", `the header "X-Plain" of ${NAMED} ${NOT_ALLOWED}`],
    ["X-Plain: \u0000s3cret", `the header "X-Plain" of ${NAMED} ${NOT_ALLOWED}`],
    ["X-Plain: s3crét", `the header "X-Plain" of ${NAMED} ${NOT_ALLOWED}`],
  ])("%j is refused, and not repeated", async ([header, message]) => {
    const make = () => open("url:http://127.0.0.1/", {}, { headers: [header] });
    expect(make).toThrow(expect.objectContaining({ code: "usage", message }));
    expect(make).not.toThrow("s3cret");
  });

  it("goes with an address alone", () => {
    const message = `a header of ${NAMED} goes with url:ADDRESS alone`;
    expect(() => open("gcp", {}, { headers: ["X: y"] })).toThrow(expect.objectContaining({ code: "usage", message }));
  });
});

describe("a source on this machine", () => {
  it("is a variable, or a file of the platform", async () => {
    expect(await read("env:TOKEN", { TOKEN: "a.b.c" })).toBe("a.b.c");
    for (const kind of ["file", "kubernetes", "spiffe"])
      expect(await read(`${kind}:${file("token", "a.b.c\n")}`)).toBe("a.b.c\n");
  });

  it.skipIf(ON_WINDOWS)("may be a program", async () => {
    expect(await read("exec:printf %s.b.c a")).toBe("a.b.c");
  });

  it("without a projected token says what to mount", async () => {
    expect(await pendingError(read("kubernetes"))).toMatchObject({
      message: `${NAMED} "/var/run/secrets/agentauth/token" cannot be read`,
      hint: "mount a projected volume with a serviceAccountToken for this audience",
    });
  });

  it.skipIf(ON_WINDOWS).for<[string, () => string, string, "usage" | "store_failed", string?]>([
    [
      "is not there",
      () => "/nowhere/token",
      "cannot be read",
      "usage",
      "name the file that your platform writes the assertion to",
    ],
    ["is a folder", () => folder, "is not an ordinary file", "store_failed"],
    [
      "is a pipe without a writer",
      () => {
        execFileSync("mkfifo", [join(folder, "pipe")]);
        return join(folder, "pipe");
      },
      "is not an ordinary file",
      "store_failed",
    ],
    ["is too large", () => file("large", "x".repeat(65_537)), "is larger than 65536 bytes", "usage"],
    ["others of the group can write", () => file("group", "a.b.c", 0o664), "can be written by others", "store_failed"],
    [
      "all users can write",
      () => file("all", "a.b.c", 0o646),
      "can be written by others",
      "store_failed",
      "chmod go-w",
    ],
    [
      "lies in a folder that others can write",
      () => {
        mkdirSync(join(folder, "open"));
        writeFileSync(join(folder, "open", "token"), "a.b.c");
        chmodSync(join(folder, "open"), 0o777);
        return join(folder, "open", "token");
      },
      "can be written by others",
      "store_failed",
      "chmod go-w",
    ],
  ])("that %s is refused", async ([_what, make, problem, code, hint]) => {
    const path = make();
    const error = await rejection(read(`file:${path}`));
    expect(error).toMatchObject({ code, message: expect.stringContaining(problem) });
    if (hint !== undefined) expect(error).toMatchObject({ hint: expect.stringContaining(hint) });
  });

  it.skipIf(process.getuid?.() !== 0)("of another user is refused", async () => {
    const path = file("foreign", "a.b.c");
    chownSync(path, 1234, 1234);
    expect(await rejection(read(`file:${path}`))).toMatchObject({ code: "store_failed" });
  });

  it.skipIf(ON_WINDOWS)("may be in a volume of Kubernetes", async () => {
    const volume = join(folder, "volume");
    mkdirSync(join(volume, "..data-1"), { recursive: true });
    writeFileSync(join(volume, "..data-1", "token"), "a.b.c", { mode: 0o644 });
    symlinkSync("..data-1", join(volume, "..data"));
    symlinkSync("..data/token", join(volume, "token"));
    chmodSync(volume, 0o1777);
    expect(await read(`kubernetes:${join(volume, "token")}`)).toBe("a.b.c");
  });

  it("of 64 KiB is read", async () => {
    expect(await read(`file:${file("longest", "x".repeat(65_536))}`)).toHaveLength(65_536);
  });

  it("outside of a job says which permission is missing", async () => {
    const [ACTIONS_ID_TOKEN_REQUEST_URL, ACTIONS_ID_TOKEN_REQUEST_TOKEN] = ["http://127.0.0.1:9/", "t"];
    for (const env of [{}, { ACTIONS_ID_TOKEN_REQUEST_URL }, { ACTIONS_ID_TOKEN_REQUEST_TOKEN }])
      expect(await pendingError(read("github-actions", env))).toMatchObject({
        code: "usage",
        message: `${NAMED} needs ACTIONS_ID_TOKEN_REQUEST_URL and ACTIONS_ID_TOKEN_REQUEST_TOKEN, which are not set`,
      });
  });

  it.skipIf(ON_WINDOWS)("is the agent of SPIRE, which is asked for the audience at its socket", async () => {
    const bin = join(folder, "bin");
    mkdirSync(bin);
    const program = join(bin, "spire-agent");
    const answer =
      '[{"svids":[{"hint":"","svid":"\'$(printf %s "$*" | tr -d " :/." | tr -d "-")\'.b.c"}]},{"bundles":{}}]';
    writeFileSync(program, `#!/bin/sh\ncat <<END\n${answer.replaceAll("'", "")}\nEND\n`, { mode: 0o755 });
    vi.stubEnv("PATH", `${bin}${delimiter}${process.env["PATH"]}`);
    onTestFinished(() => void vi.unstubAllEnvs());
    const asked = "apifetchjwtaudiencehttpsasexamplepooloutputjson";
    for (const socket of ["unix:///run/spire.sock", "unix:/run/spire.sock", "/run/spire.sock"])
      expect(await read("spiffe", { SPIFFE_ENDPOINT_SOCKET: socket })).toBe(`${asked}socketPathrunspiresock.b.c`);
    expect(await read("spiffe")).toBe(`${asked}.b.c`);
    writeFileSync(program, "#!/bin/sh\necho '[]'\n", { mode: 0o755 });
    expect(await pendingError(read("spiffe"))).toMatchObject({
      code: "usage",
      message: `${NAMED}: spire-agent printed no JWT-SVID`,
    });
  });

  const KINDS =
    "must be one of file:PATH, env:NAME, exec:COMMAND, url:ADDRESS, github-actions, kubernetes[:PATH], gcp, azure, " +
    "spiffe[:PATH]: where the assertion is, never the assertion itself";

  it.for<[string, string]>([
    ["eyJhbGciOiJub25lIn0.s3cret.", KINDS],
    ["file:", "must be file:PATH"],
    ["file", "must be file:PATH"],
    ["env:", "must be env:NAME"],
    ["env", "must be env:NAME"],
    ["exec:", "must be exec:COMMAND"],
    ["url:", "must be url:ADDRESS"],
    ["gcp:x", "must be gcp"],
    ["gcp:", "must be gcp"],
    ["azure:x", "must be azure"],
    ["github-actions:x", "must be github-actions"],
    ["kubernetes:", "must be kubernetes[:PATH]"],
    ["spiffe:", "must be spiffe[:PATH]"],
    ["constructor", KINDS],
    ["xgcp", KINDS],
    ["-", KINDS],
    ["", KINDS],
  ])("is not %j, which no message repeats", ([source, rule]) => {
    const typed = { hint: "an assertion that was typed here can be read by other programs until it expires" };
    const error = { code: "usage", message: `${NAMED} ${rule}`, ...(rule === KINDS && typed) };
    expect(() => open(source)).toThrow(expect.objectContaining(error));
    expect(() => open(source)).not.toThrow("s3cret");
  });
});

describe("the tokens of a workload are stored apart", () => {
  it("by the subject of a text, whichever process writes it next", async () => {
    const [one, two] = await Promise.all([unsignedJwt({ iss: "i", sub: "1" }), unsignedJwt({ iss: "i", sub: "2" })]);
    const again = await unsignedJwt({ iss: "i", sub: "1", jti: "x" });
    const names = [one, two, again].map((text) => nameOf("env:TOKEN", { TOKEN: `${text}` }));
    expect(names[0]).toBe(names[2]);
    expect(names[0]).not.toBe(names[1]);
    expect(nameOf(`file:${file("named", one)}`)).toBe(names[0]);
  });

  it("keeps the variables of its credential from other programs", () => {
    const env = { TOKEN: "x", IDENTITY_ENDPOINT: "http://127.0.0.1", IDENTITY_HEADER: "x", OTHER: "y" };
    const job = { ACTIONS_ID_TOKEN_REQUEST_URL: "http://127.0.0.1", ACTIONS_ID_TOKEN_REQUEST_TOKEN: "x" };
    for (const source of ["env:TOKEN", "azure", "github-actions"]) {
      const own = { ...env, ...job };
      openSource(source, {}, { env: own, fetch, from: "--assertion" });
      expect(Object.keys(withoutSecretVariables(own, own)).filter((name) => name !== "OTHER")).toEqual(
        {
          "env:TOKEN": ["IDENTITY_ENDPOINT", "IDENTITY_HEADER", ...Object.keys(job)],
          azure: ["TOKEN", ...Object.keys(job)],
          "github-actions": Object.keys(env).slice(0, 3),
        }[source],
      );
    }
  });

  it("by the job of a runner, the identity at a cloud, the command or the address", () => {
    const job = { GITHUB_REPOSITORY: "o/r", GITHUB_RUN_ID: "1", GITHUB_JOB: "build" };
    const names = [
      nameOf("github-actions", job),
      nameOf("github-actions", { ...job, GITHUB_REPOSITORY: "o/other" }),
      nameOf("github-actions", { ...job, GITHUB_RUN_ID: "2" }),
      nameOf("github-actions", { ...job, GITHUB_JOB: "test" }),
      nameOf("azure"),
      nameOf("azure", { AZURE_CLIENT_ID: "id-1" }),
      nameOf("gcp"),
      nameOf("spiffe"),
      nameOf("exec:a"),
      nameOf("exec:b"),
      nameOf("url:http://127.0.0.1/a"),
    ];
    expect(names).toEqual([
      "github-actions o/r 1 build",
      "github-actions o/other 1 build",
      "github-actions o/r 2 build",
      "github-actions o/r 1 test",
      "azure ",
      "azure id-1",
      "gcp",
      "spiffe",
      "exec:a",
      "exec:b",
      "url:http://127.0.0.1/a",
    ]);
  });
});

it("is the same in a program, with the environment of its process", async ({ peer }) => {
  peer.routes["/computeMetadata/v1/instance/service-accounts/default/identity"] = {
    text: "a.b.c",
    headers: { "metadata-flavor": "Google" },
  };
  vi.stubEnv("GCE_METADATA_HOST", `127.0.0.1:${peer.port}`);
  onTestFinished(() => void vi.unstubAllEnvs());
  const { assertion, ...rest } = workloadFrom("gcp", { audience: "sts.example" });
  expect(rest).toEqual({ workload: "gcp", audience: "sts.example" });
  expect(await assertion(REQUEST)).toBe("a.b.c");
  expect(() => workloadFrom("somewhere")).toThrow("the source of the assertion must be one of file:PATH");
});
