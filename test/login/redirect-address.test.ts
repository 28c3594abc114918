import { describe, expect, test } from "vitest";
import { planRedirect, redirectUri } from "../../src/login/redirect-address.js";
import { DOCUMENT_PORTS } from "../../src/oauth/client/metadata-document.js";

describe("the plan of a redirect address", () => {
  test("without a wish is 127.0.0.1, /callback and any port", () => {
    expect(planRedirect({})).toEqual({ host: "127.0.0.1", path: "/callback", ports: [0] });
  });

  test("takes the earlier address where nothing is against it", () => {
    const preferred = "http://localhost:9000/back";
    const earlier = { host: "localhost", path: "/back", ports: [9000, 0] };
    expect(planRedirect({ preferred })).toEqual(earlier);
    expect(planRedirect({ preferred, host: "localhost", path: "/back" })).toEqual(earlier);
    expect(planRedirect({ preferred, port: 9000 })).toEqual({ ...earlier, ports: [9000] });
    expect(planRedirect({ preferred, port: 9001 })).toEqual({ host: "127.0.0.1", path: "/callback", ports: [9001] });
    expect(planRedirect({ preferred, host: "127.0.0.1" })).toEqual({
      host: "127.0.0.1",
      path: "/callback",
      ports: [0],
    });
    expect(planRedirect({ preferred, path: "/x" })).toEqual({ host: "127.0.0.1", path: "/x", ports: [0] });
  });

  test("tries all ports of the metadata document, whichever host is given", () => {
    const [first = 0, ...others] = DOCUMENT_PORTS;
    const preferred = `http://127.0.0.1:${first}/callback`;
    const plan = { path: "/callback", ports: [first, ...others, 0] };
    expect(planRedirect({ preferred })).toEqual({ ...plan, host: "127.0.0.1" });
    expect(planRedirect({ preferred, host: "localhost" })).toEqual({ ...plan, host: "localhost" });
    expect(planRedirect({ preferred, port: 9000 })).toMatchObject({ ports: [9000] });
    expect(planRedirect({ preferred: `http://127.0.0.1:${first}/back` }).ports).toEqual([first, 0]);
  });

  test.each([
    "https://127.0.0.1:9000/callback",
    "http://evil.example:9000/callback",
    "http://127.0.0.2:9000/callback",
    "http://user@127.0.0.1:9000/callback",
    "http://127.0.0.1:9000/callback?x=1",
    "http://127.0.0.1:9000/callback#x",
    "http://127.0.0.1:9000/a/../callback",
    "http://127.0.0.1:9000/%63allback",
    "http://[::1]:9000/callback",
    "not an address",
  ])("does not take %s for an earlier one", (preferred) => {
    expect(planRedirect({ preferred })).toEqual({ host: "127.0.0.1", path: "/callback", ports: [0] });
  });

  test.each([0, -1, 65_536, 1.5, Number.NaN])("refuses the port %d", (port) => {
    const message = "the redirect port must be a whole number from 1 to 65535";
    expect(() => planRedirect({ port })).toThrow(new TypeError(message));
  });

  test.each(["", "callback", "/a?b", "/a#b", "/a b", "/../a", "/./a", "//a", "/%41", "/a\r\nb"])(
    "refuses the path %j",
    (path) => {
      const message = "the redirect path must begin with / and have only letters, digits and -._~/ in it";
      expect(() => planRedirect({ path })).toThrow(new TypeError(message));
    },
  );

  test.each([1, 65_535])("takes the port %i", (port) => {
    expect(planRedirect({ port }).ports).toEqual([port]);
  });

  test.each(["/", "/a", "/a/", "/a-b_c/d.e~f/0"])("takes the path %s", (path) => {
    expect(planRedirect({ path }).path).toBe(path);
  });

  test("takes the port of http for that of an earlier address without one", () => {
    const preferred = "http://127.0.0.1/callback";
    expect(planRedirect({ preferred })).toEqual({ host: "127.0.0.1", path: "/callback", ports: [80, 0] });
  });

  test.each<[string, object, object]>([
    ["http://127.0.0.1:8080/cb", {}, { host: "127.0.0.1", path: "/cb", ports: [8080] }],
    ["http://localhost/cb;v=1", {}, { host: "localhost", path: "/cb;v=1", ports: [80] }],
    ["http://127.0.0.1/cb", { port: 8080 }, { host: "127.0.0.1", path: "/cb", ports: [8080] }],
    ["https://dev.example", { port: 8080 }, { host: "localhost", path: "/", ports: [8080] }],
    [
      "https://dev.example/a/cb?x=1",
      { port: 8080, host: "127.0.0.1", path: "/cb", preferred: "http://localhost:1/x" },
      { host: "127.0.0.1", path: "/cb", ports: [8080] },
    ],
  ])("of the user's own %s with %j", (uri, options, plan) => {
    expect(planRedirect({ uri, ...options })).toEqual({ uri, ...plan });
  });

  test.each(["https://dev.example/cb", "https://localhost:8443/cb"])("misses the port to listen at for %s", (uri) => {
    const about = { code: "usage", remedy: expect.objectContaining({ option: "redirectPort" }) };
    expect(() => planRedirect({ uri })).toThrow(expect.objectContaining(about));
  });

  test.each([
    "dev.example/cb",
    "http://dev.example/cb",
    "javascript:alert(1)",
    "https://user@dev.example/cb",
    "https://dev.example/cb#x",
    "https://dev.example/c b",
    "https://dev.example/c\r\nb",
    "https://dév.example/cb",
  ])("refuses the user's own %j", (uri) => {
    expect(() => planRedirect({ uri, port: 8080 })).toThrow(TypeError);
  });

  test("is written as browsers write it", () => {
    expect(redirectUri({ host: "127.0.0.1", path: "/" }, 80)).toBe("http://127.0.0.1/");
    expect(redirectUri({ host: "localhost", path: "/callback" }, 8080)).toBe("http://localhost:8080/callback");
  });
});
