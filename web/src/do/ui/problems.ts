/** Problems of the server beside the field that they concern. */

import { ApiError } from "../../api/client.ts";
import type { ProblemDetails } from "../../api/types.ts";
import { ReadError } from "../places/checks.ts";

/** What went wrong, and the field of the form that it is about, or null for the whole form. */
export interface FieldProblem<Field extends string> {
  field: Field | null;
  message: string;
}

/**
 * Return an error as a problem of one of `fields`.
 *
 * The server names the member of a bad body as `$.subscriber`; a filter has line and column, or a JSON pointer.
 */
export function problemOf<Field extends string>(error: unknown, fields: readonly Field[]): FieldProblem<Field> {
  if (error instanceof ApiError) {
    return { field: fieldOf(error.problem, error.message, fields), message: error.message };
  }
  if (error instanceof ReadError) return { field: null, message: error.message };
  throw error;
}

function fieldOf<Field extends string>(
  problem: ProblemDetails | null,
  detail: string,
  fields: readonly Field[],
): Field | null {
  const named = (name: string | undefined) => fields.find((field) => field === name) ?? null;
  const member = /`\$\.(\w+)/.exec(detail)?.[1];
  if (member !== undefined) return named(member);
  if (problem === null) return null;
  const isFilter = problem.type.endsWith("/bad-filter") || problem.type.endsWith("/bad-region");
  if (isFilter || problem.line !== undefined || problem.path !== undefined) return named("filter");
  const start = /^(\w+)\b/.exec(detail)?.[1];
  return named(problem.attribute) ?? named(start);
}
