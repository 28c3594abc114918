import { describe, expect, it } from "vitest";
import { bearerChallenge, parseChallenges } from "../../../src/oauth/model/challenge.js";
import { fc } from "../../helpers/properties.js";

/** Challenges as plain data. */
function read(field: string): [string, Record<string, string[]>][] {
  return parseChallenges(field).map(({ scheme, params }) => [
    scheme,
    Object.fromEntries([...params].map(([name, values]) => [name, [...values]])),
  ]);
}

const met = (...fields: string[]) => bearerChallenge(new Headers(fields.map((field) => ["www-authenticate", field])));

describe("parseChallenges", () => {
  it.each<[string, string, [string, Record<string, string[]>][]]>([
    ["nothing", "", []],
    ["a scheme alone", "Bearer", [["bearer", {}]]],
    ["one parameter", 'Bearer realm="a"', [["bearer", { realm: ["a"] }]]],
    ["parameters in any order and case", 'BEARER Scope="a b", REALM=x', [["bearer", { scope: ["a b"], realm: ["x"] }]]],
    ["a comma inside quotes", 'Bearer realm="a, b", scope="c"', [["bearer", { realm: ["a, b"], scope: ["c"] }]]],
    [
      "two challenges",
      'Bearer realm="a", Basic realm="b"',
      [
        ["bearer", { realm: ["a"] }],
        ["basic", { realm: ["b"] }],
      ],
    ],
    [
      "Basic first",
      'Basic realm="b", charset="UTF-8", Bearer scope="x"',
      [
        ["basic", { realm: ["b"], charset: ["UTF-8"] }],
        ["bearer", { scope: ["x"] }],
      ],
    ],
    ["blanks around the equals sign", 'Bearer realm = "a" , scope\t=\tb', [["bearer", { realm: ["a"], scope: ["b"] }]]],
    ["a name twice", 'Bearer scope="a", scope="b"', [["bearer", { scope: ["a", "b"] }]]],
    ["single quotes", "Bearer scope='a b', error=x", [["bearer", { scope: ["a b"], error: ["x"] }]]],
    [
      "an address without quotes",
      "Bearer resource_metadata=https://mcp.example/.well-known/x?a=b, scope=c",
      [["bearer", { resource_metadata: ["https://mcp.example/.well-known/x?a=b"], scope: ["c"] }]],
    ],
    ["escapes in quotes", 'Bearer realm="a\\"b\\\\c"', [["bearer", { realm: ['a"b\\c'] }]]],
    ["an empty value", 'Bearer scope="", error="x"', [["bearer", { scope: [""], error: ["x"] }]]],
    ["empty list elements", ',, Bearer ,, realm="a",,', [["bearer", { realm: ["a"] }]]],
    [
      "a scheme with one opaque value",
      'Negotiate a87421000492aa874209af8bc028==, Bearer scope="a"',
      [
        ["negotiate", {}],
        ["bearer", { scope: ["a"] }],
      ],
    ],
    [
      "a missing comma between challenges",
      'Basic realm="a" Bearer scope="b"',
      [
        ["basic", { realm: ["a"] }],
        ["bearer", { scope: ["b"] }],
      ],
    ],
    ["junk before a challenge", '"?", @@@, Bearer scope="a"', [["bearer", { scope: ["a"] }]]],
    ["a name without a value", 'Bearer scope=, error="x"', [["bearer", { error: ["x"] }]]],
  ])("reads %s", (_what, field, challenges) => {
    expect(read(field)).toEqual(challenges);
  });

  it("is not fooled by parameters inside a quoted text", () => {
    const field =
      'Bearer error_description="use scope=admin, resource_metadata=\\"https://evil.example/\\"", scope="a"';
    expect(met(field)).toEqual({ resourceMetadata: [], scope: "a", error: undefined, schemes: ["bearer"] });
  });

  it("reads nothing from a field longer than 64 KB", () => {
    const longest = 'Bearer scope="a", realm="'.padEnd(65_535, "x");
    expect(read(`${longest}"`)).toHaveLength(1);
    expect(read(`${longest}x"`)).toEqual([]);
  });

  it("reads a field of 64 KB made to be slow", () => {
    for (const piece of ['a="', "a=' ", "a ", "a=,", "a=b,", '"\\', "=", "\\,", "a  \t", "a/=="]) {
      parseChallenges(`Bearer ${piece.repeat(Math.floor(65_000 / piece.length))}`);
    }
  });

  it("never throws", () => {
    const mark = fc.constantFrom(
      "Bearer",
      " ",
      ",",
      "=",
      '"',
      "'",
      "\\",
      "scope",
      "a",
      "\t",
      "é",
      "\u0000",
      "https://x/",
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string(),
          fc.array(mark).map((marks) => marks.join("")),
        ),
        (field) => {
          parseChallenges(field);
        },
      ),
    );
  });

  it("gives back every well-formed challenge", () => {
    const token = fc.stringMatching(/^[A-Za-z0-9!#$%&*+.^_|~-]{1,12}$/);
    const text = fc.stringMatching(/^[\t\x20-\x7e\xa1-\xff]{0,20}$/);
    const blank = fc.constantFrom("", " ", "\t ");
    const param = fc.record({ name: token, value: text, before: blank, after: blank, plain: fc.boolean() });
    const challenge = fc.record({
      scheme: token,
      params: fc.uniqueArray(param, { minLength: 1, maxLength: 4, selector: ({ name }) => name.toLowerCase() }),
    });
    const isToken = /^[A-Za-z0-9!#$%&*+.^_|~-]+$/;
    fc.assert(
      fc.property(fc.array(challenge, { maxLength: 4 }), blank, (challenges, gap) => {
        const field = challenges
          .map(({ scheme, params }) => {
            const written = params.map(({ name, value, before, after, plain }) => {
              const quoted = `"${value.replace(/["\\]/g, "\\$&")}"`;
              return `${name}${before}=${after}${plain && isToken.test(value) ? value : quoted}`;
            });
            return `${scheme} ${written.join(`${gap},${gap}`)}`;
          })
          .join(", ");
        expect(read(field)).toEqual(
          challenges.map(({ scheme, params }) => [
            scheme.toLowerCase(),
            Object.fromEntries(params.map(({ name, value }) => [name.toLowerCase(), [value]])),
          ]),
        );
      }),
    );
  });
});

describe("bearerChallenge", () => {
  it("is undefined where no challenge is for bearer tokens", () => {
    expect(met()).toBeUndefined();
    expect(met('Basic realm="a"', "Negotiate")).toBeUndefined();
  });

  it("reads repeated fields as one", () => {
    expect(met('Basic realm="a"', 'Bearer scope="b"', 'Bearer error="invalid_token"')).toEqual({
      resourceMetadata: [],
      scope: "b",
      error: "invalid_token",
      schemes: ["bearer"],
    });
  });

  it("reads the field that the API Gateway of AWS renames, where there is no other", () => {
    const renamed = ["x-amzn-remapped-www-authenticate", 'Bearer scope="b"'] as const;
    expect(bearerChallenge(new Headers([[...renamed]]))?.scope).toBe("b");
    expect(bearerChallenge(new Headers([[...renamed], ["www-authenticate", 'Bearer scope="a"']]))?.scope).toBe("a");
  });

  it("reports which kinds of tokens the server takes", () => {
    expect(met('DPoP algs="ES256"')?.schemes).toEqual(["dpop"]);
    expect(met('Bearer realm="a", DPoP algs="ES256"')?.schemes).toEqual(["bearer", "dpop"]);
  });

  it("gives every address of resource metadata once, in order", () => {
    const field = 'Bearer resource_metadata="https://a/1", resource_metadata="https://a/2"';
    expect(met(field, 'Bearer resource_metadata="https://a/1"')?.resourceMetadata).toEqual([
      "https://a/1",
      "https://a/2",
    ]);
  });
});
