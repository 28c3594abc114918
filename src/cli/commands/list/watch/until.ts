import type { ListItem } from "../../../listing/kinds.js";
import { jqFilter } from "../../../output/jq.js";
import { stringifyItems } from "../../../output/safe-json.js";

/** Whether `--until` holds for the items, as an array. */
export type Until = (items: readonly ListItem[]) => Promise<boolean>;

/**
 * The expression of `--until`. It holds when its last output is neither `false` nor `null`, as for `jq --exit-status`.
 *
 * @throws `AgentAuthError` `usage` for an invalid expression, before the first poll
 */
export async function untilHolds(expression: string): Promise<Until> {
  const filter = jqFilter(expression, undefined, "--until");
  await filter("");
  return async (items) => {
    const last = (await filter(`[${stringifyItems(items, ",", { reveal: false })}]`)).at(-1);
    return last !== undefined && last !== null && last !== false;
  };
}
