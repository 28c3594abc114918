import { join } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { expect, it } from "vitest";

const root = fileURLToPath(new URL("../../", import.meta.url));
const FILE = join(root, "test/api/first-program.ts");
const PROGRAM = `
import { ManagementClient } from "agentauth";
const service = new ManagementClient({ baseUrl: "https://agentauth.example" });
const pool = await service.pools.list({ domain_id: "domain_1" }).first();
const domain = await service.domains.list({ account_id: "account_1" }).first();
for await (const page of service.devices.list({ pool_id: "pool_1" }).pages()) {
  const { pagination, sorting } = page;
  for (const device of page.items) {
    const { last_seen, dynamic_client_details } = device;
    const number: number = device;
    console.log(pagination, sorting, last_seen, dynamic_client_details, number, pool, domain);
  }
}
`;

it("shows an item and its parts by their names, in an editor and in messages of the compiler", () => {
  const { config } = ts.readConfigFile(join(root, "tsconfig.json"), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const service = ts.createLanguageService({
    getCompilationSettings: () => ({ ...options, incremental: false }),
    getScriptFileNames: () => [FILE],
    getScriptVersion: () => "1",
    getScriptSnapshot: (path) => {
      const text = path === FILE ? PROGRAM : ts.sys.readFile(path);
      return text === undefined ? undefined : ts.ScriptSnapshot.fromString(text);
    },
    getCurrentDirectory: () => root,
    getDefaultLibFileName: ts.getDefaultLibFilePath,
    fileExists: (path) => path === FILE || ts.sys.fileExists(path),
    readFile: ts.sys.readFile,
    directoryExists: ts.sys.directoryExists,
  });
  const hover = (name: string) => {
    const at = PROGRAM.search(new RegExp(`\\b${name}\\b(?= =| of|,| \\})`));
    const { displayParts = [] } = service.getQuickInfoAtPosition(FILE, at) ?? {};
    return ts.displayPartsToString(displayParts);
  };
  expect(
    ["page", "device", "pagination", "sorting", "last_seen", "dynamic_client_details", "pool", "domain"].map(hover),
  ).toEqual([
    "const page: Page<Device>",
    "const device: Device",
    "const pagination: PaginationOutput",
    "const sorting: Sorting | undefined",
    "const last_seen: InteractionDetails | null | undefined",
    "const dynamic_client_details: DynamicClientDetails | null | undefined",
    "const pool: Pool | undefined",
    "const domain: Domain | undefined",
  ]);
  const messages = service.getSemanticDiagnostics(FILE).map(({ messageText }) => messageText);
  expect(messages).toEqual(["Type 'Device' is not assignable to type 'number'."]);
});
