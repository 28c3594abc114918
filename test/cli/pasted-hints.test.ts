import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { checkHtmlFile } from "../../src/cli/commands/report/html-file.js";
import { folder } from "../store/stores.js";

describe("a hint that is pasted", () => {
  it("quotes the path of a report", () => {
    const path = join(folder(), "a; touch x #");
    mkdirSync(path);
    expect(() => checkHtmlFile(path, false)).toThrow(
      expect.objectContaining({ hint: `give a file: --html '${join(path, "report.html")}'` }),
    );
  });
});
