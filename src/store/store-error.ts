import { AgentAuthError, isAgentAuthError } from "../errors.js";

/** The error for a local file that cannot be used, with the system's reason. */
export function storeError(what: string, cause: unknown, hint?: string): AgentAuthError {
  const reason = (cause as NodeJS.ErrnoException | undefined)?.code;
  return new AgentAuthError("store_failed", reason ? `${what} (${reason})` : what, { class: "store", hint, cause });
}

/** The error of work on a folder: one of a system call becomes one of the store. */
function fileError(folder: string, cause: unknown): unknown {
  const { syscall } = (isAgentAuthError(cause) ? {} : (cause ?? {})) as NodeJS.ErrnoException;
  return syscall === undefined ? cause : storeError(`the files in ${folder} cannot be used: ${syscall} failed`, cause);
}

/** Wraps work on a folder with {@link fileError}. */
export function onFiles<A extends unknown[], R>(
  folder: string,
  work: (...args: A) => Promise<R>,
): (...args: A) => Promise<R> {
  return async (...args) => {
    try {
      return await work(...args);
    } catch (cause) {
      throw fileError(folder, cause);
    }
  };
}
