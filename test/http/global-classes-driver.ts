// Runs in a process of its own: our classes are the classes of the process, and packages use them.
import {
  allowInsecureRequests,
  ClientSecretBasic,
  clientCredentialsGrantRequest,
  customFetch,
  discoveryRequest,
  processClientCredentialsResponse,
  processDiscoveryResponse,
  protectedResourceRequest,
  validateJwtAccessToken,
} from "oauth4webapi";
import createClient from "openapi-fetch";
import { HttpHeaders, HttpRequest, HttpResponse } from "../../src/http/http-message.js";
import { createFetch } from "../../src/http/node/network.js";

interface Paths {
  "/item": {
    get: { responses: { 200: { content: { "application/json": { method: string } } } } };
  };
}

const { origin } = JSON.parse(process.argv[2] ?? "{}") as { origin: string };
// Not with defineProperty, which reads the property and so loads undici.
globalThis.Headers = HttpHeaders;
globalThis.Request = HttpRequest as unknown as typeof Request;
globalThis.Response = HttpResponse as unknown as typeof Response;
const fetch = createFetch({}, undefined);
// The type of their option does not allow for exactOptionalPropertyTypes.
const fetchOfOauth = (url: string, init: object) => fetch(url, init);

const steps: Record<string, () => unknown> = {
  async "the bodies of commands"() {
    const stream = () => new Blob(["text"]).stream();
    const sizes: number[] = [];
    for (const body of ["text", new Uint8Array(4), new URLSearchParams("a=12"), stream()]) {
      const request = new Request(origin, { method: "POST", body, duplex: "half" });
      for (const message of [request.clone(), new Response(body instanceof ReadableStream ? stream() : body)]) {
        sizes.push((await message.clone().text()).length);
        for await (const part of message.body ?? []) sizes.push(part.length);
      }
    }
    return [...new Set(sizes)];
  },
  async "openapi-fetch"() {
    const client = createClient<Paths>({ baseUrl: origin, fetch });
    const seen: boolean[] = [];
    client.use({
      onRequest({ request }) {
        seen.push(request instanceof Request);
        return new Request(request.url, { headers: { ...Object.fromEntries(request.headers), "x-added": "1" } });
      },
      onResponse({ response }) {
        seen.push(response instanceof Response);
        return new Response(response.body, response);
      },
    });
    const got = await client.GET("/item");
    return [got.data, got.response.headers.get("x-seen"), seen];
  },
  async oauth4webapi() {
    const options = { [customFetch]: fetchOfOauth, [allowInsecureRequests]: true };
    const issuer = new URL(origin);
    const response = await discoveryRequest(issuer, { ...options, algorithm: "oauth2" });
    const server = await processDiscoveryResponse(issuer, response);
    const client = { client_id: "id" };
    const answer = await clientCredentialsGrantRequest(
      server,
      client,
      ClientSecretBasic("secret"),
      { scope: "a" },
      options,
    );
    const { access_token } = await processClientCredentialsResponse(server, client, answer);
    const resource = new URL("/item", origin);
    const item = await protectedResourceRequest(
      access_token,
      "PUT",
      resource,
      new Headers({ a: "1" }),
      "text",
      options,
    );
    // It has taken the request for one, and misses its token.
    const refused = await validateJwtAccessToken(server, new Request(resource), "audience").catch(String);
    return [access_token, await item.json(), item instanceof Response, refused];
  },
  "what only the classes of the runtime do": () =>
    new Response(new URLSearchParams("a=1")).formData().catch((error) => String(error)),
  // Shows that the list would name it.
  "Node's fetch": async () => (await globalThis.fetch("data:,a")).text(),
};

const { moduleLoadList } = process as typeof process & { moduleLoadList: string[] };
const result: Record<string, unknown> = {};
for (const [name, run] of Object.entries(steps)) {
  const seen = await run();
  const isLoaded = moduleLoadList.some((module) => /undici\/undici$/.test(module));
  result[name] = { seen, isLoaded };
}
process.send?.({ event: "done", result });
process.disconnect?.();
