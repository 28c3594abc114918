import { AgentAuthError } from "../../../errors.js";
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
  const pool_id = requireScope("pool", settings, "devices get <device_id>");
  if (options.id === "") throw new AgentAuthError("usage", "the device id is empty", { class: "usage" });
  checkIdentifier(options.id, "the device id");
  const service = await context.management();
  const progress = context.io.progress();
  progress.update(`looking for ${options.id}`);
  const listOptions = { ...readOptions({}), signal: context.signal };
  const device = await service.devices.get({ pool_id, id: options.id }, listOptions).finally(() => progress.stop());
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
