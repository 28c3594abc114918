import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import type { OutputFlags } from "../../../src/cli/flags/output.js";
import { DEVICE } from "../../../src/cli/output/columns.js";
import { printObject } from "../../../src/cli/output/object.js";
import { FORMATS, type Format } from "../../../src/profile/settings.js";
import { createMemoryIo } from "../../helpers/memory-io.js";
import { device, NOW, parseCsv, TERMINAL } from "./printing.js";

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
        "title:        =x\\u{202e}",
        "last_seen.at: 3 days ago",
        "",
        "Last seen",
        "asn: -1",
        "",
        "Ids",
        "id: dev_1",
        "",
        "More",
        "tags: a, b",
        "none: -",
        "",
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
    expect(parse(await show("yaml", small))).toEqual(small);
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
