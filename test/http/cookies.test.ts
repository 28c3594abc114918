import { describe, expect, it, vi } from "vitest";
import { CookieJars, Cookies } from "../../src/http/cookies.js";

const URL_OF_TEST = "https://mcp.example/mcp/tools";

function jarWith(...lines: string[]): Cookies {
  const jar = new Cookies();
  jar.learn(new Headers(lines.map((line): [string, string] => ["set-cookie", line])));
  return jar;
}

describe("the cookies of one origin", () => {
  it.each([
    ["node=a; Path=/mcp", "node=a"],
    ["node=a; Path=/other", undefined],
    ["node=a; Path=relative", "node=a"],
    ["node=a; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT", "node=a"],
    ["node=a; Max-Age=0", undefined],
    ["node=a; Expires=Thu, 01 Jan 1970 00:00:00 GMT", undefined],
    ["node=a; Expires=Thu, 01 Jan 2099 00:00:00 GMT", "node=a"],
    ["node=a; Expires=soon", "node=a"],
    ["node=; Secure", "node="],
    ["no cookie", undefined],
    [`node=${"a".repeat(4096)}`, undefined],
  ])("are sent as Set-Cookie says: %.60s", (line, expected) => {
    expect(jarWith(line).header(URL_OF_TEST, null)).toBe(expected);
  });

  it("come after those of the caller, none of which they replace", () => {
    const jar = jarWith("node=a", "zone=b");
    expect(jar.header(URL_OF_TEST, "node=mine; theme=dark")).toBe("node=mine; theme=dark; zone=b");
    expect(new Cookies().header(URL_OF_TEST, "node=mine")).toBe("node=mine");
  });

  it("end when they expire, and when the server removes them", () => {
    vi.useFakeTimers();
    const jar = jarWith("node=a; Max-Age=60", "zone=b");
    vi.advanceTimersByTime(61_000);
    expect(jar.header(URL_OF_TEST, null)).toBe("zone=b");
    jar.learn(new Headers({ "set-cookie": "zone=; Max-Age=-1" }));
    expect(jar.header(URL_OF_TEST, null)).toBeUndefined();
    vi.useRealTimers();
  });

  it("are the last twenty", () => {
    const jar = jarWith(...Array.from({ length: 21 }, (_, nth) => `c${nth}=x`));
    expect(jar.header(URL_OF_TEST, null)?.split("; ")).toEqual(Array.from({ length: 20 }, (_, nth) => `c${nth + 1}=x`));
  });

  it("are none where headers cannot list them", () => {
    const jar = new Cookies();
    jar.learn({} as Headers);
    expect(jar.header(URL_OF_TEST, null)).toBeUndefined();
  });
});

it("a jar is that of one login at one origin", () => {
  const jars = new CookieJars();
  expect(jars.get("a", 1)).toBe(jars.get("a", 1));
  expect(jars.get("a", 1)).not.toBe(jars.get("a", 2));
});
