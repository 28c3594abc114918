import { describe, expect, it, vi } from "vitest";
import { discardBody } from "../../src/http/buffered-response.js";
import { HttpResponse } from "../../src/http/http-message.js";
import {
  decode,
  encode,
  type FetchClasses,
  isRefused,
  type StandardCase,
  streamOf,
  testStandard,
} from "../helpers/fetch-classes.js";

const attributes = ({ type, url, redirected, status, ok, statusText, headers }: Response) => ({
  ...{ type, url, redirected, status, ok, statusText },
  headers: [...headers],
});

const DEFAULTS = { type: "default", url: "", redirected: false, status: 200, ok: true, statusText: "", headers: [] };

// The facts of the web platform's tests, fetch/api/response.
describe("a response", () => {
  const made =
    (...args: unknown[]) =>
    ({ Response }: FetchClasses) =>
      attributes(new Response(...args));
  testStandard([
    ["has the defaults", made(), DEFAULTS],
    ["is made of null options", made(null, null), DEFAULTS],
    [
      "has what it is given",
      made(null, { status: 404, statusText: "a\tü", headers: { a: "1" } }),
      {
        ...DEFAULTS,
        status: 404,
        ok: false,
        statusText: "a\tü",
        headers: [["a", "1"]],
      },
    ],
    ...[200, 204, 299, 300, 404, 599, "201", 200.9].map(
      (status): StandardCase => [
        `takes the status ${status}`,
        ({ Response }) => new Response(null, { status }).status,
        Math.trunc(Number(status)),
      ],
    ),
    ...[0, 100, 101, 199, 600, 1000, -1, Number.NaN, null, "OK"].map(
      (status): StandardCase => [`takes no status ${status}`, made(null, { status }), RangeError],
    ),
    ...["a\nb", "\u001b[31m", "€", "\0"].map(
      (statusText): StandardCase => [
        `takes no status text ${JSON.stringify(statusText)}`,
        made(null, { statusText }),
        TypeError,
      ],
    ),
    ...[204, 205, 304].flatMap((status): StandardCase[] => [
      [`has no body with the status ${status}`, made("", { status }), TypeError],
      [`may be without a body with the status ${status}`, ({ Response }) => new Response(null, { status }).body, null],
    ]),
    ["takes no options that are no object", made(null, 1), TypeError],
    ["takes no headers that are null", made(null, { headers: null }), TypeError],
    ["is made with new only", ({ Response }) => (Response as unknown as () => void)(), TypeError],
    [
      "has attributes that cannot be set",
      ({ Response }) => {
        const response = new Response("text") as unknown as Record<string, unknown>;
        return [...Object.keys(DEFAULTS), "body", "bodyUsed"].map((name) => {
          const before = response[name];
          return Reflect.set(response, name, "other") || response[name] !== before || !(name in Response.prototype);
        });
      },
      Array(9).fill(false),
    ],
    [
      "has no member of its own",
      ({ Response }) => [String(new Response()), Object.keys(new Response("text"))],
      ["[object Response]", []],
    ],
    [
      "is one of its class and of classes made of it",
      ({ Response }) => {
        class Other extends Response {}
        return [new Response(), Response.json(1), new Response().clone(), new Other()].map(
          (response) => response instanceof Response,
        );
      },
      Array(4).fill(true),
    ],
  ]);
});

it("an error and a redirect are those of the class of the runtime", () => {
  expect(HttpResponse.error()).toMatchObject({ type: "error", status: 0 });
  const { status, headers } = HttpResponse.redirect("https://a.example/", 307);
  expect([status, headers.get("location")]).toEqual([307, "https://a.example/"]);
});

