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
    ["is made of null options", made(URL_OF_TEST, null), DEFAULTS],
    ["has the options that it is given", made(URL_OF_TEST, GIVEN), { ...DEFAULTS, ...GIVEN }],
    [
      "has the options of the request that it is made of",
      ({ Request }) => attributes(new Request(new Request(URL_OF_TEST, { ...GIVEN, headers: { a: "1" } }))),
      { ...DEFAULTS, ...GIVEN, headers: [["a", "1"]] },
      [24],
    ],
    [
      "has the options that it is given in place of those of another request",
      ({ Request }) => attributes(new Request(new Request(URL_OF_TEST, { headers: { a: "1" } }), GIVEN)),
      { ...DEFAULTS, ...GIVEN, headers: [["a", "1"]] },
    ],
    [
      "has the options of a request that it is given as options",
      ({ Request }) => attributes(new Request("https://b.example/", new Request(URL_OF_TEST, GIVEN))),
      { ...DEFAULTS, ...GIVEN, url: "https://b.example/" },
    ],
    [
      "has the constants of its interface",
      ({ Request }) => {
        const request = new Request(URL_OF_TEST);
        const { destination, duplex, bodyUsed, body } = request;
        return [destination, duplex, bodyUsed, body, String(request)];
      },
      ["", "half", false, null, "[object Request]"],
    ],
    [
      "has attributes that cannot be set",
      ({ Request }) => {
        const request = new Request(URL_OF_TEST) as unknown as Record<string, unknown>;
        return Object.keys(DEFAULTS).map((name) => {
          const before = request[name];
          return Reflect.set(request, name, "other") || request[name] !== before || !(name in Request.prototype);
        });
      },
      Object.keys(DEFAULTS).map(() => false),
    ],
    ["has no member of its own", ({ Request }) => Object.keys(new Request(URL_OF_TEST, POST)), []],
    [
      "has methods in upper case where they are common",
      made(URL_OF_TEST, { method: "head" }),
      { ...DEFAULTS, method: "HEAD" },
    ],
    ["has other methods as they are", made(URL_OF_TEST, { method: "pAtCh" }), { ...DEFAULTS, method: "pAtCh" }],
  ]);

  const values: Record<string, [values: unknown[], never: unknown[]]> = {
    redirect: [["follow", "error", "manual"], []],
    method: [
      ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "X-Y"],
      ["CONNECT", "trace", "TRACK", "a b", "", "X\r\nY"],
    ],
    duplex: [["half"], ["full", ""]],
  };
  testStandard(
    Object.entries(values).flatMap(([name, [valid, never]]) => [
      ...valid.map(
        (value): StandardCase => [
          `takes the ${name} ${JSON.stringify(value)}`,
          ({ Request }) => (new Request(URL_OF_TEST, { [name]: value }) as unknown as Record<string, unknown>)[name],
          value,
        ],
      ),
      ...valid.slice(0, -1).map(
        (value): StandardCase => [
          `takes the ${name} ${JSON.stringify(value)} in place of another`,
          ({ Request }) => {
            const from = new Request(URL_OF_TEST, { [name]: valid.at(-1) });
            return (new Request(from, { [name]: value }) as unknown as Record<string, unknown>)[name];
          },
          value,
        ],
      ),
      ...never.map(
        (value): StandardCase => [
          `takes no ${name} ${JSON.stringify(value)}`,
          ({ Request }) => new Request(URL_OF_TEST, { [name]: value }),
          TypeError,
        ],
      ),
    ]),
  );

  testStandard([
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
    ["takes no options that are no object", ({ Request }) => new Request(URL_OF_TEST, 1), TypeError],
    ["takes no headers that are null", ({ Request }) => new Request(URL_OF_TEST, { headers: null }), TypeError],
    ["takes no body with GET", made(URL_OF_TEST, { body: "text" }), TypeError],
    ["takes no empty body with HEAD", made(URL_OF_TEST, { body: "", method: "HEAD" }), TypeError],
    ["is made with new only", ({ Request }) => (Request as unknown as () => void)(), TypeError],
  ]);
});

