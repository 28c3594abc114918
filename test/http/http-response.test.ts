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

const attributes = ({ url, redirected, status, ok, statusText, headers }: Response) => ({
  ...{ url, redirected, status, ok, statusText },
  headers: [...headers],
});

const DEFAULTS = { url: "", redirected: false, status: 200, ok: true, statusText: "", headers: [] };

// The facts of the web platform's tests, fetch/api/response.
describe("a response", () => {
  const made =
    (...args: unknown[]) =>
    ({ Response }: FetchClasses) =>
      attributes(new Response(...args));
  testStandard([
    ["has the defaults", made(), DEFAULTS],
    [
      "has what it is given",
      made(null, { status: 404, statusText: "a\tü", headers: { a: "1" } }),
      { ...DEFAULTS, status: 404, ok: false, statusText: "a\tü", headers: [["a", "1"]] },
    ],
    ...[204, 205, 304].map(
      (status): StandardCase => [
        `may be without a body with the status ${status}`,
        ({ Response }) => new Response(null, { status }).body,
        null,
      ],
    ),
    ["is made with new only", ({ Response }) => (Response as unknown as () => void)(), TypeError],
    ["has the name of its class", ({ Response }) => String(new Response()), "[object Response]"],
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
        return [copy.bodyUsed, await copy.text(), copy.bodyUsed];
      },
      [false, "text", true],
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
