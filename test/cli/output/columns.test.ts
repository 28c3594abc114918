import { describe, expect, it } from "vitest";
import { type ColumnSet, DEVICE, DOMAIN, POOL, rowColumns, selectColumns } from "../../../src/cli/output/columns.js";

const SET: ColumnSet = {
  columns: [{ path: "id", header: "ID", kind: "name" }],
  wideColumns: [{ path: "last_seen.at", header: "LAST SEEN", kind: "time" }],
  fields: ["id", "title", "last_seen", "first_seen"],
  nested: ["last_seen.at", "last_seen.city", "first_seen.at"],
};
const FIELDS = "fields: id, title, last_seen, first_seen; a dot goes deeper, as in last_seen.at";

describe("--columns", () => {
  it.each<[string, object[]]>([
    ["id", [{ path: "id", header: "ID", kind: "name" }]],
    [" title , id,title,", [{ path: "title", header: "title" }, ...SET.columns]],
    ["last_seen.at", [...SET.wideColumns]],
    ["first_seen.at", [{ path: "first_seen.at", header: "first_seen.at", kind: "time" }]],
    ["last_seen.city", [{ path: "last_seen.city", header: "last_seen.city" }]],
    ["last_seen.weather", [{ path: "last_seen.weather", header: "last_seen.weather" }]],
    ["last_seen.cityy.x", [{ path: "last_seen.cityy.x", header: "last_seen.cityy.x" }]],
    ["title.at.x", [{ path: "title.at.x", header: "title.at.x" }]],
  ])("%j names columns", (flag, columns) => {
    expect(selectColumns(flag, SET)).toEqual(columns);
  });

  it.each([
    ["", "--columns names no column", FIELDS],
    [" , ", "--columns names no column", FIELDS],
    ["titel", '--columns: there is no field "titel"', `did you mean title? ${FIELDS}`],
    ["zzzzzz", '--columns: there is no field "zzzzzz"', FIELDS],
    ["at", '--columns: there is no field "at"', `did you mean last_seen.at or first_seen.at? ${FIELDS}`],
    ["last_seen.", '--columns: "last_seen." has an empty part', FIELDS],
    ["last_seen.ctiy", '--columns: there is no field "last_seen.ctiy"', `did you mean last_seen.city? ${FIELDS}`],
  ])("%j is refused", (flag, message, hint) => {
    expect(() => selectColumns(flag, SET)).toThrow(expect.objectContaining({ code: "usage", message, hint }));
  });
});

it("the columns of the lists are these", () => {
  expect({ POOL, DOMAIN, DEVICE }).toMatchSnapshot();
});

it("rows of a command have no fields to select", () => {
  const [a, b] = [
    { path: "a", header: "A" },
    { path: "b", header: "B" },
  ];
  expect(rowColumns([a], [b])).toEqual({ columns: [a], wideColumns: [a, b], fields: [] });
  expect(rowColumns([a])).toEqual({ columns: [a], wideColumns: [a], fields: [] });
  expect(() => selectColumns("x", rowColumns([a]))).toThrow(
    expect.objectContaining({ message: '--columns: there is no field "x"', hint: "fields: " }),
  );
});
