import { expect, it } from "vitest";
import { MCP_HOSTS } from "../../../../src/cli/clients/mcp-hosts/hosts.js";
import { fixedText } from "../../../helpers/fixed-text.js";
import { startUser, URL_OF_SERVER } from "../../commands/mcp/host-support.js";

it.each(Object.keys(MCP_HOSTS))("agentauth mcp config %s prints an entry, and says where it belongs", async (host) => {
  for (const platform of ["linux", "darwin"]) {
    const { code, stdout, stderr } = await startUser(platform).run("config", host, URL_OF_SERVER);
    expect(code, stderr).toBe(0);
    expect(fixedText(`${stdout}${stderr}`)).toMatchSnapshot();
  }
});