describe("a response of JSON", () => {
  const type = ["content-type", "application/json"];
  const inits: [init: object | undefined, expected: object][] = [
    [undefined, {}],
    [{ status: 400 }, { status: 400, ok: false }],
    [{ statusText: "foo" }, { statusText: "foo" }],
    [{ headers: {} }, {}],
    [{ headers: { "content-type": "foo/bar" } }, { headers: [["content-type", "foo/bar"]] }],
    [{ headers: { "x-foo": "bar" } }, { headers: [type, ["x-foo", "bar"]] }],
  ];
  const circular: { self?: unknown } = {};
  circular.self = circular;
  class CustomError extends Error {}
  testStandard([
    ...inits.map(
      ([init, expected]): StandardCase => [
        `has the options ${JSON.stringify(init)}`,
        async ({ Response }) => {
          const response = Response.json("text", init);
          return [attributes(response), await response.json()];
        },
        [{ ...DEFAULTS, headers: [type], ...expected }, "text"],
      ],
    ),
    ...[204, 205, 304].map(
      (status): StandardCase => [
        `has never the status ${status}`,
        ({ Response }) => Response.json("text", { status }),
        TypeError,
      ],
    ),
    ["is made of an object", ({ Response }) => Response.json({ foo: "bar" }).json(), { foo: "bar" }],
    ...[Symbol("foo"), undefined, () => 1, circular].map(
      (data): StandardCase => [
        `is not made of ${String(data)} (${typeof data})`,
        ({ Response }) => Response.json(data),
        TypeError,
      ],
    ),
    [
      "passes on what the object throws",
      ({ Response }) =>
        Response.json({
          get foo() {
            throw new CustomError("bar");
          },
        }),
      new CustomError("bar"),
    ],
    ...["𝌆", "\uDF06\uD834", "\uDEAD"].map(
      (text): StandardCase => [
        `encodes ${JSON.stringify(text)}`,
        async ({ Response }) => decode(await Response.json(text).arrayBuffer()),
        JSON.stringify(text),
      ],
    ),
    [
      "has headers that can be changed",
      ({ Response }) => {
        const { headers } = Response.json(null);
        headers.append("x-custom", "1");
        headers.delete("content-type");
        return [...headers];
      },
      [["x-custom", "1"]],
    ],
  ]);
});

describe("a copy of a response", () => {
  testStandard([
    [
      "has all that it has",
      async ({ Response }) => {
        const response = new Response("text", { status: 201, statusText: "GOOD", headers: { a: "1" } });
        const copy = response.clone();
        copy.headers.set("a", "2");
        return [attributes(copy).status, copy.statusText, [...copy.headers], await response.text(), await copy.text()];
      },
      [
        201,
        "GOOD",
        [
          ["a", "2"],
          ["content-type", "text/plain;charset=UTF-8"],
        ],
        "text",
        "text",
      ],
    ],
    ...["string", "stream"].map(
      (kind): StandardCase => [
        `gives the same by its stream, of a ${kind}`,
        async ({ Response }) => {
          const response = new Response(kind === "string" ? "text" : streamOf(encode("te"), encode("xt")));
          const copy = response.clone();
          const again = copy.clone();
          return Promise.all([response, copy, again].map(async ({ body }) => new Response(body).text()));
        },
        ["text", "text", "text"],
      ],
    ),
    [
      "is read when the original is cancelled",
      async ({ Response }) => {
        const response = new Response(streamOf(encode("te"), encode("xt")));
        const copy = response.clone();
        void response.body?.cancel();
        return [response.bodyUsed, copy.bodyUsed, await copy.text(), copy.bodyUsed];
      },
      [true, false, "text", true],
    ],
    [
      "is not made of a response that is or was read",
      async ({ Response }) => {
        const [read, locked, empty] = [new Response("text"), new Response("text"), new Response()];
        await read.text();
        locked.body?.getReader();
        await empty.text();
        return [await isRefused(() => read.clone()), await isRefused(() => locked.clone()), empty.clone().body];
      },
      [true, true, null],
    ],
  ]);
});

async function* parts(...texts: string[]) {
  for (const text of texts) yield encode(text);
}

