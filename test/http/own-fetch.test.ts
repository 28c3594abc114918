import { describe, expect, it } from "vitest";
import {
  HttpHeaders,
  HttpRequest,
  HttpResponse,
  isRequest,
  isResponse,
  ownFetch,
  toNativeFetch,
} from "../../src/http/http-message.js";

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
    await toNativeFetch(send)(request, { headers: new HttpHeaders({ b: "2" }) });
    expect(seen).toEqual([true, true, "text"]);
  });

  it("gets an address and options where it did not get a request", async () => {
    const seen: unknown[] = [];
    const send: typeof fetch = async (input, init) => {
      seen.push(input, init?.method, init?.headers, init?.body);
      return new Response();
    };
    await toNativeFetch(send, true)(request);
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
    expect(toNativeFetch(wrapped)).toBe(wrapped);
    const other = ownFetch((input, init) => fetch(input, init), fetch);
    expect(toNativeFetch(other)).not.toBe(other);
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