it("says by the class of the runtime what no command asks for", () => {
  const given = {
    cache: "no-cache",
    credentials: "include",
    integrity: "sha256-x",
    keepalive: true,
    mode: "same-origin",
    referrer: "https://r.example/a",
    referrerPolicy: "origin",
  } as const;
  const request = new HttpRequest(URL_OF_TEST, given);
  expect(Object.fromEntries(Object.keys(given).map((name) => [name, request[name as keyof HttpRequest]]))).toEqual(
    given,
  );
});

describe("the body of a request", () => {
  const bodies = { text: "text", bytes: new Uint8Array(3), blob: new Blob([]), nothing: null };
  testStandard([
    ...Object.entries(bodies).flatMap(([name, body]): StandardCase[] => [
      [
        `may be ${name} without duplex`,
        ({ Request }) => new Request(URL_OF_TEST, { method: "POST", body }).duplex,
        "half",
      ],
      [
        `may be ${name} with duplex`,
        ({ Request }) => new Request(URL_OF_TEST, { method: "POST", body, duplex: "half" }).duplex,
        "half",
      ],
      [
        `may not be ${name} with full duplex`,
        ({ Request }) => new Request(URL_OF_TEST, { method: "POST", body, duplex: "full" }),
        TypeError,
      ],
    ]),
    [
      "that is a stream is that stream, and needs duplex",
      async ({ Request }) => {
        const body = streamOf();
        return [
          await isRefused(() => new Request(URL_OF_TEST, { method: "POST", body })),
          new Request(URL_OF_TEST, { method: "POST", body, duplex: "half" }).body === body,
          new Request(new Request(URL_OF_TEST, { method: "POST", body: streamOf(), duplex: "half" })).method,
        ];
      },
      [true, true, "POST"],
    ],
    [
      "may not be a stream that is or was read",
      async ({ Request }) => {
        const [locked, reading, read] = [streamOf(encode("a")), streamOf(encode("a")), streamOf(encode("a"))];
        locked.getReader();
        void reading.getReader().read();
        const reader = read.getReader();
        await reader.read();
        reader.releaseLock();
        return Promise.all(
          [locked, reading, read].map((body) =>
            isRefused(() => new Request(URL_OF_TEST, { method: "POST", body, duplex: "half" })),
          ),
        );
      },
      [true, true, true],
    ],
    [
      "is moved to a request that is made of this one",
      async ({ Request }) => {
        const all: unknown[] = [];
        for (const init of [POST, { method: "POST", body: streamOf(encode("text")), duplex: "half" }]) {
          for (const isOpen of [false, true]) {
            const from = new Request(URL_OF_TEST, init);
            const body = isOpen ? from.body : undefined;
            const request = new Request(from);
            all.push([
              from.bodyUsed,
              from.body?.locked,
              body === undefined || body === from.body,
              await isRefused(() => from.text()),
              await isRefused(() => from.clone()),
              await isRefused(() => new Request(from)),
              request.bodyUsed,
              await request.text(),
            ]);
            if (init !== POST) break;
          }
        }
        return all;
      },
      Array(3).fill([true, true, true, true, true, true, false, "text"]),
    ],
    [
      "stays where a request that is made of this one has another",
      async ({ Request }) => {
        const from = new Request(URL_OF_TEST, POST);
        const texts = [await new Request(from, { body: "other" }).text(), from.bodyUsed, await from.text()];
        return [...texts, await new Request(from, { body: "again" }).text()];
      },
      ["other", false, "text", "again"],
    ],
    [
      "stays where the other request cannot be made",
      async ({ Request }) => {
        const from = new Request(URL_OF_TEST, POST);
        return [
          await isRefused(() => new Request(from, { method: "GET" })),
          await isRefused(() => new Request(from, { method: "CONNECT" })),
          await isRefused(() => new Request(from, { headers: { "a b": "1" } })),
          from.bodyUsed,
        ];
      },
      [true, true, true, false],
    ],
    [
      "that is null is that of the request that it is made of",
      ({ Request }) => new Request(new Request(URL_OF_TEST, POST), { body: null }).text(),
      "text",
    ],
    [
      "is read by a stream of the request that is given as options",
      async ({ Request }) => {
        const options = new Request(URL_OF_TEST, POST);
        const request = new Request("https://b.example/", options);
        return [await request.text(), request.headers.get("content-type"), options.bodyUsed];
      },
      ["text", "text/plain;charset=UTF-8", true],
    ],
    [
      "is not used where there is none",
      async ({ Request }) => {
        const request = new Request(URL_OF_TEST, { method: "POST" });
        return [await request.text(), request.bodyUsed, request.clone().body, new Request(request).bodyUsed];
      },
      ["", false, null, false],
    ],
  ]);
});

