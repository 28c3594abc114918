import { describe, expect, it } from "vitest";
import { HttpHeaders } from "../../src/http/http-headers.js";
import { HttpRequest } from "../../src/http/http-request.js";
import { HttpResponse } from "../../src/http/http-response.js";
import { isRequest, isResponse, ownFetch, withOwnClasses } from "../../src/http/own-fetch.js";

/** What a function returns, or that it throws. */
function outcome<T>(work: () => T): T | "TypeError" | "RangeError" {
  try {
    return work();
  } catch (error) {
    return error instanceof RangeError ? "RangeError" : "TypeError";
  }
}

async function* parts(...texts: string[]) {
  for (const text of texts) yield new TextEncoder().encode(text);
}

const arriving = (destroy: () => void, ...texts: string[]) => Object.assign(parts(...texts), { destroy });

describe("our headers", () => {
  const VALUES = [
    "a",
    "",
    " a\t",
    "\r\na\r\n",
    "a\nb",
    "a\rb",
    "a\r\nb: c",
    "a\0b",
    "ü",
    "\u0100",
    "€",
    "a\u0001b",
    "a, b",
  ];
  it.each(VALUES)("take the value %j as the global class does", (value) => {
    for (const method of ["set", "append"] as const) {
      const read = (headers: Headers) =>
        outcome(() => {
          headers[method]("x-a", value);
          return [...headers];
        });
      expect(read(new HttpHeaders())).toEqual(read(new Headers()));
    }
    expect(outcome(() => [...new HttpHeaders({ "x-a": value })])).toEqual(
      outcome(() => [...new Headers({ "x-a": value })]),
    );
  });

  it.each(["x-a", "X-A", "", "x a", "x:a", "x\r\na", "x\0", "ü", "!#$%&'*+-.^_`|~", "(", '"', "/"])(
    "take the name %j as the global class does",
    (name) => {
      for (const method of ["get", "has", "delete"] as const) {
        expect(outcome(() => new HttpHeaders()[method](name))).toEqual(outcome(() => new Headers()[method](name)));
      }
      expect(outcome(() => [...new HttpHeaders([[name, "1"]])])).toEqual(
        outcome(() => [...new Headers([[name, "1"]])]),
      );
    },
  );

  it("join, sort and replace values as the global class does", () => {
    const fill = (headers: Headers) => {
      headers.append("B", "1");
      headers.append("set-cookie", "c=1");
      headers.append("a", "2");
      headers.append("b", "3");
      headers.append("Set-Cookie", "d=2");
      headers.set("C", "4");
      headers.set("c", "5");
      headers.append("gone", "6");
      headers.delete("GONE");
      const seen: string[] = [];
      headers.forEach((value, name) => void seen.push(`${name}: ${value}`));
      return [
        [...headers],
        [...headers.keys()],
        [...headers.values()],
        seen,
        headers.get("B"),
        headers.get("set-cookie"),
        headers.get("none"),
        headers.getSetCookie(),
        headers.has("A"),
      ];
    };
    expect(fill(new HttpHeaders())).toEqual(fill(new Headers()));
  });

  it("are made of what the global class is made of", () => {
    const records = [
      { a: "1", B: "2" },
      [
        ["a", "1"],
        ["A", "2"],
      ],
      new Headers({ a: "1" }),
      new Map([["a", "1"]]),
    ];
    for (const init of records)
      expect([...new HttpHeaders(init as Headers)]).toEqual([...new Headers(init as Headers)]);
    for (const init of [[["a"]], [["a", "1", "2"]]] as never[]) expect(() => new HttpHeaders(init)).toThrow(TypeError);
    expect([...new Headers([...new HttpHeaders({ a: "1" })])]).toEqual([["a", "1"]]);
  });

  it("do not show a refused value", () => {
    expect(() => new HttpHeaders({ authorization: "secret\r\nx: y" })).toThrow(
      /^the header authorization has an invalid value$/,
    );
  });
});

describe("our request", () => {
  it.each([
    ["GET", null],
    ["post", "text"],
    ["delete", null],
    ["patch", "text"],
    ["GET", "text"],
    ["HEAD", ""],
    ["CONNECT", null],
    ["trace", null],
    ["TRACK", null],
    ["a b", null],
    ["", null],
    ["X\r\nY", null],
  ])("takes the method %j with the body %j as the global class does", async (method, body) => {
    const shown = ({ method: sent, headers }: Request) => [sent, [...headers]];
    const url = "https://a.example/b?c#d";
    expect(outcome(() => shown(new HttpRequest(url, { method, body })))).toEqual(
      outcome(() => shown(new Request(url, { method, body }))),
    );
  });

  it.each(["https://a.example", "https://user:word@a.example/", "https://user@a.example/", "/relative", ""])(
    "takes the address %j as the global class does",
    (url) => {
      expect(outcome(() => new HttpRequest(url).url)).toEqual(outcome(() => new Request(url).url));
    },
  );

  it("reads its body in every form as the global class does", async () => {
    const forms = async (Kind: typeof HttpRequest | typeof Request) => {
      const make = (type: string, body: string) =>
        new Kind("https://a.example/", { method: "POST", headers: { "content-type": type }, body });
      const form = await make("application/x-www-form-urlencoded", "a=1&b=%C3%BC").formData();
      const blob = await make("text/csv", "a,b").blob();
      const bytes = await make("text/plain", "ü").arrayBuffer();
      return {
        form: [...form],
        json: await make("application/json", '{"a":[1]}').json(),
        bytes: [...new Uint8Array(bytes)],
        blob: [blob.type, await blob.text()],
        isAborted: make("text/plain", "").signal.aborted,
        tags: [make("text/plain", ""), make("text/plain", "").headers].map(String),
      };
    };
    expect(await forms(HttpRequest)).toEqual(await forms(Request));
  });

  it("is read and copied any number of times", async () => {
    const request = new HttpRequest("https://a.example/", { method: "PUT", headers: { a: "1" }, body: "täxt" });
    for (const one of [request, request.clone(), request.asRequest()]) {
      expect([one.method, one.url, one.headers.get("a")]).toEqual(["PUT", "https://a.example/", "1"]);
      expect(await new Response(one.clone().body).text()).toBe("täxt");
      expect(await one.text()).toBe("täxt");
    }
    expect(Buffer.from(await request.arrayBuffer()).toString()).toBe("täxt");
    expect(await new HttpRequest("https://a.example/", { method: "POST", body: '{"a":1}' }).json()).toEqual({ a: 1 });
  });
});

