import { spawn } from "node:child_process";
import { once } from "node:events";
import { Readable, Writable } from "node:stream";
import { describe, expect, it } from "vitest";
import type { OutputFlags } from "../../../src/cli/flags/global.js";
import { createIo, PipeClosed } from "../../../src/cli/io/io.js";
import { DEVICE, DOMAIN, POOL } from "../../../src/cli/output/columns.js";
import {
  chooseFormat,
  createWriter,
  isOutputGiven,
  printObject,
  printPages,
  printResult,
  printRows,
} from "../../../src/cli/output/writer.js";
import { FORMATS, type Format } from "../../../src/profile/settings.js";
import { MASK } from "../../../src/redact.js";
import { createMemoryIo } from "../../helpers/memory-io.js";
import { everyText } from "../../helpers/unsafe.js";
import { device, everyCharacter, hostileIn, NOW, parseCsv, print, TERMINAL } from "./printing.js";

/** What a format itself puts between values. */
const STRUCTURE: Partial<Record<Format, RegExp>> = { plain: /[\t\n]/g, csv: /\r\n/g };

describe("an empty list", () => {
  it.each([
    ["table", ""],
    ["wide", ""],
    ["plain", ""],
    ["json", "[]\n"],
    ["ndjson", ""],
    ["csv", `${DEVICE.wideColumns.map(({ path }) => path).join(",")}\r\n`],
    ["id", ""],
  ] as const)("as %s", async (format, expected) => {
    for (const io of [{}, TERMINAL]) expect((await print(format, [], { io })).out).toBe(expected);
  });

  it("as csv without a header is nothing", async () => {
    expect((await print("csv", [], { flags: { noHeader: true } })).out).toBe("");
  });

  it("prints nothing when it is aborted", async () => {
    for (const format of FORMATS) expect((await print(format, [], { abort: true })).out).toBe("");
  });
});

// A table on a terminal isolates a cell from right to left.
const ISOLATED =
  /\u2068([^\u2066-\u2069]*[\p{sc=Hebrew}\p{sc=Arabic}\p{sc=Syriac}\p{sc=Thaana}\p{sc=Nko}][^\u2066-\u2069]*)\u2069/gu;

describe("hostile text", () => {
  const items = everyCharacter().map((id) => ({ id }));
  // Enough for what shares its code with what is swept whole.
  const telling = everyText(64).map((id) => ({ id }));
  const pipe = {};
  const terminal = { ...TERMINAL, columns: 1000 };

  it.each([
    ["table", telling, terminal],
    ["plain", telling, terminal],
    ["id", items, terminal],
    ["json", items, terminal],
    ["wide", telling, terminal],
    ["ndjson", telling, terminal],
    ["csv", telling, terminal],
    ["table", telling, pipe],
    ["wide", telling, pipe],
    ["plain", telling, pipe],
    ["id", telling, pipe],
    ["json", telling, pipe],
    ["ndjson", telling, pipe],
  ] as const)("never goes out raw as %s (%#)", async (format, list, io) => {
    const { out, err } = await print(format, list, { io });
    expect(hostileIn(out.replace(ISOLATED, "$1").replace(STRUCTURE[format] ?? /\n/g, ""))).toEqual([]);
    expect(hostileIn(err.replaceAll("\n", ""))).toEqual([]);
  });

  it.each(["json", "ndjson"] as const)("never goes raw as %s from the name of a field", async (format) => {
    const { out } = await print(format, [{ "a\u001b[31m\u009b\u202e\u2028\u{e0041}": { "b\u200b": 1 } }]);
    expect(hostileIn(out.replaceAll("\n", ""))).toEqual([]);
  });

  it("is escaped in the headings that --columns makes", async () => {
    const { out } = await print("table", [device()], {
      io: TERMINAL,
      flags: { columnsFlag: "id,title,last_seen.\u001b[31m" },
    });
    expect(out).toContain("last_seen.\\e[31m");
  });
});

