import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { it as base, describe, expect, onTestFinished, vi } from "vitest";
import { workloadFrom } from "../../src/node/index.js";
import { type AssertionSourceOptions, openSource } from "../../src/profile/assertion-sources.js";
import { unsignedJwt } from "../helpers/client-keys.js";
import { temporaryFolder } from "../helpers/folder.js";
import { endless, Peer, type Reply, type Seen, silence } from "../helpers/peer.js";
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
    for (const [name, value] of Object.entries(headers)) expect(peer.requests[0]?.headers[name]).toBe(value);
  });

  it("that redirects is not followed", async ({ peer }) => {
    peer.routes[path] = { status: 302, headers: { location: `${peer.origin}/elsewhere` } };
    await expect(read(sourceOf(kind, peer), envOf(peer))).rejects.toMatchObject({
      code: "redirect_refused",
      class: "refused",
      message: expect.stringContaining("which is not followed"),
    });
    expect(peer.to("/elsewhere")).toEqual([]);
  });

  it("that refuses is quoted, without the secret of the request and without control characters", async ({ peer }) => {
    peer.routes[path] = ({ headers }) => ({
      status: 400,
      text: `no identity\u001b[31m ${headers.authorization ?? headers["x-identity-header"] ?? ""}`,
    });
    const error = await read(sourceOf(kind, peer), envOf(peer)).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: "http_error",
      status: 400,
      message: expect.stringMatching(/: "no identity\\\S*31m/),
    });
    expect(String(error)).not.toMatch(/runner-secret-1|app-secret-1/);
    expect(String(error)).not.toContain("\u001b");
  });

  it("that answers with 1 GB, or with something else, is refused without a word of it", async ({ peer }) => {
    peer.routes[path] = { headers: { "content-length": String(2 ** 30) }, text: "x" };
    await expect(read(sourceOf(kind, peer), envOf(peer))).rejects.toMatchObject({ code: "body_too_large" });
    if (kind === "url") return;
    peer.routes[path] = { text: '{"token":"s3cret"}' };
    const error = await read(sourceOf(kind, peer), envOf(peer)).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "bad_token_answer", class: "refused" });
    expect(String(error)).not.toContain("s3cret");
  });
});

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
  await expect(waiting).rejects.toMatchObject({ code: "aborted" });
});

it("reads no more than 64 KiB of an answer without an end", async ({ peer }) => {
  peer.routes["/here"] = endless("HTTP/1.1 200 OK\r\n\r\n", "x".repeat(16_384), 1);
  await expect(read(`url:${peer.origin}/here`)).rejects.toMatchObject({ code: "body_too_large" });
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
    await expect(read(source, env)).rejects.toMatchObject({
      code: "usage",
      message: expect.stringContaining("must be https, or http to this machine or its metadata server"),
    });
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
    const headers = ["Authorization: Bearer env:TOKEN", "X-Api-Key: env:TOKEN", "X-Plain: a b"];
    await read(`url:${peer.origin}/here`, { TOKEN: "header-secret-1" }, { headers });
    expect(peer.requests[0]?.headers).toMatchObject({
      authorization: "Bearer header-secret-1",
      "x-api-key": "header-secret-1",
      "x-plain": "a b",
    });
  });

  it.for<[string, RegExp]>([
    ["Authorization: Bearer s3cret", /"Authorization".*may hold a secret: name it with env:NAME/],
    ["X-Access-Token: s3cret", /may hold a secret/],
    ["s3cret", /must be "Name: value"/],
    ["X-Plain: s3cret\u0000", /a character that is not allowed/],
  ])("%j is refused, and not repeated", async ([header, message]) => {
    const make = () => open("url:http://127.0.0.1/", {}, { headers: [header] });
    expect(make).toThrow(message);
    expect(make).not.toThrow("s3cret");
  });

  it("goes with an address alone", () => {
    expect(() => open("gcp", {}, { headers: ["X: y"] })).toThrow("goes with url:ADDRESS alone");
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
    await expect(read("kubernetes")).rejects.toMatchObject({
      message: expect.stringContaining("/var/run/secrets/agentauth/token"),
      hint: expect.stringContaining("serviceAccountToken"),
    });
  });

  it("outside of a job says which permission is missing", async () => {
    await expect(read("github-actions")).rejects.toMatchObject({ hint: expect.stringContaining("id-token: write") });
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
    expect(await read("spiffe", { SPIFFE_ENDPOINT_SOCKET: "unix:///run/spire.sock" })).toBe(
      "apifetchjwtaudiencehttpsasexamplepooloutputjsonsocketPathrunspiresock.b.c",
    );
    writeFileSync(program, "#!/bin/sh\necho '[]'\n", { mode: 0o755 });
    await expect(read("spiffe")).rejects.toMatchObject({ message: expect.stringContaining("printed no JWT-SVID") });
  });

  it.for<[string]>([
    ["eyJhbGciOiJub25lIn0.s3cret."],
    ["file:"],
    ["file"],
    ["env:"],
    ["exec:"],
    ["url:"],
    ["gcp:x"],
    ["gcp:"],
    ["kubernetes:"],
    ["constructor"],
    ["-"],
    [""],
  ])("is not %j, which no message repeats", ([source]) => {
    expect(() => open(source)).toThrow(expect.objectContaining({ code: "usage" }));
    expect(() => open(source)).not.toThrow("s3cret");
  });
});

describe("the tokens of a workload are stored apart", () => {
  it("by the subject of a text, whoever writes it next", async () => {
    const [one, two] = await Promise.all([unsignedJwt({ iss: "i", sub: "1" }), unsignedJwt({ iss: "i", sub: "2" })]);
    const again = await unsignedJwt({ iss: "i", sub: "1", jti: "x" });
    const names = [one, two, again].map((text) => nameOf("env:TOKEN", { TOKEN: `${text}` }));
    expect(names[0]).toBe(names[2]);
    expect(names[0]).not.toBe(names[1]);
    expect(nameOf(`file:${file("named", one)}`)).toBe(names[0]);
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
    expect(new Set(names).size).toBe(names.length);
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
