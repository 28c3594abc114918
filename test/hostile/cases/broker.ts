import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { createBroker } from "../../../src/broker/broker.js";
import { listen } from "../../../src/broker/listen.js";
import type { BrokerGrant } from "../../../src/broker/policy.js";
import { AgentClient } from "../../../src/oauth/agent.js";
import { Secret } from "../../../src/redact.js";
import { fileStore } from "../../../src/store/file/file.js";
import type { Reply } from "../../helpers/peer.js";
import { type HostileCase, unless } from "../case.js";
import type { Kit } from "../kit/kit.js";

/** What two clients of a broker send, each with a grant at the server of the case, over TCP. */
interface Clients {
  /** As the client `a`, which has the grant `one`. */
  send(path: string, init?: Sent): Promise<Answer>;
  /** As the client `b`, which has the grant `two`, for another server. */
  other(path: string, init?: Sent): Promise<Answer>;
  /** What comes before the secret of the address of `a`. */
  origin: string;
  /** The requests that the server got from the broker. */
  seen(): Kit["mcp"]["requests"];
}

interface Sent {
  method?: string;
  headers?: Record<string, string | string[]>;
  body?: string;
}

interface Answer {
  status: number | undefined;
  /** The whole answer, but for the time. */
  text: string;
}

async function withBroker<T>(
  kit: Kit,
  grant: Partial<BrokerGrant>,
  work: (clients: Clients) => Promise<T>,
): Promise<T> {
  const server = kit.mcp.url;
  const second = `${kit.mcp.origin}/second`;
  await kit.saveLogin();
  await kit.saveLogin({ server: second, resource: second }, { accessToken: new Secret("a-token-of-another-login") });
  const policy = {
    grants: { one: { server, ...grant }, two: { server: second } },
    clients: {
      a: { listen: "127.0.0.1:0", grants: ["one"] },
      b: { listen: "127.0.0.1:0", grants: ["two"] },
    },
  };
  const { listeners, close } = await listen(createBroker(new AgentClient({ store: fileStore(kit.home) }), policy));
  const before = kit.mcp.requests.length;
  const [a = "", b = ""] = listeners.map(({ url }) => url);
  try {
    return await work({
      send: (path, init) => exchange(`${a}${path}`, init),
      other: (path, init) => exchange(`${b}${path}`, init),
      origin: new URL(a).origin,
      seen: () => kit.mcp.requests.slice(before),
    });
  } finally {
    await close(0);
  }
}

/** Not by `fetch`, which reads the path and the headers in its own way. */
async function exchange(url: string, { method = "GET", headers = {}, body }: Sent = {}): Promise<Answer> {
  const { hostname, port, origin } = new URL(url);
  const sent = httpRequest({ host: hostname, port, path: url.slice(origin.length), method, headers });
  sent.end(body);
  const [message] = await once(sent, "response");
  const { date: _, ...received } = { ...message.headers, ...message.trailers };
  let text = `${message.statusCode} ${message.statusMessage} ${JSON.stringify(received)} `;
  for await (const part of message) text += part;
  return { status: message.statusCode, text };
}

/** A case whose work returns the conditions that have to hold. */
function brokerCase(
  id: string,
  input: string,
  result: string,
  grant: Partial<BrokerGrant>,
  work: (clients: Clients, kit: Kit) => Promise<Readonly<Record<string, boolean>>>,
): HostileCase {
  return {
    id,
    input: `broker: ${input}`,
    result,
    outcome: "ok",
    async call(kit) {
      const problems = unless(await withBroker(kit, grant, (clients) => work(clients, kit)));
      if (problems.length > 0) throw new Error(problems.join("\n"));
    },
  };
}

const call = (name: string) => JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name } });
const UTF_7 = call("read_+ACIALAAi-name+ACIAOgAi-drop");
const FORGED = {
  "X-HTTP-Method-Override": "DELETE",
  "X-HTTP-Method": "DELETE",
  "X-Method-Override": "DELETE",
  "X-Original-URL": "/admin",
  "X-Original-Method": "DELETE",
  "X-Original-URI": "/admin",
  "X-Rewrite-URL": "/admin",
  "X-Forwarded-For": "127.0.0.1",
  "X-Forwarded-Host": "evil.example",
  "X-Forwarded-Proto": "http",
  "X-Forwarded-Prefix": "/admin",
  "X-Forwarded-User": "root",
  X_Forwarded_User: "root",
  "X-Remote-User": "root",
  "X-Real-IP": "127.0.0.1",
  "X-Client-Cert": "root",
  "X-Amzn-Oidc-Identity": "root",
  Forwarded: "for=127.0.0.1",
  Cookie: "session=root",
  Via: "1.1 proxy",
  Range: "bytes=5-",
  "If-Range": '"a"',
  "Content-Location": "/admin",
  "Sec-Fetch-Site": "same-origin",
};
const NEEDED = {
  accept: "application/json, text/event-stream",
  "accept-language": "de",
  "last-event-id": "7",
  "mcp-session-id": "s",
  "mcp-protocol-version": "2025-11-25",
  "if-none-match": '"a"',
  "if-modified-since": "Sat, 28 Nov 2026 00:00:00 GMT",
  "user-agent": "agent/1",
  "idempotency-key": "k",
  traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
};

