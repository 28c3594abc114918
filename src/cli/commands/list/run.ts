import { AgentAuthError, isAgentAuthError, withHint } from "../../../errors.js";
import { shellWord } from "../../../redact.js";
import type { ListFlags } from "../../flags/list.js";
import { checkIdentifier, requireScope } from "../../listing/scope.js";
import { readOptions } from "../../listing/source.js";
import { formatOf } from "../../output/chosen-format.js";
import { DEVICE } from "../../output/columns.js";
import { printObject } from "../../output/object.js";
import { withPager } from "../../output/pager.js";
import type { CommandContext } from "../../runtime/context.js";

/** `devices get`. */
export async function runGet(options: ListFlags & { id: string }, context: CommandContext): Promise<undefined> {
  const settings = context.settings();
  if (options.id === "") throw new AgentAuthError("usage", "the device id is empty", { class: "usage" });
  const pool_id = requireScope("pool", settings, "devices get <device_id>");
  checkIdentifier(options.id, "the device id");
  const service = await context.management();
  const progress = context.io.progress();
  progress.update(`looking for ${options.id}`);
  const listOptions = { ...readOptions({}), signal: context.signal };
  const device = await service.devices
    .get({ pool_id, id: options.id }, listOptions)
    .catch((error: unknown) => {
      if (!isAgentAuthError(error) || error.code !== "not_found" || error.hint !== undefined) throw error;
      const profile = options.profile === undefined ? [] : ["--profile", options.profile];
      const list = ["agentauth", "devices", "list", "--pool", pool_id, ...profile, "-o", "id"].map(shellWord).join(" ");
      throw withHint(error, `the device must be one of that pool: ${list}`);
    })
    .finally(() => progress.stop());
  const format = formatOf(options, settings, context.io);
  await withPager(context, { ...options, format }, ({ io }) =>
    printObject(io, format, device, {
      ...DEVICE,
      jq: options.jq,
      showSecrets: options.showSecrets,
      now: context.now,
    }),
  );
  return undefined;
}