describe("our response", () => {
  it.each([200, 204, 299, 300, 404, 599, 199, 101, 600, Number.NaN])(
    "takes the status %d as the global class does",
    (status) => {
      expect(outcome(() => new HttpResponse(null, { status }).ok)).toEqual(
        outcome(() => new Response(null, { status }).ok),
      );
    },
  );

  it.each(["OK", "a\tb", "ü", "a\nb", "\u001b[31m", "€"])(
    "takes the text %j of a status as the global class does",
    (statusText) => {
      expect(outcome(() => new HttpResponse(null, { statusText }).statusText)).toEqual(
        outcome(() => new Response(null, { statusText }).statusText),
      );
    },
  );

  it("is read in every form", async () => {
    const make = () =>
      new HttpResponse(
        arriving(() => undefined, '{"a":', "1}"),
        { headers: { "content-type": "a/b" } },
      );
    expect(await make().json()).toEqual({ a: 1 });
    expect(await make().text()).toBe('{"a":1}');
    expect((await make().blob()).type).toBe("a/b");
    expect(Buffer.from(await make().arrayBuffer()).toString()).toBe('{"a":1}');
    expect(await new Response(make().body).text()).toBe('{"a":1}');
    expect(await new HttpResponse("text").clone().text()).toBe("text");
    expect(await new HttpResponse(null).text()).toBe("");
    expect(new HttpResponse(null).body).toBeNull();
  });

  it("is read once", async () => {
    const response = new HttpResponse("text");
    expect([await response.text(), response.bodyUsed]).toEqual(["text", true]);
    await expect(response.text()).rejects.toThrow(TypeError);
    expect(() => response.clone()).toThrow(TypeError);
    const streamed = new HttpResponse("text");
    streamed.body?.getReader();
    await expect(streamed.text()).rejects.toThrow(TypeError);
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
    const again = new HttpResponse(arriving(() => undefined, "a")).clone().clone();
    expect(await new Response(again.body).text()).toBe("a");
    const locked = new HttpResponse(arriving(() => undefined, "a"));
    locked.body?.getReader();
    expect(() => locked.clone()).toThrow(TypeError);
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

  it("reports a broken body as fetch does, and the reason of a signal that fired", async () => {
    const broken = Object.assign(
      (async function* () {
        yield Buffer.from("a");
        throw new Error("reset");
      })(),
      { destroy: () => undefined },
    );
    await expect(new HttpResponse(broken).text()).rejects.toMatchObject({
      message: "terminated",
      cause: { message: "reset" },
    });
    const failing = Object.assign(parts(), {
      destroy: () => undefined,
      next: () => Promise.reject(new Error("reset")),
    });
    const reason = new Error("enough");
    await expect(new HttpResponse(failing, { signal: AbortSignal.abort(reason) }).text()).rejects.toBe(reason);
  });
});

describe("a fetch of the user", () => {
  const request = new HttpRequest("https://a.example/", { method: "POST", headers: { a: "1" }, body: "text" });

  it("gets objects of the global classes", async () => {
    const seen: unknown[] = [];
    const send: typeof fetch = async (input, init) => {
      seen.push(
        input instanceof Request,
        init?.headers instanceof Headers,
        input instanceof Request && (await input.text()),
      );
      return new Response();
    };
    await withOwnClasses(send)(request, { headers: new HttpHeaders({ b: "2" }) });
    expect(seen).toEqual([true, true, "text"]);
  });

  it("gets an address and options where it did not get a request", async () => {
    const seen: unknown[] = [];
    const send: typeof fetch = async (input, init) => {
      seen.push(input, init?.method, init?.headers, init?.body);
      return new Response();
    };
    await withOwnClasses(send, true)(request);
    expect(seen).toEqual([
      "https://a.example/",
      "POST",
      { a: "1", "content-type": "text/plain;charset=UTF-8" },
      "text",
    ]);
  });

  it("is left as it is if it takes ours, and so is what wraps it", () => {
    const ours = ownFetch(fetch.bind(globalThis));
    const wrapped = ownFetch((input, init) => ours(input, init), ours);
    expect(withOwnClasses(wrapped)).toBe(wrapped);
    const other = ownFetch((input, init) => fetch(input, init), fetch);
    expect(withOwnClasses(other)).not.toBe(other);
  });

  it("is recognised by the name of the class", () => {
    expect([
      isRequest(request),
      isRequest(request.asRequest()),
      isRequest("https://a.example/"),
      isRequest({}),
    ]).toEqual([true, true, false, false]);
    expect([isResponse(new HttpResponse(null)), isResponse(new Response()), isResponse(null)]).toEqual([
      true,
      true,
      false,
    ]);
  });
});