describe("a client secret", () => {
  const planted = () => [
    device(),
    // Objects that do not hide it themselves, at any depth and in lists.
    { id: "plain", title: { client_secret: "planted-secret", deeper: [{ client_secret: "planted-secret" }] } },
    { id: "bare", client_secret: "planted-secret" },
  ];
  const requested = "id,title,dynamic_client_details,dynamic_client_details.client_secret,client_secret";
  const fields = [...DEVICE.fields, "client_secret"];

  it.each([...FORMATS])("is masked as %s", async (format) => {
    for (const flags of [{}, { columnsFlag: requested, fields }]) {
      for (const io of [{}, { ...TERMINAL, columns: 1000 }, { ...TERMINAL, columns: 20 }]) {
        expect((await print(format, planted(), { io, flags })).out).not.toContain("planted");
      }
    }
  });

  it.each(["json", "ndjson"] as const)("is masked before jq sees it as %s", async (format) => {
    const { out } = await print(format, planted(), { flags: { jq: "[.. | .client_secret? // empty]" } });
    expect(out).toContain(MASK);
    expect(out).not.toContain("planted");
  });

  it.each(FORMATS.filter((format) => format !== "id"))("is printed with --show-secrets as %s", async (format) => {
    const { out } = await print(format, [device()], { flags: { columnsFlag: requested, fields, showSecrets: true } });
    expect(out).toContain("planted-secret");
  });

  it("stays null where the service sent null", async () => {
    const items = [{ id: "a", title: { client_secret: null } }];
    expect(JSON.parse((await print("json", items)).out)).toEqual(items);
  });
});

describe("--columns", () => {
  it.each([
    ["json", '[{"title":"Laptop","last_seen":{"at":1700000000}}]\n'],
    ["ndjson", '{"title":"Laptop","last_seen":{"at":1700000000}}\n'],
    ["csv", "title,last_seen.at\r\nLaptop,2023-11-14T22:13:20Z\r\n"],
    ["plain", "Laptop\t2023-11-14T22:13:20Z\n"],
    ["table", "TITLE   LAST SEEN\nLaptop  2023-11-14T22:13:20Z\n"],
    ["wide", "TITLE   LAST SEEN\nLaptop  2023-11-14T22:13:20Z\n"],
    ["id", "dev_1\n"],
  ] as const)("chooses what %s shows", async (format, expected) => {
    expect((await print(format, [device()], { flags: { columnsFlag: "title, last_seen.at" } })).out).toBe(expected);
  });

  it("shows as a time what a service of later calls so", async () => {
    const item = { ...device(), dynamic_client_details: { at: 1_700_000_000 } };
    const flags = { columnsFlag: "dynamic_client_details.at" };
    expect((await print("plain", [item as never], { flags })).out).toBe("2023-11-14T22:13:20Z\n");
  });

  it("leaves out what an item does not have, and reads own properties only", async () => {
    const flags = { columnsFlag: "id,last_seen.constructor,last_seen.__proto__,first_seen.at" };
    expect((await print("ndjson", [device()], { flags })).out).toBe('{"id":"dev_1"}\n');
    expect((await print("plain", [device()], { flags })).out).toBe("dev_1\t\t\t\n");
  });

  it.each(["nope", "nope.at", "", " , ", "constructor", "id,last_seen..at", "a\u001b"])(
    "refuses %j before anything is printed, and names the fields",
    (columnsFlag) => {
      const io = createMemoryIo();
      let failure: unknown;
      try {
        createWriter("table", { ...DEVICE, columnsFlag }, io);
      } catch (error) {
        failure = error;
      }
      expect(failure).toMatchObject({ class: "usage", hint: expect.stringContaining("last_seen") });
      expect((failure as Error).message).not.toContain("\u001b");
    },
  );

  it.each([
    ["last_seen.citty", "did you mean last_seen.city?"],
    ["dynamic_client_details.titel", "did you mean dynamic_client_details.title?"],
    ["titel", "did you mean title?"],
    ["city", "did you mean last_seen.city or first_seen.city?"],
    ["pkce_required", "did you mean dynamic_client_details.pkce_required?"],
  ])("says for %j what it may have meant", (columnsFlag, hint) => {
    expect(() => createWriter("table", { ...DEVICE, columnsFlag }, createMemoryIo())).toThrow(
      expect.objectContaining({
        message: `--columns: there is no field "${columnsFlag}"`,
        hint: expect.stringContaining(hint),
      }),
    );
  });

  it.each(["last_seen.isp", "last_seen.lat_long.0", "last_seen.region_code"])("lets %j pass", (columnsFlag) => {
    expect(() => createWriter("table", { ...DEVICE, columnsFlag }, createMemoryIo())).not.toThrow();
  });

  it("knows every field that the sets show", () => {
    for (const set of [POOL, DOMAIN, DEVICE]) {
      const all = [...set.columns, ...set.wideColumns].map(({ path }) => path).join(",");
      expect(() => createWriter("plain", { ...set, columnsFlag: all }, createMemoryIo())).not.toThrow();
    }
  });
});

