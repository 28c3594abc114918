import { describe, expect, it } from "vitest";
import { HttpHeaders } from "../../src/http/http-message.js";
import { type FetchClasses, isRefused, testStandard } from "../helpers/fetch-classes.js";

const RECORD = { name1: "value1", name2: null, name3: undefined, name4: 1, "Content-Type": "value5" };
const COOKIES = [
  ["set-cookie", "z=1"],
  ["Set-Cookie", "a=2; domain=a.example"],
];

const four = ({ Headers }: FetchClasses) => new Headers({ foo: "2", baz: "1", BAR: "0", quux: "3" });

// The facts of the web platform's tests, fetch/api/headers.
describe("headers are made", () => {
  const made =
    (init?: unknown) =>
    ({ Headers }: FetchClasses) => [...new Headers(init)];
  const sorted = [
    ["content-type", "value5"],
    ["name1", "value1"],
    ["name2", "null"],
    ["name3", "undefined"],
    ["name4", "1"],
  ];
  testStandard([
    ["of nothing", made(), []],
    ["of an empty object", made({}), []],
    ["of a record", made(RECORD), sorted],
    ["of pairs", made(Object.entries(RECORD)), sorted],
    ["of a map", made(new Map([["a", "1"]])), [["a", "1"]]],
    ["of pairs that are sets", made([new Set(["a", "1"])]), [["a", "1"]]],
    ["of other headers", ({ Headers }) => [...new Headers(new Headers(RECORD))], sorted],
    [
      "of other headers by the iterator that these have",
      ({ Headers }) => {
        const headers = new Headers({ a: "1" });
        Object.defineProperty(headers, Symbol.iterator, { value: [["b", "2"]].values.bind([["b", "2"]]) });
        return [...new Headers(headers)];
      },
      [["b", "2"]],
    ],
    ["of names in any case, joined", made({ a: "1", A: "2" }), [["a", "1, 2"]]],
    ["of several cookies, which are not joined", made(COOKIES), COOKIES.map(([, value]) => ["set-cookie", value])],
    ...[null, 1, "ab", true, [1]].map((init) => [`of ${JSON.stringify(init)}: never`, made(init), TypeError] as const),
  ]);
});

describe("a value", () => {
  const values: [string, string | undefined][] = [
    ["a", "a"],
    ["", ""],
    [" a\t", "a"],
    ["\r\na\r\n", "a"],
    ["\r\n\ta", "a"],
    ["a, b", "a, b"],
    ["a\u0001b", "a\u0001b"],
    ["ü\u00ff", "ü\u00ff"],
    ["a\nb", undefined],
    ["a\rb", undefined],
    ["a\r\nb: c", undefined],
    ["a\0b", undefined],
    ["\u0100", undefined],
    ["€", undefined],
  ];
  testStandard(
    values.map(([value, kept]) => [
      `${JSON.stringify(value)} is ${kept === undefined ? "refused" : "kept"}`,
      async ({ Headers }) =>
        (await isRefused(() => new Headers({ "x-a": value })))
          ? [
              await isRefused(() => new Headers().set("x-a", value)),
              await isRefused(() => new Headers().append("x-a", value)),
            ]
          : [new Headers([["x-a", value]]).get("X-A")],
      kept === undefined ? [true, true] : [kept],
    ]),
  );
});

describe("a name", () => {
  const names = ["x-a", "X-A", "!#$%&'*+-.^_`|~", "", "x a", "x:a", "x\r\na", "x\0", "ü", "(", '"', "/", "\u0100"];
  testStandard(
    names.map((name) => [
      `${JSON.stringify(name)} is taken where it is a token`,
      async ({ Headers }) => [
        await isRefused(() => new Headers({ [name]: "1" })),
        await isRefused(() => new Headers().append(name, "1")),
        await isRefused(() => new Headers().set(name, "1")),
        await isRefused(() => new Headers().get(name)),
        await isRefused(() => new Headers().has(name)),
        await isRefused(() => new Headers().delete(name)),
      ],
      Array(6).fill(!/^[!#$%&'*+\-.^_`|~\w]+$/.test(name)),
    ]),
  );
});

describe("headers", () => {
  testStandard([
    [
      "join, replace and delete values",
      ({ Headers }) => {
        const headers = new Headers();
        headers.append("B", "1");
        headers.append("a", "2");
        headers.append("b", "3");
        headers.set("C", "4");
        headers.set("c", "5");
        headers.append("gone", "6");
        headers.delete("GONE");
        headers.delete("none");
        return [[...headers], headers.get("B"), headers.get("none"), headers.has("A"), headers.has("gone")];
      },
      [
        [
          ["a", "2"],
          ["b", "1, 3"],
          ["c", "5"],
        ],
        "1, 3",
        null,
        true,
        false,
      ],
    ],
    [
      "keep cookies apart, in their order",
      ({ Headers }) => {
        const headers = new Headers(COOKIES);
        headers.append("set-cookie2", "x");
        const before = [headers.get("SET-COOKIE"), headers.getSetCookie(), [...headers.keys()]];
        headers.set("set-cookie", "y");
        return [
          ...before,
          headers.getSetCookie(),
          new Headers([["set-cookie", ""]]).getSetCookie(),
          new Headers().getSetCookie(),
        ];
      },
      [
        "z=1, a=2; domain=a.example",
        ["z=1", "a=2; domain=a.example"],
        ["set-cookie", "set-cookie", "set-cookie2"],
        ["y"],
        [""],
        [],
      ],
    ],
    [
      "are iterated in the order of their names",
      (classes) => {
        const seen: unknown[] = [];
        const self = {};
        four(classes).forEach(function (this: unknown, value, name, all) {
          seen.push([name, value, this === self, all instanceof classes.Headers]);
        }, self);
        return [[...four(classes).keys()], [...four(classes).values()], [...four(classes).entries()], seen];
      },
      [
        ["bar", "baz", "foo", "quux"],
        ["0", "1", "2", "3"],
        [
          ["bar", "0"],
          ["baz", "1"],
          ["foo", "2"],
          ["quux", "3"],
        ],
        [
          ["bar", "0", true, true],
          ["baz", "1", true, true],
          ["foo", "2", true, true],
          ["quux", "3", true, true],
        ],
      ],
    ],
    [
      "yield a pair that can be changed without changing them",
      (classes) => {
        const headers = four(classes);
        for (const pair of headers) pair[1] = "changed";
        return [...headers.values()];
      },
      ["0", "1", "2", "3"],
    ],
    [
      "end an iteration whose function throws",
      (classes) =>
        four(classes).forEach(() => {
          throw new Error("enough");
        }),
      new Error("enough"),
    ],
    [
      "have the name and the members of their interface",
      ({ Headers }) => [
        String(new Headers()),
        Headers.length,
        Headers.prototype.append.length,
        Object.keys(new Headers({ a: "1" })),
      ],
      ["[object Headers]", 0, 2, []],
    ],
    ["take no symbol as a value", ({ Headers }) => new Headers().set("a", Symbol() as never), TypeError],
  ]);
});

it.each<[string, (headers: HttpHeaders) => unknown]>([
  ["the name of a header is invalid", (headers) => headers.get("x y")],
  // The value may be a secret.
  ["the header authorization has an invalid value", (headers) => headers.set("Authorization", "secret\r\nx: y")],
])("an error of our headers says %j", (message, run) => {
  expect(() => run(new HttpHeaders({ a: "1" }))).toThrow(new TypeError(message));
});