const arriving = (destroy: () => void, ...texts: string[]) => Object.assign(parts(...texts), { destroy });

describe("a response that arrives", () => {
  it("is what fetch returns", async () => {
    const response = new HttpResponse(parts("a", "b"), { url: "https://a.example/", headers: { a: "1" } });
    for (const one of [response.clone(), response]) {
      expect([one.type, one.url, one.headers.get("a")]).toEqual(["basic", "https://a.example/", "1"]);
      expect(() => one.headers.set("a", "2")).toThrow(TypeError);
      expect(await one.text()).toBe("ab");
    }
  });

  it.each(["the copy", "the response"])("is copied while it arrives, %s read first", async (first) => {
    const response = new HttpResponse(
      arriving(() => undefined, "a", "b"),
      { status: 201, headers: { a: "1" } },
    );
    void response.body;
    const copy = response.clone();
    const order = first === "the copy" ? [copy, response] : [response, copy];
    for (const one of order) expect([one.bodyUsed, await one.text(), one.bodyUsed]).toEqual([false, "ab", true]);
    expect([copy.status, copy.headers.get("a")]).toEqual([201, "1"]);
  });

  it("ends the connection of a copied body once both halves are cancelled", async () => {
    let destroyed = 0;
    const response = new HttpResponse(arriving(() => destroyed++, "a"));
    const copy = response.clone();
    const cancelled = response.body?.cancel();
    expect(destroyed).toBe(0);
    await copy.body?.cancel();
    await cancelled;
    expect(destroyed).toBe(1);
  });

  it("ends the connection of a body that is cancelled", async () => {
    let destroyed = 0;
    await new HttpResponse(arriving(() => destroyed++, "a")).body?.cancel();
    expect(destroyed).toBe(1);
  });

  it("does not take apart the memory that the parts are in", async () => {
    const whole = encode("text");
    const response = new HttpResponse(
      (async function* () {
        yield new Uint8Array();
        yield whole.subarray(0, 2);
        yield whole.subarray(2);
      })(),
    );
    expect(await new Response(response.body).text()).toBe("text");
    expect(decode(whole)).toBe("text");
  });

  it("reports a broken body as fetch does, and the reason of a signal that fired", async () => {
    const broken = () =>
      Object.assign(
        (async function* () {
          yield encode("a");
          throw new Error("reset");
        })(),
        { destroy: () => undefined },
      );
    for (const response of [new HttpResponse(broken()), new HttpResponse(broken()).clone()]) {
      await expect(response.text()).rejects.toMatchObject({ message: "terminated", cause: { message: "reset" } });
    }
    const reason = new Error("enough");
    await expect(new HttpResponse(broken(), { signal: AbortSignal.abort(reason) }).text()).rejects.toBe(reason);
  });
});

describe("a body that is discarded", () => {
  const arriving = () => {
    const destroy = vi.fn();
    const source = Object.assign(
      (async function* () {
        yield new Uint8Array(1);
      })(),
      { destroy },
    );
    return { destroy, response: new HttpResponse(source as never) };
  };

  it("ends its connection, without a stream of it", async () => {
    const { destroy, response } = arriving();
    const streams = vi.spyOn(globalThis, "ReadableStream");
    await discardBody(response);
    expect(streams).not.toHaveBeenCalled();
    streams.mockRestore();
    expect(destroy).toHaveBeenCalledOnce();
    expect(response.bodyUsed).toBe(true);
    await expect(response.text()).rejects.toThrow(TypeError);
  });

  it("ends its connection also where its stream was opened", async () => {
    const { destroy, response } = arriving();
    const { body } = response;
    await discardBody(response);
    expect(destroy).toHaveBeenCalledOnce();
    expect(await body?.getReader().read()).toEqual({ done: true, value: undefined });
  });

  it("is nothing where there is none", async () => {
    const response = new HttpResponse(null);
    await discardBody(response);
    expect([response.bodyUsed, await response.text()]).toEqual([false, ""]);
  });
});