describe("the content-type of a request", () => {
  const type =
    (init: object, more?: object) =>
    ({ Request }: FetchClasses) =>
      new Request(new Request(URL_OF_TEST, init), more).headers.get("content-type");
  testStandard([
    ["is that of the body", type(POST), "text/plain;charset=UTF-8"],
    ["is that of the headers", type({ ...POST, headers: { "Content-Type": "a/b" } }), "a/b"],
    ["is that of the other request", type({ headers: { "content-type": "a/b" } }), "a/b"],
    [
      "is that of the other request, not of a new body",
      type(POST, { body: new URLSearchParams() }),
      "text/plain;charset=UTF-8",
    ],
    ["is none where new headers have none", type({ headers: { "content-type": "a/b" } }, { headers: {} }), null],
    [
      "is none in a copy of a request whose type was deleted",
      ({ Request }) => {
        const request = new Request(URL_OF_TEST, POST);
        request.headers.delete("content-type");
        return [request.clone().headers.get("content-type"), new Request(request).headers.get("content-type")];
      },
      [null, null],
    ],
  ]);
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

describe("the body of a request that another one is made of", () => {
  async function* parts() {
    yield encode("te");
    yield encode("xt");
  }
  const sources: [string, () => unknown, string][] = [
    ["text", () => "text", "text"],
    ["bytes", () => encode("text"), "text"],
    ["a blob", () => new Blob(["te", "xt"]), "text"],
    ["a stream", () => streamOf(encode("te"), encode("xt")), "text"],
    ["the parts of an iteration", parts, "text"],
    ["nothing", () => null, ""],
  ];
  testStandard(
    sources.flatMap(([name, bodyOf, text]) =>
      [false, true].map((isLooked): StandardCase => {
        const isUsed = text !== "";
        return [
          `is passed on, and cannot be read any more: ${name}${isLooked ? " whose stream was looked at" : ""}`,
          async ({ Request }) => {
            const first = new Request(URL_OF_TEST, { method: "POST", body: bodyOf(), duplex: "half" });
            if (isLooked) first.body?.constructor;
            const second = new Request(first);
            const used = [first.bodyUsed, await isRefused(() => new Request(first)), second.bodyUsed];
            return [...used, await second.text(), second.bodyUsed];
          },
          [isUsed, isUsed, false, text, isUsed],
        ];
      }),
    ),
  );
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
      "fires in all that is made of a request",
      signals(({ Request }, { signal }) => {
        const request = new Request(URL_OF_TEST, { signal });
        return [request.clone(), new Request(request), new Request(request, {}), new Request(URL_OF_TEST, request)];
      }),
      [[false, false, false, false], Array(4).fill("reason"), 4],
    ],
    [
      "does not fire where it is null or another",
      signals(({ Request }, { signal }) => {
        const request = new Request(URL_OF_TEST, { signal });
        const other = new AbortController();
        return [new Request(request, { signal: null }), new Request(request, { signal: other.signal })];
      }),
      [[false, false], [undefined, undefined], 0],
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
    ["is nothing else", ({ Request }) => new Request(URL_OF_TEST, { signal: {} }), TypeError],
  ]);
});
