import { describe, expect, it } from "vitest";
import { HttpRequest } from "../../src/http/http-message.js";
import {
  encode,
  type FetchClasses,
  isRefused,
  type StandardCase,
  streamOf,
  testStandard,
} from "../helpers/fetch-classes.js";

const URL_OF_TEST = "https://a.example/b?c#d";
const POST = { method: "POST", body: "text" };

const attributes = (request: Request) => ({
  method: request.method,
  url: request.url,
  redirect: request.redirect,
  headers: [...request.headers],
});

const DEFAULTS = {
  method: "GET",
  url: URL_OF_TEST,
  redirect: "follow",
  headers: [],
};
const GIVEN = { method: "POST", redirect: "error" };

// The facts of the web platform's tests, fetch/api/request.
describe("a request", () => {
  const made =
    (...args: unknown[]) =>
    ({ Request }: FetchClasses) =>
      attributes(new Request(...args));
  testStandard([
    ["has the defaults", made(URL_OF_TEST), DEFAULTS],
    ["is made of a URL", made(new URL(URL_OF_TEST)), DEFAULTS],
    ["has the options that it is given", made(URL_OF_TEST, GIVEN), { ...DEFAULTS, ...GIVEN }],
    [
      "has the constants of its interface",
      ({ Request }) => {
        const { destination, duplex, bodyUsed, body } = new Request(URL_OF_TEST);
        return [destination, duplex, bodyUsed, body, String(new Request(URL_OF_TEST))];
      },
      ["", "half", false, null, "[object Request]"],
    ],
    ...["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "X-Y", "pAtCh"].map(
      (method): StandardCase => [`takes the method ${method}`, made(URL_OF_TEST, { method }), { ...DEFAULTS, method }],
    ),
    [
      "has methods in upper case where they are common",
      made(URL_OF_TEST, { method: "head" }),
      { ...DEFAULTS, method: "HEAD" },
    ],
    ...["CONNECT", "trace", "TRACK", "a b", "", "X\r\nY"].map(
      (method): StandardCase => [`takes no method ${JSON.stringify(method)}`, made(URL_OF_TEST, { method }), TypeError],
    ),
    ...["/relative", "", "http://:not a URL", "https://user:word@a.example/", "https://user@a.example/"].map(
      (url): StandardCase => [`takes no address ${JSON.stringify(url)}`, ({ Request }) => new Request(url), TypeError],
    ),
    ...["https://a.example", "about:blank", "data:,a"].map(
      (url): StandardCase => [
        `takes the address ${JSON.stringify(url)}`,
        ({ Request }) => new Request(url).url,
        new URL(url).href,
      ],
    ),
    ["takes no headers that are null", ({ Request }) => new Request(URL_OF_TEST, { headers: null }), TypeError],
    ["is made with new only", ({ Request }) => (Request as unknown as () => void)(), TypeError],
    [
      "has the content-type of its body, unless its headers have one",
      ({ Request }) =>
        [POST, { ...POST, headers: { "Content-Type": "a/b" } }].map((init) =>
          new Request(URL_OF_TEST, init).headers.get("content-type"),
        ),
      ["text/plain;charset=UTF-8", "a/b"],
    ],
  ]);
});

it("says by the class of the runtime what no command asks for", () => {
  const { cache, credentials, integrity, keepalive, mode, referrer, referrerPolicy } = new Request(URL_OF_TEST);
  const expected = { cache, credentials, integrity, keepalive, mode, referrer, referrerPolicy };
  const request = new HttpRequest(URL_OF_TEST);
  expect(Object.fromEntries(Object.keys(expected).map((name) => [name, request[name as keyof HttpRequest]]))).toEqual(
    expected,
  );
});

describe("a copy of a request", () => {
  testStandard([
    [
      "has all that it has",
      async ({ Request }) => {
        const request = new Request(URL_OF_TEST, { ...GIVEN, headers: { a: "1" }, body: "text" });
        const copy = request.clone();
        copy.headers.set("a", "2");
        return [attributes(request), { ...attributes(copy), headers: [] }, await request.text(), await copy.text()];
      },
      [
        {
          ...DEFAULTS,
          ...GIVEN,
          headers: [
            ["a", "1"],
            ["content-type", "text/plain;charset=UTF-8"],
          ],
        },
        { ...DEFAULTS, ...GIVEN },
        "text",
        "text",
      ],
    ],
    [
      "has the parts of a stream, as the request has",
      async ({ Request }) => {
        const body = streamOf(encode("te"), encode("xt"));
        const request = new Request(URL_OF_TEST, { method: "POST", body, duplex: "half" });
        const copy = request.clone();
        return [await copy.text(), await request.text()];
      },
      ["text", "text"],
    ],
    [
      "is not made of a request that was read",
      async ({ Request }) => {
        const [read, locked] = [new Request(URL_OF_TEST, POST), new Request(URL_OF_TEST, POST)];
        await read.blob();
        locked.body?.getReader();
        return [await isRefused(() => read.clone()), await isRefused(() => locked.clone())];
      },
      [true, true],
    ],
  ]);

  it("is made to another address", async () => {
    const request = new HttpRequest(URL_OF_TEST, { ...POST, headers: { a: "1" }, redirect: "manual" });
    const moved = request.movedTo("https://b.example/");
    expect([attributes(moved), await moved.text(), await request.text()]).toEqual([
      { ...attributes(request), url: "https://b.example/" },
      "text",
      "text",
    ]);
  });

  it("is made as an object of the global class", async () => {
    const request = new HttpRequest(URL_OF_TEST, { ...POST, headers: { a: "1" }, redirect: "manual" });
    const copy = request.asRequest();
    expect(copy).toBeInstanceOf(Request);
    expect([attributes(copy), await copy.text()]).toEqual([attributes(request), "text"]);
    const streamed = new HttpRequest(URL_OF_TEST, { method: "POST", body: streamOf(encode("text")), duplex: "half" });
    expect(await streamed.asRequest().text()).toBe("text");
  });
});

describe("the signal of a request", () => {
  const signals =
    (run: (classes: FetchClasses, controller: AbortController) => Request[]) => (classes: FetchClasses) => {
      const controller = new AbortController();
      const requests = run(classes, controller);
      let events = 0;
      for (const { signal } of requests) signal.addEventListener("abort", () => events++);
      const before = requests.map(({ signal }) => signal.aborted);
      controller.abort("reason");
      return [before, requests.map(({ signal }) => signal.reason), events];
    };
  testStandard([
    ["is one that never fires", signals(({ Request }) => [new Request(URL_OF_TEST)]), [[false], [undefined], 0]],
    [
      "fires with the given one",
      signals(({ Request }, { signal }) => [new Request(URL_OF_TEST, { signal })]),
      [[false], ["reason"], 1],
    ],
    [
      "fires in a copy, and in what has the options of a request",
      signals(({ Request }, { signal }) => {
        const request = new Request(URL_OF_TEST, { signal });
        return [request.clone(), new Request(URL_OF_TEST, request)];
      }),
      [[false, false], ["reason", "reason"], 2],
    ],
    [
      "has fired where the given one has",
      ({ Request }) => new Request(URL_OF_TEST, { signal: AbortSignal.abort("reason") }).signal.reason,
      "reason",
    ],
    [
      "is the same each time",
      ({ Request }) => {
        const request = new Request(URL_OF_TEST);
        const { signal } = request;
        return request.signal === signal;
      },
      true,
    ],
  ]);
});
