// Type-checks the sandbox in a strict program for Node.
import { type Fault, parseFault, type Sandbox, startSandbox } from "agentauth/sandbox";

const faults: Fault[] = [{ kind: "insert", count: 2, after: 1 }, parseFault("429:retry-after=1")];

export async function withSandbox(work: (sandbox: Sandbox) => Promise<void>): Promise<number> {
  await using sandbox = await startSandbox({ devices: 10, faults });
  await work(sandbox);
  return sandbox.requests.total;
}

// @ts-expect-error a status fault needs its status
export const incomplete: Fault = { kind: "status" };