describe("a list that ends early", () => {
  const items = Array.from({ length: 30 }, (_, index) => device({ id: `dev_${index}` }));

  it.each(FORMATS.filter((format) => format !== "json"))(
    "has printed every item it was given as %s",
    async (format) => {
      const whole = await print(format, items, { io: TERMINAL, pageSize: 7 });
      const aborted = await print(format, items, { io: TERMINAL, pageSize: 7, abort: true });
      expect(aborted.out).toBe(whole.out);
    },
  );

  it("never looks complete as json", async () => {
    for (const io of [{}, TERMINAL]) {
      const { out } = await print("json", items, { io, pageSize: 7, abort: true });
      expect(out).toContain("dev_29");
      expect(() => JSON.parse(out)).toThrow(SyntaxError);
    }
  });

  it("shows nothing of an incomplete array to jq", async () => {
    expect((await print("json", items, { flags: { jq: "length" }, abort: true })).out).toBe("");
  });
});

describe("a reader", () => {
  const page = Array.from({ length: 250 }, (_, index) => device({ id: `dev_${index}` }));
  const from = (stdout: Writable) => createIo({ stdin: Readable.from([]), stdout, stderr: stdout, env: {} });

  it.each([...FORMATS])("that is slow makes the writer wait as %s", async (format) => {
    const waiting: (() => void)[] = [];
    let received: () => void = () => {};
    const arrival = new Promise<void>((resolve) => {
      received = resolve;
    });
    const stdout = new Writable({
      write(_chunk, _encoding, done) {
        waiting.push(done);
        received();
      },
    });
    const writer = createWriter(format, DEVICE, from(stdout));
    let taken = false;
    const writing = writer.write(page).then(() => {
      taken = true;
    });
    await arrival;
    await new Promise((resolve) => setImmediate(resolve));
    expect(taken).toBe(false);
    received = () => waiting.at(-1)?.();
    waiting[0]?.();
    await writing;
    expect(taken).toBe(true);
  });

  it.each(["json", "ndjson"] as const)("gets parts of at most 64 kB as %s", async (format) => {
    const sizes: number[] = [];
    const write = (chunk: Buffer, _encoding: string, done: () => void) => {
      sizes.push(chunk.length);
      done();
    };
    const writer = createWriter(format, DEVICE, from(new Writable({ write })));
    for (let count = 0; count < 10; count++) await writer.write(page);
    expect(sizes.length).toBeGreaterThan(1);
    expect(Math.max(...sizes)).toBeLessThanOrEqual(64 * 1024);
  });

  it.each([...FORMATS])("that goes away ends the listing as %s", async (format) => {
    const reader = spawn("true", [], { stdio: ["pipe", "ignore", "ignore"] });
    await once(reader, "exit");
    const writer = createWriter(format, DEVICE, from(reader.stdin));
    const flood = async () => {
      for (;;) await writer.write(page);
    };
    await expect(flood()).rejects.toBeInstanceOf(PipeClosed);
    await writer.abort();
  });
});

async function show(format: Format, value: object, flags: OutputFlags = {}, terminal = false): Promise<string> {
  const io = createMemoryIo(terminal ? TERMINAL : {});
  await printObject(format, value, flags, { io, now: () => NOW }, terminal ? DEVICE : undefined);
  return io.out();
}

const small = {
  id: "dev_1",
  last_seen: { at: 1_700_000_000, asn: -1 },
  tags: ["a", "b"],
  none: null,
  title: "=x\u202e",
};

