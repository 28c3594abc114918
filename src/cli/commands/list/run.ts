import { isAgentAuthError, usageError, withHint } from "../../../errors.js";
import { shellWord } from "../../../redact.js";
import type { ListFlags } from "../../flags/list.js";
import { checkIdentifier, type ListKind, requireScope } from "../../listing/scope.js";
import { COLUMNS, getItem } from "../../listing/source.js";
import { chooseFormat, printObject } from "../../output/writer.js";
import type { CommandContext } from "../../runtime/context.js";
import { operandToPaste } from "../../runtime/hints.js";

/** `devices get`, `pools get` and `domains get`. */
export async function runGet(
  { noun, scope }: ListKind,
  options: ListFlags & { id: string },
  context: CommandContext,
): Promise<undefined> {
  const settings = context.settings();
  const { id } = options;
  const singular = noun.slice(0, -1);
  if (id === "") throw usageError(`the ${singular} id is empty`);
  checkIdentifier(id, `the ${singular} id`);
  const scopeId = requireScope(scope, settings, `${noun} get ${operandToPaste(id)}`);
  const service = await context.management();
  const progress = context.io.progress();
  progress.update(`looking for ${id}`);
  const item = await getItem(service, noun, { scopeId, id }, { signal: context.signal })
    .catch((error: unknown) => {
      if (!isAgentAuthError(error) || error.code !== "not_found" || error.hint !== undefined) throw error;
      const profile = options.profile === undefined ? [] : ["--profile", options.profile];
      const list = ["agentauth", noun, "list", `--${scope}`, scopeId, ...profile, "-o", "id"].map(shellWord).join(" ");
      throw withHint(error, `the ${singular} must be one of that ${scope}: ${list}`);
    })
    .finally(() => progress.stop());
  const format = chooseFormat(options, settings, context.io);
  await printObject(format, item, options, context, COLUMNS[noun]);
}