const unicode = (text: string) => text.replace(/./g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);
const percent = (text: string) => text.replace(/./g, (one) => `%${one.charCodeAt(0).toString(16)}`);
const entities = (text: string) => text.replace(/./g, (one) => `&#${one.charCodeAt(0)};`);
/** What of an answer is left of a token, in whatever spelling. */
const readBack = (text: string) =>
  text
    .replace(/\\u00(..)|%(?:25)*(..)/g, (_, json, url) => String.fromCharCode(Number.parseInt(json ?? url, 16)))
    .replace(/&(?:amp;)?#(\d+);/g, (_, code) => String.fromCharCode(Number(code)));

const inParts = (text: string): Reply => ({
  raw: (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    const step = (at: number) => {
      if (at >= text.length) return void response.end("\n\n");
      response.write(text.slice(at, at + 7));
      setImmediate(step, at + 7);
    };
    step(0);
  },
});

/** Programs that use a broker, and servers that answer it: most by the library, since the broker is no command that ends. */
export const broker: readonly HostileCase[] = [
  brokerCase(
    "X1",
    "a call of a hidden tool in a charset that the server decodes",
    "415; nothing is sent",
    { tools: ["read_*"] },
    async ({ send, seen }) => {
      const types = ["charset=utf-7", "charset=utf-16le", "charset=utf-8; charset=utf-7"].map(
        (one) => `application/json; ${one}`,
      );
      const answers = await Promise.all(
        [...types, "text/plain", "application/x-www-form-urlencoded"].map((type) =>
          send("/one", { method: "POST", headers: { "content-type": type }, body: UTF_7 }),
        ),
      );
      return { refused: answers.every(({ status }) => status === 415), "nothing sent": seen().length === 0 };
    },
  ),
  brokerCase(
    "X2a",
    "24 headers that servers read as a method, a path, an address or a user",
    "none is passed on; those that MCP needs are",
    {},
    async ({ send, seen }) => {
      await send("/one", { headers: { ...FORGED, ...NEEDED } });
      const { headers = {} } = seen()[0] ?? {};
      const passed = Object.keys(FORGED).filter((name) => headers[name.toLowerCase()] !== undefined);
      const lost = Object.entries(NEEDED).filter(([name, value]) => headers[name] !== value);
      return { [`passed: ${passed}`]: passed.length === 0, [`lost: ${lost}`]: lost.length === 0 };
    },
  ),
  brokerCase(
    "X2b",
    "a header that the grant does not name, beside one that it names",
    "the named one alone is passed on",
    { headers: ["X-Api-Version"] },
    async ({ send, seen }) => {
      await send("/one", { headers: { "x-api-version": "2", "x-api-user": "root" } });
      const { headers = {} } = seen()[0] ?? {};
      return { named: headers["x-api-version"] === "2", other: headers["x-api-user"] === undefined };
    },
  ),
  brokerCase(
    "X3a",
    "a server that returns the token in JSON, percent signs and entities, in headers, bodies and events in parts",
    "masked in each spelling",
    {},
    async ({ send }, { mcp, canaries }) => {
      const token = canaries.get("access-token");
      const left: string[] = [];
      const spelled = [token, unicode(token), percent(token), percent(token).replaceAll("%", "%25"), entities(token)];
      for (const text of [...spelled, entities(token).replaceAll("&", "&amp;"), unicode(entities(token))])
        for (const reply of [
          { status: 200, headers: { "x-echo": `a ${text} b` }, text: `{"you sent":"${text}"}` },
          inParts(`data: {"you sent":"${text}"}`),
        ]) {
          mcp.routes["/mcp"] = reply;
          const answer = await send("/one");
          if (!answer.text.includes("***") || readBack(readBack(answer.text)).includes(token)) left.push(answer.text);
        }
      return { [`masked: ${left.join("\n").slice(0, 500)}`]: left.length === 0 };
    },
  ),
  brokerCase(
    "X3b",
    "a server that shows one client the token that it got from another one",
    "masked: no client reads a token of the broker",
    {},
    async ({ send, other }, { mcp, canaries }) => {
      const token = canaries.get("access-token");
      await send("/one");
      mcp.routes["/second"] = { status: 200, text: `the last request had ${token}` };
      const answer = await other("/two");
      return { masked: !answer.text.includes(token) && answer.text.includes("***") };
    },
  ),
  brokerCase(
    "X4a",
    "a query that gives a name again that the server's address has",
    "400; nothing is sent, in whatever spelling of the name",
    {},
    async (_clients, kit) => {
      const server = `${kit.mcp.url}?api_key=k&user=u`;
      await kit.saveLogin({ server });
      return withBroker(kit, { server }, async ({ send, seen }) => {
        const names = [
          "api_key",
          "API_KEY",
          "api%5Fkey",
          "api%255Fkey",
          "api.key",
          "api-key",
          "%EF%BD%95ser",
          "user[]",
          "user%5B0%5D",
        ];
        const forms = [
          ...names.map((name) => `${name}=x`),
          "a=1;user=x",
          "user",
          "a&=1&user=",
          "user%00=x",
          "%20user=x",
        ];
        const answers = await Promise.all(forms.map(async (form) => [form, (await send(`/one?${form}`)).status]));
        const passed = answers.filter(([, status]) => status !== 400);
        const before = seen().length;
        await send("/one?q=user&users=1");
        return {
          [`refused: ${passed}`]: passed.length === 0,
          "nothing sent": before === 0,
          "others pass": seen()[0]?.url === "/mcp?api_key=k&user=u&q=user&users=1",
        };
      });
    },
  ),
  brokerCase(
    "X4b",
    "paths that compatible characters, parameters and blanks turn into dots and slashes",
    "400; nothing is sent",
    {},
    async ({ send, seen }) => {
      const segments = [
        ...["．．", "‥", "．.", "a／..", "a＼..", "℀", "..；x", "..\u037ex", "％2e％2e", "．\u2025"],
        ...["..\u200b", ".\u00ad.", "..\ufe0f"],
      ].map((text) => text.replace(/[^\x21-\x7e]/g, encodeURIComponent));
      const ascii = [
        "..;",
        "..;x=1",
        "..%3b",
        ";..",
        "a;..",
        "a;x=%2f..%2fadmin",
        "a;%5c",
        "..%20",
        "%20..",
        "..%20.",
        "...",
      ];
      const all = [...segments, ...ascii];
      const answers = await Promise.all(all.map(async (one) => [one, (await send(`/one/${one}/admin`)).status]));
      const passed = answers.filter(([, status]) => status !== 400);
      const before = seen().length;
      await send(`/one/${encodeURIComponent("Größe ½ é")};v=1/a.b`);
      return {
        [`refused: ${passed}`]: passed.length === 0,
        "nothing sent": before === 0,
        "others pass": seen().length === 1,
      };
    },
  ),
  brokerCase(
    "X4c",
    "an unknown name, and an address without its secret, in every form",
    "the same 404, byte by byte",
    {},
    async ({ send, other, origin }) => {
      const wrong = `${origin}/${"0".repeat(32)}`;
      const post = { method: "POST", headers: { "content-type": "application/json" }, body: call("a") };
      const answers = await Promise.all([
        ...["/nothing", "/two", "/nothing/..;/x", "/nothing?a=1", "/", "//x", "/constructor"].map((path) => send(path)),
        ...["/one", "/one/..;/x", "/", "//evil.example/", "/one#a"].map((path) => exchange(`${wrong}${path}`)),
        other("/one"),
        send("/nothing", post),
        exchange(`${wrong}/one`, post),
        exchange(`${origin}/`),
        exchange(`${wrong}/one`, { headers: { connection: "upgrade", upgrade: "websocket" } }),
      ]);
      const texts = new Set(
        answers.map(({ text }) => text.replace(/"connection":"[\w-]+",?|"keep-alive":"[^"]*",?/g, "")),
      );
      return { [`one answer, not ${[...texts].join(" | ")}`]: texts.size === 1 && answers[0]?.status === 404 };
    },
  ),
  {
    id: "X6",
    input: "broker: clients that connect while it is restarted, at a socket that its parent holds",
    result: "each is answered: those that wait, by the next broker",
    outcome: "ok",
    seconds: 60,
    impossible: process.platform === "linux" ? undefined : "only Linux reports the path of a socket that is passed",
    async drive(kit) {
      const socketPath = join(kit.folder, "a.sock");
      const run = kit.start(["broker", "--listen", "systemd:agent", "--grant", `mcp=${kit.mcp.url}`], {
        wrapper: [
          process.execPath,
          fileURLToPath(new URL("../../broker/socket-launcher.mjs", import.meta.url)),
          socketPath,
          "2",
        ],
      });
      const stop = (nth: number) => process.kill(Number(run.stderr().match(/(?<=^pid )\d+$/gm)?.[nth]), "SIGTERM");
      await kit.untilPrinted(run, /broker ready/);
      const answers: string[] = [];
      let isOver = false;
      const clients = Array.from({ length: 8 }, async () => {
        while (!isOver) answers.push(await statusAt(socketPath));
      });
      const untilMore = async () => {
        for (const before = answers.length; answers.length < before + 50; ) await sleep(5);
      };
      await untilMore();
      stop(0);
      await kit.untilPrinted(run, /broker ready.*broker ready/s);
      await untilMore();
      isOver = true;
      await Promise.all(clients);
      stop(1);
      const lost = answers.filter((answer) => answer !== "404");
      if (lost.length > 0) throw new Error(`not answered: ${lost}`);
      return run.ended;
    },
  },
];

/** The status of an answer over a connection of its own, or why there is none. */
async function statusAt(socketPath: string): Promise<string> {
  const sent = httpRequest({ socketPath, path: "/nothing", host: "localhost", agent: false });
  sent.end();
  try {
    const [message] = await once(sent, "response");
    message.resume();
    return String(message.statusCode);
  } catch (error) {
    return String(error);
  }
}