describe("one object", () => {
  it("is a record for people", async () => {
    expect(await show("table", small, {}, true)).toBe(
      [
        ...["title:        =x\\u{202e}", "last_seen.at: 3 days ago", "", "Last seen", "asn: -1", "", "Ids"],
        ...["id: dev_1", "", "More", "tags: a, b", "none: -", ""],
      ].join("\n"),
    );
  });

  it("is data for programs", async () => {
    expect(await show("plain", small)).toBe(
      'id\tdev_1\nlast_seen.at\t2023-11-14T22:13:20Z\nlast_seen.asn\t-1\ntags\t["a","b"]\nnone\t\ntitle\t=x\\u{202e}\n',
    );
    expect(await show("json", small)).toBe(`${JSON.stringify(small).replace("\u202e", "\\u202e")}\n`);
    expect(JSON.parse(await show("json", small, {}, true))).toEqual(small);
    expect(JSON.parse(await show("ndjson", small))).toEqual(small);
    expect(await show("id", small)).toBe("dev_1\n");
    expect(parseCsv(await show("csv", small))).toEqual([
      ["id", "last_seen.at", "last_seen.asn", "tags", "none", "title"],
      ["dev_1", "2023-11-14T22:13:20Z", "-1", '["a","b"]', "", "'=x\u202e"],
    ]);
  });

  it("shows what jq makes of it", async () => {
    expect(await show("table", device(), { jq: ".title" })).toBe("Laptop\n");
    await expect(show("csv", device(), { jq: "." })).rejects.toMatchObject({ class: "usage" });
  });

  it.each([...FORMATS])("masks a client secret as %s unless it is asked for", async (format) => {
    const bare = { id: "x", deep: [{ client_secret: "planted-secret" }], client_secret: "planted-secret" };
    for (const value of [device(), bare]) {
      expect(await show(format, value)).not.toContain("planted");
      if (format !== "id") expect(await show(format, value, { showSecrets: true })).toContain("planted-secret");
    }
  });

  it("keeps a key with a dot or a control character readable", async () => {
    expect(await show("plain", { "a.b": 1, "k\u001b": { "c\t": 2 } })).toBe("a.b\t1\nk\\e.c\\t\t2\n");
  });
});

describe("the format of an output", () => {
  const at = (flags: OutputFlags, output?: string, tty = false) =>
    chooseFormat(
      flags,
      { output: output === undefined ? undefined : { value: output, source: "x" } },
      createMemoryIo({ tty }),
    );

  it.each<[OutputFlags, string | undefined, boolean, Format]>([
    [{ output: "csv", json: true, jq: "." }, "id", true, "csv"],
    [{ json: true }, "id", true, "json"],
    [{ jq: "." }, "id", true, "json"],
    [{ jq: "" }, "id", true, "json"],
    [{ json: false }, "id", true, "id"],
    [{}, "id", false, "id"],
    [{}, undefined, true, "table"],
    [{}, undefined, false, "plain"],
  ])("is with %j, the profile's %s, on a terminal (%s): %s", (flags, output, tty, format) => {
    expect(at(flags, output, tty)).toBe(format);
  });

  it.each<[OutputFlags, boolean]>([
    [{}, false],
    [{ json: false }, false],
    [{ showSecrets: true }, false],
    [{ json: true }, true],
    [{ jq: "" }, true],
    [{ output: "id" }, true],
  ])("is asked for by %j: %s", (flags, expected) => {
    expect(isOutputGiven(flags)).toBe(expected);
  });
});

describe("rows of a command", () => {
  const SET = {
    columns: [{ path: "a", header: "A" }],
    wideColumns: [
      { path: "a", header: "A" },
      { path: "t", header: "T", kind: "time" as const },
    ],
    fields: [],
  };
  const run = (options: Parameters<typeof createMemoryIo>[0] = {}) => {
    const io = createMemoryIo(options);
    return { io, now: () => NOW, settings: () => ({ output: undefined }) };
  };

  it("are aligned with each other, however few they are", async () => {
    const context = run(TERMINAL);
    await printRows([{ a: "x", t: 1_700_000_000 }, { a: "longer" }], SET, { output: "wide" }, context);
    expect(context.io.out()).toBe("A       T\nx       3d ago\nlonger  -\n");
  });

  it("are printed a page at a time, and what was read before a failure stays", async () => {
    const context = run();
    const pages = async function* () {
      yield [{ a: 1 }];
      yield [{ a: 2 }];
      throw new Error("the third page failed");
    };
    await expect(printPages(pages(), SET, { output: "json" }, context)).rejects.toThrow("the third page failed");
    expect(context.io.out()).toBe('[{"a":1},\n{"a":2}\n');
    const whole = run();
    await printPages([[{ a: 1 }], []], SET, { jq: ".[0].a" }, whole);
    expect(whole.io.out()).toBe("1\n");
  });

  it("and a result follow the flags and the settings", async () => {
    const io = createMemoryIo();
    const context = { io, now: () => NOW, settings: () => ({ output: { value: "ndjson", source: "x" } }) };
    await printRows([{ a: 1 }], SET, {}, context as never);
    await printResult({ a: { at: 0 } }, {}, context as never);
    await printResult({ a: { at: 0 } }, { output: "plain" }, context as never);
    expect(io.out()).toBe('{"a":1}\n{"a":{"at":0}}\na.at\t1970-01-01T00:00:00Z\n');
  });
});
