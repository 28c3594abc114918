import { it } from "vitest";
import { parseChallenges } from "/work/main/src/oauth/challenge.js";
it("x", () => {
for (const piece of ['a="', "a=' ", "a ", "a=,", '"\\', "=", "\\,", "a  \t", "a/==", "a=b,", "a='", "a=\"\\"]) {
  const t=performance.now(); parseChallenges(`Bearer ${piece.repeat(Math.floor(65_000 / piece.length))}`); console.log(JSON.stringify(piece), performance.now()-t);
}});
